package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/queue"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results"

	"github.com/memtox/memtox/internal/settings"
)

// queueDir is where in a run's directory its own server keeps what waits.
const queueDir = "queue.tmp"

// queueOptions are how the settings reach a queue.
func (e *Env) queueOptions(c harness.Config) (queue.Options, error) {
	var token atomic.Value // the last
	given, _ := e.lookup("MEMTOX_QUEUE_TOKEN")
	token.Store(given)
	read := func() error {
		b, err := e.readFile(c.QueueTokenFile)
		if err != nil {
			return &settings.Problem{Where: "queue_token_file", Err: err}
		}
		line := strings.TrimSpace(string(b))
		if line == "" || strings.ContainsAny(line, "\n\r") {
			return &settings.Problem{Where: "queue_token_file", What: c.QueueTokenFile + " holds no token",
				Hint: "one line, nothing else"}
		}
		token.Store(line)
		return nil
	}
	o := queue.Options{URL: c.Queue, Name: c.QueueName, Log: func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if t := token.Load().(string); t != "" {
			text = strings.ReplaceAll(text, t, "***")
		}
		fmt.Fprintf(e.Stderr, "memtox: %s\n", inert.Text(inert.Clip(text, 400)))
	}}
	if c.QueueTokenFile != "" {
		if err := read(); err != nil {
			return queue.Options{}, err
		}
		if c.Listen == "" {
			o.Renewed = func() string {
				_ = read() // else the one before: the file may be about to be written
				return token.Load().(string)
			}
		}
	}
	o.Token = token.Load().(string)
	for to, from := range map[*string]string{&o.NKeySeedFile: c.QueueNKeyFile, &o.CA: c.QueueCA} {
		if from != "" {
			*to = e.path(from)
		}
	}
	return o, queue.ValidName(o.Name)
}

// spread hands the trials of a run to workers.
func (e *Env) spread(ctx context.Context, x *harness.Experiment, journal *results.Journal, dir string,
	c harness.Config) (runTrials, func(), error) {
	o, err := e.queueOptions(c)
	if err != nil {
		return nil, nil, err
	}
	if c.Queue != "" && c.Listen != "" {
		return nil, nil, &settings.Problem{Where: "--listen",
			What: "a run uses a server that is there, or starts one, not both", Hint: "leave --queue or --listen out"}
	}
	if c.Record != "" {
		return nil, nil, &settings.Problem{Where: "--record",
			What: "the workers call the model, and each would need a cassette of its own", Hint: "record in one process"}
	}
	end, over := func() {}, false
	if c.Listen != "" {
		so := queue.ServerOptions{Addr: c.Listen, Dir: filepath.Join(dir, queueDir), Token: o.Token, Log: o.Log}
		if c.QueueCert != "" {
			so.Cert = e.path(c.QueueCert)
		}
		if c.QueueKey != "" {
			so.Key = e.path(c.QueueKey)
		}
		if err := results.CheckFolder(dir, queueDir); err != nil {
			return nil, nil, err
		}
		s, err := queue.Listen(so)
		if err != nil {
			return nil, nil, err
		}
		o.URL, o.Token = s.URL(), s.Token
		end = func() {
			s.Close()
			if over {
				os.RemoveAll(so.Dir)
			}
		}
		if so.Cert != "" && o.CA == "" {
			o.CA = so.Cert // its own certificate is one to trust
		}
		fmt.Fprintf(e.Stderr, "memtox: workers join with: memtox worker --queue %s%s\n", o.URL, joining(c, s.TokenFile))
	}
	co := &queue.Coordinator{Options: o, Experiment: x, Record: journal.Run()}
	return func(ctx context.Context, sink harness.Sink, progress *harness.Progress, stop <-chan struct{}) error {
		told := make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer close(told)
			e.tellWorkers(ctx, co)
		}()
		err := co.Run(ctx, sink, progress, stop)
		over = err == nil && progress.Done() == x.Plan.Len()
		cancel()
		<-told
		return err
	}, end, nil
}

// joining are the flags that a worker of the run needs beside the address.
func joining(c harness.Config, tokenFile string) string {
	if abs, err := filepath.Abs(tokenFile); err == nil && tokenFile != "" {
		c.QueueTokenFile = abs
	}
	return c.Named("queue", "listen", "out", "queue_cert", "queue_key")
}

// tellWorkers prints the table of workers whenever one came or went.
func (e *Env) tellWorkers(ctx context.Context, co *queue.Coordinator) {
	var before []string
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ws := co.Workers()
		var now []string
		for _, w := range ws {
			now = append(now, w.Worker)
		}
		if !slices.Equal(before, now) {
			before = now
			fmt.Fprintf(e.Stderr, "memtox: %d workers\n%s", len(ws), workerTable(ws))
		}
	}
}

func workerTable(ws []queue.Status) string {
	if len(ws) == 0 {
		return ""
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "  worker\tslots\tbusy\tfinished\tnot scored\tunsent")
	for _, w := range ws {
		fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\t%d\n", inert.Text(w.Worker), w.Slots, w.Busy, w.Finished, w.Failed, w.Unsent)
	}
	_ = t.Flush()
	return b.String()
}

