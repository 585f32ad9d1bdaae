package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/cassette"
	"github.com/memtox/memtox/agents/model/ollama"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// ModelOptions are what a program lets models know of its surroundings.
type ModelOptions struct {
	// Lookup reads the environment; nil knows no variable.
	Lookup func(string) (string, bool)
	// ReadFile reads a key file; nil is os.ReadFile.
	ReadFile func(string) ([]byte, error)
	// Path makes a name of the settings a path; nil leaves it.
	Path func(string) string
	// Resume goes on with a cassette that exists.
	Resume bool
	// Spent is what earlier parts of the run have used of max_requests,
	// max_tokens and max_cost.
	Spent remote.Caps
}

// remoteWorkers is how many cases are worked on at once where a server answers
// and the settings name no number.
const remoteWorkers = 16

// replyTokens is the room for an answer in a server's context.
const replyTokens = 4096

// ModelNames lists the specs of the built-in models.
func ModelNames() []string {
	names := []string{"reference"}
	for _, s := range reference.Settings() {
		names = append(names, "reference:"+string(s))
	}
	return names
}

func modelKinds() []string { return append(ModelNames(), "openai:NAME", "ollama:NAME") }

// unknownModel is the problem of a model, or of a judge, whose kind is not among those known.
func unknownModel(where, what, got string, known []string) error {
	p := settings.Unknown(where, what, got, known)
	if _, name, _ := strings.Cut(strings.TrimPrefix(got, "llm:"), ":"); name != "" {
		own := strings.Split(strings.ReplaceAll(strings.Join(known, "\n"), "NAME", name), "\n")
		if n := settings.Nearest(got, own); n != "" {
			p.Hint = fmt.Sprintf("did you mean %q?", n)
		}
	}
	return p
}

