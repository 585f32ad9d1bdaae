package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// serveGrace is how long requests in flight may take once the server stops.
const serveGrace = 5 * time.Second

func newServeModel(env *Env, c *cobra.Command) action {
	fs := c.Flags()
	addr := fs.String("addr", "127.0.0.1:11500", "Listen on this `HOST:PORT`; port 0 takes a free one")
	open := fs.Bool("remote", false, "allow an address that other machines can reach")
	dataset := fs.String("dataset", harness.DefaultConfig().Dataset,
		"Understand the state cases of this `NAME|FILE`, as a run of it does")
	latency := fs.Duration("latency", 0, "How long an answer takes")
	answer := fs.Int("answer-bytes", 0, "Lengthen answers that are not streamed to this many bytes")
	errorRate := fs.Float64("error-rate", 0, "Share of requests that are answered with status 500")
	rate := fs.Float64("rate-limit", 0, "Most requests a second; more get status 429 with Retry-After")
	faults := fs.String("faults", "", "Shares of requests that go wrong: `NAME=SHARE,...` of cut, truncate, malformed, "+
		"429, 500, endless, hang, 400, or all")
	seed := fs.Uint64("seed", 1, "Seed of the faults")
	must(c.RegisterFlagCompletionFunc("dataset", completeSets))
	return func(ctx context.Context, _ []string) error {
		f, err := proxy.ParseFaults(*faults)
		if err != nil {
			return &settings.Problem{Where: "--faults", Err: err}
		}
		if *errorRate != 0 {
			f[proxy.ServerError] = *errorRate
		}
		o := proxy.Options{Latency: *latency, AnswerBytes: *answer, RateLimit: *rate, Faults: f, Seed: *seed,
			Hint: func(what string) { env.say("%s", what) }}
		if *dataset != "" {
			set, err := env.openSet(ctx, *dataset)
			if err != nil {
				return err
			}
			o.Of = set.Name + "@" + set.Version
			if o.Book = set.Book(); o.Book == nil {
				return &settings.Problem{Where: "--dataset", What: set.Name + " has no case whose outcome is a state",
					Hint: "the reference model reads all other cases by form, whatever set is named: leave the flag out"}
			}
		}
		s, err := proxy.New(o)
		if err != nil {
			return &settings.Problem{What: "the server cannot be set up like this", Err: err}
		}
		l, err := remote.Listen(ctx, *addr, *open)
		if err != nil {
			return &settings.Problem{Where: "--addr", Err: err, Hint: "port 0 takes a free one"}
		}
		if _, err := fmt.Fprintf(env.Stdout, "http://%s\n", l.Addr()); err != nil {
			return fmt.Errorf("printing the address: %w", err)
		}
		env.say("the reference model (not an LLM) answers at http://%s/v1 and, for Ollama clients, at http://%s; "+
			"interrupt to stop", l.Addr(), l.Addr())
		if err := s.Serve(ctx, l, serveGrace); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		st := s.Stats()
		env.say("%d chat requests, %d of them spoilt by faults, and %d refused by the rate limit",
			st.Requests, st.Requests-st.Faults[proxy.NoFault], st.Limited)
		return nil
	}
}
