package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// guardToken is the variable that holds the token of the HTTP server.
const guardToken = external.TokenVariable

type guardServe struct {
	env *Env
	log *slog.Logger // nil is none
	guard.Options

	http, tlsCert, tlsKey string
	mcp                   bool
	store, key, writer    string
	page                  string
	pending               pending.Options
	limits                serve.Limits
	server                serve.Server // what it allows of trials
	sealEvery             time.Duration
	sealAfter             int
	sealKey               string
	sealing               *serve.Sealer // of the store, nil for none
	closed                func()        // ends the page
}

func newGuardServe(env *Env, c *cobra.Command) action {
	o := &guardServe{env: env}
	fs := c.Flags()
	policy := policyFlag(c)
	o.addHTTP(c, "")
	fs.StringVar(&o.tlsCert, "tls-cert", "", "`FILE` with the certificate of the HTTP server, in PEM")
	fs.StringVar(&o.tlsKey, "tls-key", "", "`FILE` with its private key, in PEM")
	fs.BoolVar(&o.mcp, "mcp", false, "Speak the Model Context Protocol on standard input and output")
	o.addStore(c)
	fs.StringVar(&o.writer, "writer", "", "The `CLASS` that a client can claim at most: USER (AGENT_AUTHORED with --mcp "+
		"if left out), AGENT_AUTHORED or EXTERNAL_TOOL")
	log := o.addLog(c)
	fs.Int64Var(&o.limits.Body, "max-body", 8<<20, "Most `BYTES` of a request")
	fs.IntVar(&o.limits.Concurrent, "max-concurrent", 64, "Most requests at once")
	fs.DurationVar(&o.limits.Time, "timeout", 30*time.Second, "Longest time of a request, its body included")
	fs.IntVar(&o.limits.Connections, "max-connections", 256,
		"Most connections at once; the slowest gives way to a new one")
	fs.DurationVar(&o.server.Idle, "trial-idle", serve.DefaultIdle,
		"How long an open trial may go without a question before it expires")
	fs.IntVar(&o.server.Trials, "max-trials", serve.DefaultTrials,
		"Most open trials; the one idle longest expires for a new one")
	fs.IntVar(&o.server.Memory, "max-trial-bytes", serve.DefaultMemory,
		"Most `BYTES` kept of the records of all open trials; those idle longest expire")
	return func(ctx context.Context, _ []string) (err error) {
		if err := o.check(); err != nil {
			return err
		}
		if o.mcp && !c.Flags().Changed("policy") {
			*policy = "memory" // nothing shows it what the agent does with its memory
		}
		if o.Policy, err = env.policy(*policy); err != nil {
			return err
		}
		log()
		if o.mcp {
			return o.serveMemory(ctx)
		}
		return o.serveGates(ctx, *policy)
	}
}

func (o *guardServe) addHTTP(c *cobra.Command, otherwise string) {
	c.Flags().StringVar(&o.http, "http", otherwise, "Answer over HTTP at `HOST:PORT`; port 0 takes a free one")
}

func (o *guardServe) addStore(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&o.store, "store", "", "`FILE` that the memory is kept in, and what waits for a person")
	fs.StringVar(&o.page, "page", "", "Serve a page on which a person decides what waits in --store, at `HOST:PORT` of this "+
		"machine; port 0 takes a free one")
	fs.DurationVar(&o.pending.Keep, "pending-for", pending.DefaultKeep, "How long a call waits for a person, may be "+
		"made once it is approved, and stays refused")
	fs.IntVar(&o.pending.Most, "max-pending", pending.DefaultMost, "Most calls that wait for a person, and most things that would be "+
		"remembered")
	fs.StringVar(&o.key, "key", "", "`FILE` with the key that signs, made if it is missing (left out: STORE.guard-key, "+
		"or a key of the process)")
	fs.DurationVar(&o.sealEvery, "seal-every", serve.DefaultSealEvery,
		"After what time changes of the store are sealed; 0 is never")
	fs.IntVar(&o.sealAfter, "seal-after", serve.DefaultSealAfter, "After how many changes the store is sealed; 0 is never")
	fs.StringVar(&o.sealKey, "seal-key", "", "`FILE` with the key that seals the store (STORE.signer if left out, made if "+
		"it is missing)")
}

