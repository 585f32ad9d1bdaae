package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/external"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// guardToken is the variable that holds the token of the HTTP server.
const guardToken = external.TokenVariable

func newGuardServe(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Serve the guard to an agent in any language: JSON Lines, HTTP or MCP", Args: noArgs,
		Long: `Serve the guard as a process beside an agent.

Without a flag it answers the guard protocol (docs/external-guards.md) on standard
input and output, a line of JSON for a line of JSON, until the input ends. With --http
it answers the same messages as POST requests, and has /healthz and /metrics. With
--mcp it is a server of the Model Context Protocol on standard input and output that
offers a guarded memory: add_memory, search_memories, get_memories, update_memory,
delete_memory, and the resource memory://snapshot. The memory is kept in --store, or
until the process ends.

What is signed is signed with a key that no client has: a fresh one of the process,
that of --key, or that beside --store. Nobody speaks for the operator or seeds records
unseen, but a client that shows the token of ` + external.OwnerVariable + `.

An address that other machines can reach needs a token (` + guardToken + `) and TLS
(--tls-cert, --tls-key). What the guard decides is logged to standard error, a line of
JSON a decision, contents by their hash alone unless --reveal. SIGTERM and an interrupt
end it in good order.`,
		Example: "  memtox run --defense guard,served=exec:'memtox guard serve'\n  memtox guard serve --http " +
			"127.0.0.1:8765 --policy strict\n  memtox guard serve --mcp --store memory.db",
	}
	fs := c.Flags()
	policy := policyFlag(c)
	addr := fs.String("http", "", "Answer over HTTP at `HOST:PORT`; port 0 takes a free one")
	cert := fs.String("tls-cert", "", "`FILE` with the certificate of the HTTP server, in PEM")
	key := fs.String("tls-key", "", "`FILE` with its private key, in PEM")
	useMCP := fs.Bool("mcp", false, "Speak the Model Context Protocol on standard input and output")
	st := fs.String("store", "", "`FILE` that the memory of --mcp is kept in")
	signKey := fs.String("key", "", "`FILE` with the key that signs, made if it is missing (left out: STORE.guard-key, "+
		"or a key of the process)")
	writer := fs.String("writer", "", "The `CLASS` that a client can claim at most: USER (AGENT_AUTHORED with --mcp if "+
		"left out), AGENT_AUTHORED or EXTERNAL_TOOL")
	logLevel := fs.String("log", "warn", "What is logged: debug is every decision, warn what was not let through, off "+
		"nothing")
	reveal := fs.Bool("reveal", false, "Log contents and keys too")
	var limits serve.Limits
	fs.Int64Var(&limits.Body, "max-body", 8<<20, "Most `BYTES` of a request")
	fs.IntVar(&limits.Concurrent, "max-concurrent", 64, "Most requests at once")
	fs.DurationVar(&limits.Time, "timeout", 30*time.Second, "Longest time of a request, its body included")
	fs.IntVar(&limits.Connections, "max-connections", 256,
		"Most connections at once; the slowest gives way to a new one")
	idle := fs.Duration("trial-idle", serve.DefaultIdle,
		"How long an open trial may go without a question before it expires")
	trials := fs.Int("max-trials", serve.DefaultTrials,
		"Most open trials; the one idle longest expires for a new one")
	kept := fs.Int("max-trial-bytes", serve.DefaultMemory,
		"Most `BYTES` kept of the records of all open trials; those idle longest expire")
	every := fs.Duration("seal-every", serve.DefaultSealEvery,
		"After what time changes of the store are sealed; 0 is never")
	after := fs.Int("seal-after", serve.DefaultSealAfter, "After how many changes the store is sealed; 0 is never")
	sealKey := fs.String("seal-key", "", "`FILE` with the key that seals the store (STORE.signer if left out, made if "+
		"it is missing)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *every < 0 || *after < 0 || *st == "" && *sealKey != "":
			return &settings.Problem{What: "--seal-every, --seal-after (0 or more) and --seal-key are about --store"}
		case *useMCP && *addr != "":
			return &settings.Problem{What: "--mcp and --http are two servers", Hint: "start one process for each"}
		case !*useMCP && *st != "":
			return &settings.Problem{What: "--store is for --mcp: without it the agent keeps its own store"}
		case *addr == "" && (*cert != "" || *key != ""):
			return &settings.Problem{What: "--tls-cert and --tls-key are for --http"}
		case (*cert == "") != (*key == ""):
			return &settings.Problem{What: "--tls-cert and --tls-key go together"}
		case limits.Body < 1 || limits.Concurrent < 1 || limits.Time <= 0 || limits.Connections < 1 || *idle <= 0 ||
			*trials < 1 || *kept < 1:
			return &settings.Problem{What: "--max-body, --max-concurrent, --timeout, --max-connections, --trial-idle, " +
				"--max-trials and --max-trial-bytes must be more than 0"}
		}
		p, err := env.policy(*policy)
		if err != nil {
			return err
		}
		log, err := guardLog(env, *logLevel)
		if err != nil {
			return err
		}
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		if *useMCP {
			return serveMCP(ctx, env, mcpServe{policy: p, log: log, reveal: *reveal, store: *st, key: *signKey,
				writer: *writer, limits: limits,
				every: *every, after: *after, sealKey: *sealKey})
		}
		most, err := writerClass(*writer, memory.User)
		if err != nil {
			return err
		}
		owner := env.Getenv(external.OwnerVariable)
		if owner != "" && len(owner) < 16 {
			return &settings.Problem{Where: external.OwnerVariable, What: "the token has less than 16 characters",
				Hint: "draw one at random: openssl rand -hex 24"}
		}
		opts := guard.Options{Policy: p, Reveal: *reveal}
		if *signKey != "" {
			if opts.Keys, err = serve.ReadKeys(env.path(*signKey), *signKey, env.Now()); err != nil {
				return err
			}
		}
		metrics := serve.NewMetrics()
		if log != nil || *addr != "" {
			opts.Hook = hooks(log, metrics)
		}
		g, err := guard.New(opts)
		if err != nil {
			return err
		}
		conf, err := json.Marshal(map[string]string{"policy": *policy})
		if err != nil {
			return err
		}
		id := defenses.Identity{Name: "guard", Version: versionString(), Configuration: conf}
		s := &serve.Server{Identity: id, Open: g.Open, Owner: owner, Most: &most, Idle: *idle, Trials: *trials,
			Memory: *kept}
		if *addr == "" {
			if err := s.Serve(ctx, env.Stdin, env.Stdout); err != nil {
				return fmt.Errorf("serving the guard: %w", err)
			}
			return nil
		}
		l, err := listenGuard(ctx, env, *addr, *cert, *key)
		if err != nil {
			return err
		}
		scheme := "http"
		if *cert != "" {
			scheme = "https"
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s://%s\n", scheme, l.Addr()); err != nil {
			return fmt.Errorf("printing the address: %w", err)
		}
		h := serve.Handler(s, serve.HandlerOptions{Limits: limits, Token: env.Getenv(guardToken), Metrics: metrics})
		if err := serve.ServeHTTP(ctx, l, h, limits, serveGrace); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	return c
}