// Model makes the model that the settings name: the reference model in this
// process, or one behind a server.
func (o ModelOptions) Model(ctx context.Context, c Config) (model.Model, error) {
	kind, name, named := strings.Cut(c.Model, ":")
	switch {
	case kind == "reference":
		for flag, value := range map[string]string{"--base-url": c.BaseURL, "--record": c.Record, "--replay": c.Replay} {
			if value != "" && (flag == "--base-url" || !c.embeds()) {
				return nil, &settings.Problem{Where: flag, What: c.Model + " runs in this process and asks no server",
					Hint: "leave it out, or name a model such as openai:NAME"}
			}
		}
		s := reference.Cautious
		if named {
			var err error
			if s, err = reference.Parse(name); err != nil || name == "" {
				return nil, unknownModel("--model", "model", c.Model, modelKinds())
			}
		}
		return reference.New(s, reference.NewCache(cacheBytes)), nil
	case kind != "openai" && kind != "ollama":
		return nil, unknownModel("--model", "model", c.Model, modelKinds())
	case name == "":
		return nil, &settings.Problem{Where: "--model", What: kind + ": names no model",
			Hint: "write it as " + kind + ":NAME"}
	case c.Record != "" && c.Replay != "":
		return nil, &settings.Problem{Where: "--replay", What: "a run is recorded or replayed, not both",
			Hint: "leave one of them out"}
	}
	m, err := o.remote(c, kind, name)
	if err != nil {
		return nil, err
	}
	if err := m.greet(ctx, c); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Examine tries the model that the settings name with a few small requests.
// embeddings names the server's model that embeds, "-" leaves that out.
func (o ModelOptions) Examine(ctx context.Context, c Config, embeddings string) ([]model.Check, error) {
	kind, name, _ := strings.Cut(c.Model, ":")
	switch {
	case kind == "reference":
		m, err := o.Model(ctx, c)
		if err != nil {
			return nil, err
		}
		return []model.Check{{Name: "reachable", Detail: m.(model.Namer).Name() +
			" runs in this process; it is not a language model"}}, nil
	case kind != "openai" && kind != "ollama" || name == "":
		_, err := o.Model(ctx, c)
		return nil, err
	}
	cold, err := o.remote(c, kind, name)
	if err != nil {
		return nil, err
	}
	defer cold.Close()
	warm := c
	warm.Temperature, warm.Record = 1, ""
	hot, err := o.remote(warm, kind, name)
	if err != nil {
		return nil, err
	}
	defer hot.Close()
	return model.Examine(ctx, cold.Model.(model.Subject),
		model.Examination{Warm: hot.Model, Embeddings: embeddings, Window: c.Window, Fenced: c.Protocol == "fenced"}), nil
}

// Waiting lists the requests to the model's server that have been under way for
// at least d, longest first: what a run that seems stuck waits for.
func (x *Experiment) Waiting(d time.Duration) []remote.Pending {
	if r, ok := x.Models[0].Model.(*server); ok {
		return r.client.Pending(d)
	}
	return nil
}

// reaches notes a model behind a server.
func (x *Experiment) reaches(m model.Model) {
	if r, ok := m.(*server); ok {
		x.far = append(x.far, r)
	}
}

// Pace is what the servers of models were found to bear, by the models' names.
func (x *Experiment) Pace() map[string]remote.Pace {
	out := map[string]remote.Pace{}
	for _, r := range x.far {
		if !r.replayed {
			out[r.Name()] = r.client.Pace()
		}
	}
	return out
}

// greetTime is how long a server may take to answer at all before a run begins.
const greetTime = 10 * time.Second

// measureTime is how long it may take a server to say what its context holds: one
// shows that only when the model is loaded.
const measureTime = 2 * time.Minute

// greet finds out whether anybody is there before the first trial: a run against
// a dead server would retry for hours. Whatever the server answers is enough, for
// not all list their models.
func (r *server) greet(ctx context.Context, c Config) error {
	if c.Replay != "" {
		r.measure(ctx) // as it was recorded: a prompt that filled the context was cut
		return nil
	}
	lister, ok := r.Model.(model.Subject)
	if !ok {
		return nil
	}
	greeting, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	// A server that is just being started gets a second or two.
	list, err := lister.Models(remote.WithCall(greeting, &remote.Call{Most: 3}))
	r.listed = list
	if kind, known := remote.KindOf(err); err == nil || known && kind != remote.Transient {
		r.measure(ctx)
		return nil
	}
	start := "start the server"
	if strings.HasPrefix(c.Model, "ollama:") {
		start += " with `ollama serve`"
	}
	p := &settings.Problem{Where: "--model", What: c.Model + ": nobody answers", Err: err,
		Hint: start + ", or name its address with --base-url"}
	if e, ok := errors.AsType[*remote.Error](err); ok {
		said := *e
		said.Hint = "" // ours says more
		p.Err = &said
	}
	return p
}

// measure asks for the server's context. What a server does not say is not guessed.
func (r *server) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	if s, ok := r.Model.(model.Sized); ok {
		r.context, _ = s.Context(ctx)
	}
}

// fits refuses a window that the server's context does not hold: a prompt that fills
// the one would be cut to the other.
func fits(c Config, m model.Model) error {
	r, ok := m.(*server)
	if !ok {
		return nil
	}
	if hint, ok := model.Fits(c.Window, r.context); !ok {
		what := fmt.Sprintf("the window is %d tokens, and the context of %s at its server %d", c.Window, c.Model, r.context)
		return &settings.Problem{Where: "window", What: what, Hint: hint}
	}
	return nil
}

// remote is a model behind a server, with what must be closed at the end.
type server struct {
	context int // the server's, in tokens; 0 is not known
	model.Model
	model.Namer
	client   *remote.Client
	tape     *cassette.Cassette
	listed   []string // what the server says that it has
	replayed bool     // the cassette answers instead
	// Where the key came from, "" where there is none, and where it would be looked for.
	key, variable string
}

func (r *server) Embed(ctx context.Context, name string, texts []string) ([][]float32, error) {
	return r.Model.(model.Embedder).Embed(ctx, name, texts)
}

// Close ends the connections and the cassette.
func (r *server) Close() error {
	r.client.Close()
	if r.tape != nil {
		return r.tape.Close()
	}
	return nil
}

