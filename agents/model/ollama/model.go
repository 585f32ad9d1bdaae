package ollama

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// DefaultContext is the context in tokens that is asked for if nothing else is
// said. Ollama's own default is smaller than the window of a profile, and it
// cuts a longer prompt without a word.
const DefaultContext = 16384

// KeyVariables are the environment variables that may hold the key; only a
// hosted server wants one.
func KeyVariables() []string { return []string{"OLLAMA_API_KEY"} }

// Model is one model of one server.
type Model struct {
	model.Server
	admin  *api.Client
	window int // num_ctx of every request; 0 leaves it to the server
}

// New returns a model; its address is as OLLAMA_HOST has it. It sends nothing.
func New(o model.ServerOptions) (*Model, error) {
	base, err := Host(o.Address)
	if err != nil {
		return nil, err
	}
	m := new(Model)
	if err := m.Open(model.Protocol{Name: "ollama", Stream: "application/x-ndjson", Path: "/api/chat",
		Encode: m.encode, Read: read, Judge: judge}, base, o); err != nil {
		return nil, err
	}
	if !slices.Contains(o.Omit, "num_ctx") {
		m.window = cmp.Or(o.Context, DefaultContext)
	}
	m.Held.Store(int64(m.window))
	m.admin = api.NewClient(base, m.HTTP)
	return m, nil
}

// encode writes a request. It does not go through api.Client.Chat, which takes a
// buffer of 8 MB for each call: 1.2 ms to clear it, where all the rest of a call
// takes 0.1 ms. Nor are tool calls read into the api's types, which bring every number
// to a float64: the digits of an account would be lost.
func (m *Model) encode(req model.Request) ([]byte, error) {
	options := map[string]any{}
	if m.window != 0 {
		options["num_ctx"] = m.window
	}
	if t := m.Sent(); t != nil {
		options["temperature"] = *t
	}
	if !slices.Contains(m.Omit, "seed") {
		options["seed"] = req.Seed
	}
	if req.MaxTokens > 0 {
		options["num_predict"] = req.MaxTokens
	}
	// A prompt that does not fit is an error, not silently another prompt.
	body, err := json.Marshal(api.ChatRequest{Model: m.Model, Messages: messages(req), Stream: &m.Stream,
		Truncate: new(bool), Shift: new(bool), Options: options})
	if err != nil {
		return nil, err
	}
	return model.With(body, "tools", model.EncodeTools(req.Tools)), nil
}

func messages(req model.Request) []api.Message {
	out := make([]api.Message, len(req.Messages))
	for i, m := range req.Messages {
		o := &out[i]
		o.Role, o.Content = string(m.Role), m.Content
		if m.Role == model.ToolRole {
			o.ToolName, o.ToolCallID = m.Name, m.CallID
		}
		for j, c := range m.Calls {
			args := api.NewToolCallFunctionArguments()
			for _, a := range c.Args {
				args.Set(a.Name, model.Value(req.Tools, c.Name, a))
			}
			o.ToolCalls = append(o.ToolCalls, api.ToolCall{ID: c.ID,
				Function: api.ToolCallFunction{Index: j, Name: c.Name, Arguments: args}})
		}
	}
	return out
}