// addLog adds the flags of the log, and returns what opens it.
func (o *guardServe) addLog(c *cobra.Command) func() {
	level := choiceFlag(c, "log", "warn", "What is logged: debug is every decision, warn what was not let through, off "+
		"nothing", "debug", "info", "warn", "off")
	c.Flags().BoolVar(&o.Reveal, "reveal", false, "Log contents and keys too")
	return func() {
		if *level != "off" { // lines of JSON, in which what a terminal would obey is escaped
			var l slog.Level
			must(l.UnmarshalText([]byte(*level)))
			o.log = slog.New(slog.NewJSONHandler(inert.Terminal(o.env.Stderr), &slog.HandlerOptions{Level: l}))
			o.Hook = guard.Slog(o.log)
		}
	}
}

// check holds the flags against each other.
func (o *guardServe) check() error {
	switch {
	case o.sealEvery < 0 || o.sealAfter < 0 || o.store == "" && o.sealKey != "":
		return &settings.Problem{What: "--seal-every, --seal-after (0 or more) and --seal-key are about --store"}
	case o.page != "" && o.store == "":
		return &settings.Problem{What: "--page shows what waits in --store", Hint: "name the file with --store FILE"}
	case o.mcp && o.http != "":
		return &settings.Problem{What: "--mcp and --http are two servers", Hint: "start one process for each"}
	case o.http == "" && (o.tlsCert != "" || o.tlsKey != ""):
		return &settings.Problem{What: "--tls-cert and --tls-key are for --http"}
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return &settings.Problem{What: "--tls-cert and --tls-key go together"}
	case o.limits.Body < 1 || o.limits.Concurrent < 1 || o.limits.Time <= 0 || o.limits.Connections < 1 ||
		o.server.Idle <= 0 || o.server.Trials < 1 || o.server.Memory < 1 || o.pending.Keep <= 0 || o.pending.Most < 1:
		return &settings.Problem{What: "--max-body, --max-concurrent, --timeout, --max-connections, --trial-idle, " +
			"--max-trials, --max-trial-bytes, --pending-for and --max-pending must be more than 0"}
	}
	return nil
}

// serveGates answers the guard protocol, on standard input and output or over HTTP.
func (o *guardServe) serveGates(ctx context.Context, policy string) (err error) {
	most, err := o.writerClass(memory.User)
	if err != nil {
		return err
	}
	s := &o.server
	if s.Owner = o.env.Getenv(external.OwnerVariable); s.Owner != "" {
		if err := longEnough(external.OwnerVariable, s.Owner); err != nil {
			return err
		}
	}
	if o.store != "" {
		st, done, failed := o.openStore(ctx)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, done()) }()
		if s.Pending, err = o.list(ctx, st); err != nil {
			return err
		}
		o.Policy.Authority.By = guard.Show // there is somebody to show the call to
	} else if err := o.readKeys(); err != nil {
		return err
	}
	metrics := serve.NewMetrics()
	if logged := o.Hook; logged != nil {
		o.Hook = func(ctx context.Context, e *guard.Event) {
			metrics.Hook(ctx, e)
			logged(ctx, e)
		}
	} else if o.http != "" {
		o.Hook = metrics.Hook
	}
	g, err := guard.New(o.Options)
	if err != nil {
		return err
	}
	decides := map[string]string{"policy": policy}
	if o.store != "" {
		decides["confirm"] = "person"
	}
	conf, err := json.Marshal(decides)
	if err != nil {
		return err
	}
	s.Identity = defenses.Identity{Name: "guard", Version: versionString(), Configuration: conf}
	s.Open, s.Most = g.Open, &most
	s.Panicked = func(value any, stack []byte) {
		if o.log != nil {
			o.log.Error("the guard failed", "panic", fmt.Sprint(value), "stack", string(stack))
		}
	}
	if o.http == "" {
		if err := s.Serve(ctx, o.env.Stdin, o.env.Stdout); err != nil {
			return fmt.Errorf("serving the guard: %w", err)
		}
		return nil
	}
	h := serve.Handler(s, serve.HandlerOptions{Limits: o.limits, Token: o.env.Getenv(guardToken), Metrics: metrics})
	return o.answer(ctx, h, "")
}