func (o ModelOptions) remote(c Config, kind, name string) (*server, error) {
	r := &server{client: remote.New(remote.Options{InFlight: c.Concurrency,
		Timeout: c.RequestTimeout, Attempts: c.Attempts, RetryBudget: c.RetryBudget,
		RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute,
		Caps: remote.Caps{Calls: int64(c.MaxRequests), Tokens: int64(c.MaxTokens), Cost: c.MaxCost}, Spent: o.Spent})}
	if err := o.connect(r, c, kind, name); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

func (o ModelOptions) connect(r *server, c Config, kind, name string) (err error) {
	lookup, read, path := o.Lookup, o.ReadFile, o.Path
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	if read == nil {
		read = os.ReadFile
	}
	if path == nil {
		path = func(s string) string { return s }
	}
	if r.tape, err = o.tape(c, path, r.client); err != nil {
		return err
	}
	var wrap func(string, http.RoundTripper) http.RoundTripper
	if r.tape != nil {
		wrap = r.tape.Wrap
	}
	variables := openai.KeyVariables()
	if kind == "ollama" {
		variables = ollama.KeyVariables()
	}
	r.variable, r.replayed = variables[0], c.Replay != ""
	var key remote.Secret
	key, r.key, err = remote.Key(lookup, read, c.KeyFile, variables...)
	if err != nil {
		return &settings.Problem{Where: "key_file", Err: err}
	}
	to := model.ServerOptions{Model: name, Address: c.BaseURL, Key: key, Temperature: &c.Temperature,
		Context: c.Window + replyTokens,
		Omit:    c.Omit, Stream: c.Stream, Client: r.client, Cassette: wrap, Replayed: c.Replay != "",
		Settings: model.Settings{Fenced: c.Protocol == "fenced", StripThinking: c.StripThinking, MaxTokens: c.ReplyTokens,
			Price: remote.Price{Prompt: c.PricePrompt, Completion: c.PriceCompletion}}}
	var m interface {
		model.Model
		model.Namer
	}
	if kind == "openai" {
		m, err = openai.New(to)
	} else {
		if to.Address == "" {
			to.Address, _ = lookup("OLLAMA_HOST")
		}
		m, err = ollama.New(to)
	}
	if err != nil {
		return &settings.Problem{Where: "--model", Err: err}
	}
	r.Model, r.Namer = m, m
	return nil
}

// tape opens the cassette that the settings name, if they name one.
func (o ModelOptions) tape(c Config, path func(string) string, client *remote.Client) (t *cassette.Cassette,
	err error) {
	where := "--record"
	switch {
	case c.Replay != "":
		where = "--replay"
		t, err = cassette.Replay(path(c.Replay), cassette.Options{})
	case c.Record == "":
		return nil, nil
	case o.Resume:
		if t, err = cassette.Resume(path(c.Record), client.Redactor); errors.Is(err, fs.ErrNotExist) {
			t, err = cassette.Record(path(c.Record), client.Redactor)
		}
	default:
		if t, err = cassette.Record(path(c.Record), client.Redactor); errors.Is(err, fs.ErrExist) {
			return nil, &settings.Problem{Where: where, What: fmt.Sprintf("%s exists already", c.Record),
				Hint: "name a new file, or go on with the run by --resume"}
		}
	}
	if err != nil {
		return nil, &settings.Problem{Where: where, Err: err}
	}
	return t, nil
}

// bounded holds a model to what it may write and take in one trial.
type bounded struct {
	model.Model
	tokens, messages int64 // 0 is no bound
}

// bounded is the model under the bounds that the settings give a trial.
func (c *Config) bounded(m model.Model) model.Model {
	if c.TrialTokens == 0 && c.TrialMessages == 0 {
		return m
	}
	return bounded{m, int64(c.TrialTokens), int64(c.TrialMessages)}
}

func (b bounded) Unwrap() model.Model { return b.Model }

// Next implements [model.Model]. The error is that of a trial beyond its bounds.
func (b bounded) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	reply, err := b.Model.Next(ctx, req)
	t := remote.TrialOf(ctx)
	if err != nil || t == nil {
		return reply, err
	}
	messages, tokens := t.Messages.Add(1), t.Tokens.Add(int64(reply.Usage.Prompt+reply.Usage.Completion))
	switch {
	case b.messages > 0 && messages > b.messages:
		err = fmt.Errorf("it wrote more messages than trial_messages (%d) allows", b.messages)
	case b.tokens > 0 && tokens > b.tokens:
		err = fmt.Errorf("it took %d tokens, more than trial_tokens (%d) allows", tokens, b.tokens)
	}
	return reply, err
}