// hooks logs decisions, where there is a log, and counts them.
func hooks(log *slog.Logger, m *serve.Metrics) guard.Hook {
	if log == nil {
		return m.Hook
	}
	logged := guard.Slog(log)
	return func(ctx context.Context, e *guard.Event) {
		m.Hook(ctx, e)
		logged(ctx, e)
	}
}

// guardLog is the log of decisions, nil for none. Lines are JSON, in which what a
// terminal would obey is escaped.
func guardLog(env *Env, level string) (*slog.Logger, error) {
	levels := []string{"debug", "info", "warn", "off"}
	if err := choice("--log", level, levels); err != nil || level == "off" {
		return nil, err
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, err
	}
	return slog.New(slog.NewJSONHandler(inert.Terminal(env.Stderr), &slog.HandlerOptions{Level: l})), nil
}

// listenGuard listens on an address. One that other machines can reach needs a
// token and TLS.
func listenGuard(ctx context.Context, env *Env, addr, cert, key string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &settings.Problem{Where: "--http", What: fmt.Sprintf("%q is no address", addr),
			Hint: "HOST:PORT, as in 127.0.0.1:8765"}
	}
	open := !remote.Loopback(host)
	switch token := env.Getenv(guardToken); {
	case open && token == "":
		return nil, &settings.Problem{Where: "--http", What: "other machines can reach " + addr,
			Hint: "set a token in " + guardToken + " and give --tls-cert and --tls-key, or use 127.0.0.1"}
	case open && len(token) < 16:
		return nil, &settings.Problem{Where: guardToken, What: "the token has less than 16 characters",
			Hint: "draw one at random: openssl rand -hex 24"}
	case open && cert == "":
		return nil, &settings.Problem{Where: "--http", What: "other machines can reach " + addr +
			", and the token would cross the network in clear", Hint: "give --tls-cert and --tls-key, or use 127.0.0.1"}
	}
	var pair tls.Certificate
	if cert != "" {
		if pair, err = tls.LoadX509KeyPair(env.path(cert), env.path(key)); err != nil {
			return nil, &settings.Problem{Where: "--tls-cert", Err: err}
		}
	}
	l, err := remote.Listen(ctx, addr, open)
	if err != nil {
		return nil, &settings.Problem{Where: "--http", Err: err}
	}
	if cert != "" {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"}})
	}
	return l, nil
}