// piece is one line of an answer: all of it, or a piece of a stream. What servers
// spoil is kept raw until it is known what it would have been.
type piece struct {
	Message *struct {
		Content *string         `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
	} `json:"message"`
	Error      string          `json:"error"`
	Done       bool            `json:"done"`
	Reason     string          `json:"done_reason"`
	Prompt     json.RawMessage `json:"prompt_eval_count"`
	Completion json.RawMessage `json:"eval_count"`
}

// read reads an answer, whole or streamed. A server that gives no answer, a part of
// one or one that contradicts itself must never look like a model that says nothing:
// each is an error. The usage is right even beside one.
func read(raw []byte) (a model.Answer, spoilt *remote.Error) {
	var said strings.Builder
	defer func() { a.Text = said.String() }()
	some := false // content or calls, be it an empty text
	var last piece
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p piece
		err := d.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			return a, remote.Spoilt(remote.NoAnswer, "the answer does not follow the protocol: %w", err)
		}
		last = p
		if p.Message != nil {
			some = some || p.Message.Content != nil
			if p.Message.Content != nil {
				said.WriteString(*p.Message.Content)
			}
			calls, err := readCalls(p.Message.Calls)
			if err != nil {
				spoilt = cmp.Or(spoilt, err)
			}
			a.Calls = append(a.Calls, calls...)
		}
		for to, from := range map[*int]json.RawMessage{&a.Prompt: p.Prompt, &a.Completion: p.Completion} {
			n, err := model.Count(from)
			if e, ok := errors.AsType[*remote.Error](err); ok {
				spoilt = cmp.Or(spoilt, e)
			}
			*to += n
		}
	}
	switch {
	case spoilt != nil:
		return a, spoilt
	case last.Reason != "" && last.Reason != "stop" && last.Reason != "load" && last.Reason != "unload":
		return a, remote.Spoilt(remote.CutAnswer, "the answer ended by done_reason %q", text.Clip(last.Reason, 40))
	case !last.Done && (some || len(a.Calls) > 0):
		return a, remote.Spoilt(remote.CutAnswer, "the answer does not say that it is done")
	case !some && len(a.Calls) == 0 || last.Reason == "load" || last.Reason == "unload":
		return a, remote.Spoilt(remote.NoAnswer, "the answer holds no message, or one with neither content nor calls")
	}
	return a, nil
}

func readCalls(raw json.RawMessage) ([]model.RawCall, *remote.Error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var calls []struct {
		ID       string `json:"id"`
		Function *struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &calls); err != nil {
		return nil, remote.Spoilt(remote.BrokenCall, "the tool calls do not follow the protocol: %w", err)
	}
	var out []model.RawCall
	for _, c := range calls {
		if c.Function == nil || c.Function.Name == "" {
			return nil, remote.Spoilt(remote.BrokenCall, "a tool call names no tool")
		}
		out = append(out, model.RawCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Args})
	}
	return out, nil
}

// judge recognises a tool call that Ollama's own parsers could not read, an error
// that came when a stream had begun with status 200, and with success an answer that
// may be there when it is asked for again.
func judge(status int, body []byte) *remote.Error {
	failed := status >= 400
	if !failed {
		last := bytes.TrimRight(body, " \r\n")
		last = last[bytes.LastIndexByte(last, '\n')+1:]
		var p piece
		failed = bytes.Contains(last, []byte(`"error"`)) && json.Unmarshal(last, &p) == nil && p.Error != ""
	}
	switch {
	case failed && bytes.Contains(body, []byte("error parsing tool call")):
		return &remote.Error{Kind: remote.Malformed}
	case failed && status < 400:
		return &remote.Error{Kind: remote.Transient}
	case status < 300:
		if _, err := read(body); err != nil && err.Kind.Retryable() {
			return err
		}
	}
	return nil
}

// Models lists the models that the server has.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	list, err := m.admin.List(ctx)
	if err != nil {
		return nil, m.Refine(ctx, err)
	}
	var out []string
	for _, x := range list.Models {
		out = append(out, x.Name)
	}
	return out, nil
}

// Context asks the server how many tokens its context for the model holds: no more
// than the model was trained for, and no more than is asked for (num_ctx), here or by
// the model's own parameters. 0 is what is not said. Answers to prompts that fill it
// are errors.
func (m *Model) Context(ctx context.Context) (int, error) {
	show, err := m.admin.Show(ctx, &api.ShowRequest{Model: m.Model})
	if err != nil {
		return 0, m.Refine(ctx, err)
	}
	var said []int
	for name, v := range show.ModelInfo {
		if trained, ok := v.(float64); ok && strings.HasSuffix(name, ".context_length") && trained > 0 && trained < 1<<31 {
			said = append(said, int(trained))
		}
	}
	asked := m.window
	for line := range strings.Lines(show.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" && m.window == 0 {
			asked, _ = strconv.Atoi(f[1])
			said = append(said, asked)
		}
	}
	if len(said) == 0 {
		return 0, nil
	}
	if asked > 0 {
		said = append(said, asked)
	}
	n := slices.Min(said)
	m.Held.Store(int64(n))
	return n, nil
}

// Embed returns the vectors of texts by the server's embedding interface, with
// the given model, or this one. A text that does not fit is an error, not silently
// another text.
func (m *Model) Embed(ctx context.Context, name string, texts []string) ([][]float32, error) {
	return m.Embedding(ctx, name, texts, func(ctx context.Context, name string) ([][]float32, int, error) {
		resp, err := m.admin.Embed(ctx, &api.EmbedRequest{Model: name, Input: texts, Truncate: new(bool)})
		if err != nil {
			return nil, 0, err
		}
		return resp.Embeddings, resp.PromptEvalCount, nil
	})
}