// answer answers over HTTP, once it has printed where.
func (o *guardServe) answer(ctx context.Context, h http.Handler, path string) error {
	l, err := o.listen(ctx)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.tlsCert != "" {
		scheme = "https"
	}
	if _, err := fmt.Fprintf(o.env.Stdout, "%s://%s%s\n", scheme, l.Addr(), path); err != nil {
		return fmt.Errorf("printing the address: %w", err)
	}
	if err := serve.ServeHTTP(ctx, l, h, o.limits, serveGrace); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// longEnough refuses a token that could be guessed.
func longEnough(variable, token string) error {
	if len(token) < 16 {
		return &settings.Problem{Where: variable, What: "the token has less than 16 characters",
			Hint: "draw one at random: openssl rand -hex 24"}
	}
	return nil
}

// readKeys reads the keys that sign, or makes one; none is named where there is no file.
func (o *guardServe) readKeys() (err error) {
	if o.key != "" {
		o.Keys, err = serve.ReadKeys(o.env.path(o.key), o.key, o.env.Now())
	}
	return err
}

// listen listens on the address. One that other machines can reach needs a token and TLS.
func (o *guardServe) listen(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.http)
	if err != nil {
		return nil, &settings.Problem{Where: "--http", What: fmt.Sprintf("%q is no address", o.http),
			Hint: "HOST:PORT, as in 127.0.0.1:8765"}
	}
	open := !remote.Loopback(host)
	if open {
		token := o.env.Getenv(guardToken)
		if token == "" {
			return nil, &settings.Problem{Where: "--http", What: "other machines can reach " + o.http,
				Hint: "set a token in " + guardToken + " and give --tls-cert and --tls-key, or use 127.0.0.1"}
		}
		if err := longEnough(guardToken, token); err != nil {
			return nil, err
		}
		if o.tlsCert == "" {
			return nil, &settings.Problem{Where: "--http", What: "other machines can reach " + o.http +
				", and the token would cross the network in clear", Hint: "give --tls-cert and --tls-key, or use 127.0.0.1"}
		}
	}
	var pair tls.Certificate
	if o.tlsCert != "" {
		if pair, err = tls.LoadX509KeyPair(o.env.path(o.tlsCert), o.env.path(o.tlsKey)); err != nil {
			return nil, &settings.Problem{Where: "--tls-cert", Err: err}
		}
	}
	l, err := remote.Listen(ctx, o.http, open)
	if err != nil {
		return nil, &settings.Problem{Where: "--http", Err: err}
	}
	if o.tlsCert != "" {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"}})
	}
	return l, nil
}

func (o *guardServe) writerClass(otherwise memory.Class) (memory.Class, error) {
	class := otherwise
	if o.writer == "" {
		return class, nil
	}
	if err := class.UnmarshalText([]byte(o.writer)); err != nil || class == memory.System {
		return class, settings.Unknown("--writer", "value", o.writer, []string{memory.User.String(), memory.Agent.String(),
			memory.External.String()})
	}
	return class, nil
}