func newWorker(env *Env) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "worker", Short: "Run trials of a run elsewhere, taken from its queue", Args: noArgs,
		Long: `Take trials from the queue of a memtox run --queue or --listen, run them, and send
the rows back, until the run is over. The settings are those of the run; data files
and policies that it names must be here too, under the same names. A worker that
carries another version, other data or other policies refuses with the difference.
Programs, servers, keys and variables are not taken from the queue: where the run has
any, this command line names them too (or a file, -f), as the run does, and a worker
that is told of none refuses and says what to add. base_url may be another, and
concurrency is this process's own. An interrupt finishes the trials in flight; what a
killed worker had taken goes to another.`,
		Example: `  memtox worker --queue nats://coordinator:4222
  memtox worker --queue tls://coordinator:4222 --set queue_ca=ca.pem --concurrency 64
  memtox worker --queue nats://coordinator:4222 --model openai:gpt-oss-120b --base-url http://localhost:8000/v1
  memtox worker --queue nats://coordinator:4222 --defense "none,mine=exec:./guard.py"`,
	}
	f.register(c, func(s settings.Key) bool {
		return s.Reach == harness.Acts || s.Name == "queue" || s.Name == "concurrency"
	}, nil)
	for _, sf := range f.flags {
		c.Flags().Lookup(sf.key.Flag).DefValue = "" // it is the run's
	}
	wait := c.Flags().Duration("wait", time.Minute, "How long to wait for a server and for a run")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		here, err := f.config(env, nil)
		if err != nil {
			return err
		}
		if here.Queue == "" {
			return &settings.Problem{Where: "--queue", What: "there is no telling where the queue is",
				Hint: "for instance --queue nats://127.0.0.1:4222"}
		}
		o, err := env.queueOptions(here)
		if err != nil {
			return err
		}
		w := &queue.Worker{Options: o, Version: versionString(), Wait: *wait}
		w.Settings = func(base harness.Config) (harness.Config, error) {
			base.Concurrency = 0
			return f.config(env, &base)
		}
		w.Prepare = func(ctx context.Context, c harness.Config) (*harness.Experiment, error) {
			return harness.Prepare(ctx, c, env.catalog(false, remote.Caps{}))
		}
		ctx, stop, release := env.stoppable(cmd.Context(), "trials")
		defer release()
		err = w.Run(ctx, stop)
		fmt.Fprintf(env.Stderr, "memtox: this worker ran %d trials\n", w.Finished())
		if errors.Is(err, context.Canceled) {
			return told{errInconclusive}
		}
		return err
	}
	return c
}

func newQueue(env *Env) *cobra.Command {
	sub := func(use, short, long string, do func(context.Context, queue.Options, harness.Config) error) *cobra.Command {
		f := &runFlags{}
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: noArgs,
			Example: "  memtox queue " + use + " --queue nats://127.0.0.1:4222"}
		f.register(c, func(s settings.Key) bool { return s.Name == "queue" || s.Name == "format" }, nil)
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			ctx, stop := env.interruptible(cmd.Context())
			defer stop()
			conf, err := f.config(env, nil)
			if err != nil {
				return err
			}
			if conf.Queue == "" {
				return &settings.Problem{Where: "--queue", What: "there is no telling where the queue is",
					Hint: "for instance --queue nats://127.0.0.1:4222"}
			}
			o, err := env.queueOptions(conf)
			if err != nil {
				return err
			}
			return do(ctx, o, conf)
		}
		return c
	}
	return group("queue", "Look at the queue of a run, or take its work back",
		sub("status", "Say what waits on a queue and who works on it",
			"Say which run a queue carries, what waits, and which workers have spoken within\na few seconds.",
			func(ctx context.Context, o queue.Options, c harness.Config) error {
				s, err := queue.Look(ctx, o)
				if err != nil {
					return err
				}
				if c.Format == "json" {
					return printJSON(env, s)
				}
				if s.RunID == "" {
					fmt.Fprintf(env.Stdout, "queue %s carries no run\n", s.Queue)
					return nil
				}
				over := ""
				if s.Over {
					over = ", which is over"
				}
				fmt.Fprintf(env.Stdout, "queue %s carries the run %s%s: %d trials planned\n%d spans wait, %d are worked on; %d "+
					"messages of finished trials wait for the coordinator\n%d workers\n%s",
					s.Queue, inert.Text(s.RunID), over, s.Planned, s.Spans-uint64(min(s.Busy, int(s.Spans))), s.Busy, s.Rows,
					len(s.Workers), workerTable(s.Workers))
				return nil
			}),
		sub("drain", "Take back the work that nobody does yet, and send the workers home",
			"Take back the spans that nobody works on and send the workers home. The run stops\nand can be resumed; finished "+
				"trials that wait are taken then.", func(ctx context.Context, o queue.Options, c harness.Config) error {
				n, err := queue.Drain(ctx, o)
				if err != nil {
					return err
				}
				if c.Format == "json" {
					return printJSON(env, map[string]any{"taken_back": n})
				}
				fmt.Fprintf(env.Stdout, "%d spans taken back; go on with memtox run --resume\n", n)
				return nil
			}))
}