type mcpServe struct {
	policy             *guard.Policy
	log                *slog.Logger
	reveal             bool
	store, key, writer string
	limits             serve.Limits
	every              time.Duration
	after              int
	sealKey            string
}

// writerClass reads --writer.
func writerClass(name string, missing memory.Class) (memory.Class, error) {
	class := missing
	if name == "" {
		return class, nil
	}
	if err := class.UnmarshalText([]byte(name)); err != nil || class == memory.System {
		return class, choice("--writer", name, []string{memory.User.String(), memory.Agent.String(),
			memory.External.String()})
	}
	return class, nil
}

func serveMCP(ctx context.Context, env *Env, o mcpServe) (err error) {
	class, err := writerClass(o.writer, memory.Agent)
	if err != nil {
		return err
	}
	opts := serve.MemoryOptions{Writer: class, Now: env.Now}
	var keys *signed.Keyring
	if o.store != "" {
		st, err := store.Open(ctx, env.path(o.store), store.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, st.Close()) }()
		opts.Store = st
		if o.every > 0 || o.after > 0 {
			if opts.Sealer, err = o.sealer(ctx, env, st); err != nil {
				return err
			}
			sealing, done := context.WithCancel(context.WithoutCancel(ctx)) // calls in flight are finished, and sealed
			var sealer sync.WaitGroup
			sealer.Go(func() { opts.Sealer.Run(sealing) })
			defer func() { done(); sealer.Wait() }() // before the store is closed
		}
		if o.key == "" {
			o.key = o.store + ".guard-key"
		}
	}
	if o.key != "" {
		if keys, err = serve.ReadKeys(env.path(o.key), o.key, env.Now()); err != nil {
			return err
		}
	} else {
		keys = signed.Fresh()
	}
	g := guard.Options{Policy: o.policy, Keys: keys, Agent: serve.Agent, Reveal: o.reveal}
	if o.log != nil {
		g.Hook = guard.Slog(o.log)
	}
	if opts.Guard, err = guard.New(g); err != nil {
		return err
	}
	m, err := serve.NewMemory(ctx, opts)
	if err != nil {
		return err
	}
	s := serve.NewMCP(m, versionString(), o.limits)
	if err := serve.ServeMCP(ctx, s, io.NopCloser(env.Stdin), unclosed{env.Stdout}, serveGrace); err != nil {
		return fmt.Errorf("serving the memory: %w", err)
	}
	return nil
}

// sealer seals what a process before left behind, and then what this one changes.
func (o *mcpServe) sealer(ctx context.Context, env *Env, st *store.History) (*serve.Sealer, error) {
	ledger := seal.NewLedger(st)
	m := &memoryCommand{env: env, store: o.store}
	s := &serve.Sealer{Store: st, Every: o.every, After: o.after, Now: env.Now,
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
	if s.Signer, s.Verifier, err = m.keys().Signer(ctx, ledger, o.sealKey); err == nil {
		err = s.Begin(ctx)
	}
	if errors.Is(err, seal.ErrIntegrity) || errors.Is(err, store.ErrDamaged) {
		return nil, fmt.Errorf("%s is not served: %w: `memtox memory verify --store %[1]s` names all; bring it back from "+
			"a copy, "+
			"or, to go on with it as it is, move %[1]s.head away and take a `memtox memory snapshot`", o.store, err)
	}
	return s, err
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