// serveMemory offers a guarded memory over the Model Context Protocol.
func (o *guardServe) serveMemory(ctx context.Context) (err error) {
	m, done, err := o.memory(ctx, memory.Agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s := serve.NewMCP(m, versionString(), o.limits)
	if err := serve.ServeMCP(ctx, s, io.NopCloser(o.env.Stdin), unclosed{o.env.Stdout}, serveGrace); err != nil {
		return fmt.Errorf("serving the memory: %w", err)
	}
	return nil
}

// openStore opens the store, reads its keys and begins to seal it. What it returns ends
// that, and closes the store.
func (o *guardServe) openStore(ctx context.Context) (st *store.History, done func() error, err error) {
	if st, err = store.Open(ctx, o.env.path(o.store), store.Options{}); err != nil {
		return nil, nil, err
	}
	end := func() {}
	o.closed = func() {}
	done = func() error { o.closed(); end(); return st.Close() }
	if o.sealEvery > 0 || o.sealAfter > 0 {
		if o.sealing, err = o.sealer(ctx, st); err != nil {
			return nil, nil, errors.Join(err, done())
		}
		sealing, stop := context.WithCancel(context.WithoutCancel(ctx)) // calls in flight are finished, and sealed
		var sealer sync.WaitGroup
		sealer.Go(func() { o.sealing.Run(sealing) })
		end = func() { stop(); sealer.Wait() } // before the store is closed
	}
	o.key = cmp.Or(o.key, o.store+".guard-key")
	if err = o.readKeys(); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return st, done, nil
}

// list is what waits for a person in the store, with the page on which they decide.
func (o *guardServe) list(ctx context.Context, st *store.History) (*pending.List, error) {
	p := o.pending
	p.Keys, p.Now = o.Keys, o.env.Now
	p.Told = func(e pending.Event) {
		if o.log != nil {
			level := slog.LevelWarn
			if e.Answer == pending.Passes {
				level = slog.LevelInfo
			}
			o.log.Log(context.Background(), level, "a person confirms this", "id", e.ID, "tool", e.Tool,
				"answer", string(e.Answer), "why", e.Why)
		}
	}
	list := pending.New(st, p)
	if o.page == "" {
		return list, nil
	}
	l, err := remote.Listen(ctx, o.page, false)
	if err != nil {
		return nil, &settings.Problem{Where: "--page", Err: err, Hint: "HOST:PORT, as in 127.0.0.1:8766"}
	}
	page := serve.NewPage(list, (&memoryCommand{env: o.env}).operator())
	// The address has the token: it goes where the agent's side does not read.
	if err := serve.WriteAddress(o.env.path(o.store), page.Door.URL(l.Addr())); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	o.env.say("the address of the page is in %s: `memtox guard pending --store %s` says it", serve.AddressFile(o.store), o.store)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var server sync.WaitGroup
	server.Go(func() {
		err := serve.ServeHTTP(serving, l, page.Handler(l.Addr()), o.limits, serveGrace)
		if err != nil && serving.Err() == nil && o.log != nil {
			o.log.Error("the page is served no longer", "error", err.Error())
		}
	})
	o.closed = func() {
		stop()
		server.Wait()
		if serve.ReadAddress(o.env.path(o.store)) == page.Door.URL(l.Addr()) {
			os.Remove(serve.AddressFile(o.env.path(o.store)))
		}
	}
	return list, nil
}

// sealer seals what a process before left behind, and then what this one changes.
func (o *guardServe) sealer(ctx context.Context, st *store.History) (*serve.Sealer, error) {
	m := &memoryCommand{env: o.env, name: o.store}
	s := &serve.Sealer{Store: st, Every: o.sealEvery, After: o.sealAfter, Now: o.env.Now,
		Told: func(s serve.Sealing) {
			switch {
			case o.log == nil:
			case s.Err != nil:
				o.log.Error("the store could not be sealed", "store", o.store, "error", s.Err.Error())
			case s.Left:
				o.log.Warn("verified and sealed what another process had left unsealed", "store", o.store, "snapshot",
					s.Snapshot, "entries", s.Entries)
			default:
				o.log.Info("sealed the store", "store", o.store, "snapshot", s.Snapshot, "entries", s.Entries)
			}
		}}
	var err error
	if s.Signer, s.Verifier, err = m.keys().Signer(ctx, seal.NewLedger(st), o.sealKey); err == nil {
		err = s.Begin(ctx)
	}
	if errors.Is(err, seal.ErrIntegrity) || errors.Is(err, store.ErrDamaged) {
		return nil, fmt.Errorf("%s is not served: %w: `memtox memory verify --store %[1]s` names all; bring it back from "+
			"a copy, or, to go on with it as it is, move %[1]s.head away and take a `memtox memory snapshot`", o.store, err)
	}
	return s, err
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
