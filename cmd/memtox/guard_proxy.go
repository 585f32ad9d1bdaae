package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/serve"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// newGuardProxy stands between an agent and its model's server.
func newGuardProxy(env *Env, c *cobra.Command) action {
	o := &guardServe{env: env, limits: serve.Limits{Concurrent: 64, Time: upstreamTime, Connections: 256}}
	o.server.Idle, o.server.Trials, o.server.Memory = serve.DefaultIdle, serve.DefaultTrials, serve.DefaultMemory
	var upstream, agent string
	fs := c.Flags()
	policy := policyFlag(c)
	fs.StringVar(&upstream, "upstream", "", "`URL` of the model's server, up to and with /v1")
	fs.StringVar(&agent, "agent", "", "What the agent's tools do: a product ("+strings.Join(installed.Names(), ", ")+
		"), or a `FILE` like those of products (left out: every tool acts)")
	o.addHTTP(c, "127.0.0.1:8767")
	o.addStore(c)
	log := o.addLog(c)
	fs.Int64Var(&o.limits.Body, "max-body", 64<<20, "Most `BYTES` of a request")
	return func(ctx context.Context, _ []string) (err error) {
		if err := o.check(); err != nil {
			return err
		}
		if upstream == "" {
			return &settings.Problem{What: "--upstream is missing: the address of the model's server, up to and with /v1"}
		}
		base, err := remote.BaseURL(upstream)
		if err != nil {
			return &settings.Problem{Where: "--upstream", Err: err}
		}
		if host, _, err := net.SplitHostPort(o.http); err != nil || !remote.Loopback(host) {
			return &settings.Problem{Where: "--http", What: fmt.Sprintf("%q is no address of this machine", o.http),
				Hint: "HOST:PORT, as in 127.0.0.1:8767: whoever reaches the proxy asks the model"}
		}
		known, err := o.agent(agent)
		if err != nil {
			return err
		}
		if o.Policy, err = env.policy(*policy); err != nil {
			return err
		}
		log()
		m, done, err := o.memory(ctx, memory.User)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		p := serve.NewProxy(serve.ProxyOptions{Memory: m, Upstream: base.String(), Agent: known, Limits: o.limits,
			Client: &http.Client{Timeout: upstreamTime}})
		return o.answer(ctx, p.Handler(), "/v1")
	}
}

// upstreamTime is how long a model may take for an answer.
const upstreamTime = 10 * time.Minute

// agent is what is known of an agent: a product's, or that of a file.
func (o *guardServe) agent(name string) (gate.Agent, error) {
	if name == "" {
		return gate.Agent{}, nil
	}
	p := installed.Find(name)
	if p == nil {
		data, err := os.ReadFile(o.env.path(name))
		if err != nil {
			return gate.Agent{}, &settings.Problem{Where: "--agent", Err: err,
				Hint: "a file, or one of " + strings.Join(installed.Names(), ", ")}
		}
		if p, err = installed.Read(name, data); err != nil {
			return gate.Agent{}, &settings.Problem{Where: "--agent", Err: err}
		}
	}
	return p.Gates(), nil
}

// memory is the guarded memory of the flags. What it returns lets go of it.
func (o *guardServe) memory(ctx context.Context, otherwise memory.Class) (m *serve.Memory, done func() error, err error) {
	opts := serve.MemoryOptions{Now: o.env.Now}
	done = func() error { return nil }
	if opts.Writer, err = o.writerClass(otherwise); err != nil {
		return nil, nil, err
	}
	o.Keys, o.Agent = signed.Fresh(), serve.Agent
	if o.store != "" {
		st, closed, failed := o.openStore(ctx)
		if failed != nil {
			return nil, nil, failed
		}
		done = closed
		opts.Store, opts.Sealer = st, o.sealing
		opts.Pending, err = o.list(ctx, st)
		o.Policy.Authority.By = guard.Show // there is somebody to show the call to
	} else {
		err = o.readKeys()
	}
	if err == nil {
		opts.Guard, err = guard.New(o.Options)
	}
	if err == nil {
		m, err = serve.NewMemory(ctx, opts)
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return m, done, nil
}
