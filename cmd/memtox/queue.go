package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/wire"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/harness/queue"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/inert"
)

// queueDir is where in a run's directory its own server keeps what waits.
const queueDir = "queue.tmp"

// queueOptions are how the settings reach a queue.
func (e *Env) queueOptions(c harness.Config) (queue.Options, error) {
	token, _ := e.lookup("MEMTOX_QUEUE_TOKEN")
	if c.QueueTokenFile != "" {
		b, err := e.readFile(c.QueueTokenFile)
		if err != nil {
			return queue.Options{}, &harness.Problem{Where: "queue_token_file", Err: err}
		}
		if token = strings.TrimSpace(string(b)); token == "" || strings.ContainsAny(token, "\n\r") {
			return queue.Options{}, &harness.Problem{Where: "queue_token_file", What: c.QueueTokenFile + " holds no token", Hint: "one line, nothing else"}
		}
	}
	o := queue.Options{URL: c.Queue, Name: c.QueueName, Token: token, Log: func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if token != "" {
			text = strings.ReplaceAll(text, token, "***")
		}
		fmt.Fprintf(e.Stderr, "memtox: %s\n", inert.Text(inert.Clip(text, 400)))
	}}
	for to, from := range map[*string]string{&o.NKeySeedFile: c.QueueNKeyFile, &o.CA: c.QueueCA} {
		if from != "" {
			*to = e.path(from)
		}
	}
	return o, queue.ValidName(o.Name)
}

// spread hands the trials of a run to workers.
func (e *Env) spread(ctx context.Context, x *harness.Experiment, journal *results.Journal, dir string, c harness.Config) (runTrials, func(), error) {
	o, err := e.queueOptions(c)
	if err != nil {
		return nil, nil, err
	}
	if c.Queue != "" && c.Listen != "" {
		return nil, nil, &harness.Problem{Where: "--listen", What: "a run uses a server that is there, or starts one, not both", Hint: "leave --queue or --listen out"}
	}
	if c.Record != "" {
		return nil, nil, &harness.Problem{Where: "--record", What: "the workers call the model, and each would need a cassette of its own", Hint: "record in one process"}
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
		o.URL = s.URL()
		end = func() {
			s.Close()
			if over {
				os.RemoveAll(so.Dir)
			}
		}
		if so.Cert != "" && o.CA == "" {
			o.CA = so.Cert // its own certificate is one to trust
		}
		fmt.Fprintf(e.Stderr, "memtox: workers join with: memtox worker --queue %s\n", o.URL)
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
Keys, base_url, concurrency and limits are this process's own. An interrupt finishes
the trials in flight; what a killed worker had taken goes to another.`,
		Example: "  memtox worker --queue nats://coordinator:4222\n  memtox worker --queue tls://coordinator:4222 --set queue_ca=ca.pem --concurrency 64",
	}
	own := []string{"queue", "concurrency", "base_url", "model"}
	f.register(c, func(s harness.Setting) bool { return slices.Contains(own, s.Key) })
	wait := c.Flags().Duration("wait", time.Minute, "How long to wait for a server and for a run")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		here, err := f.config(env, nil)
		if err != nil {
			return err
		}
		if here.Queue == "" {
			return &harness.Problem{Where: "--queue", What: "there is no telling where the queue is", Hint: "for instance --queue nats://127.0.0.1:4222"}
		}
		o, err := env.queueOptions(here)
		if err != nil {
			return err
		}
		w := &queue.Worker{Options: o, Version: versionString(), Wait: *wait, Prepare: func(ctx context.Context, c harness.Config) (*harness.Experiment, error) {
			mine, err := f.config(env, &c)
			if err != nil {
				return nil, err
			}
			if !f.gave("concurrency") {
				mine.Concurrency = here.Concurrency
			}
			x, err := harness.Prepare(ctx, mine, env.catalog(false, wire.Caps{}))
			if err == nil {
				x.Config.BaseURL = c.BaseURL // where this process's server is makes no other run
			}
			return x, err
		}}
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

// gave reports whether a setting was given by flag, --set or file.
func (f *runFlags) gave(key string) bool {
	for _, sf := range f.flags {
		if sf.setting.Key == key && len(sf.values) > 0 {
			return true
		}
	}
	for _, s := range f.sets {
		if k, _, _ := strings.Cut(s, "="); strings.TrimSpace(k) == key {
			return true
		}
	}
	return f.file != ""
}

func newQueue(env *Env) *cobra.Command {
	sub := func(use, short, long string, do func(context.Context, queue.Options, harness.Config) error) *cobra.Command {
		f := &runFlags{}
		c := &cobra.Command{Use: use, Short: short, Long: long, Args: noArgs, Example: "  memtox queue " + use + " --queue nats://127.0.0.1:4222"}
		f.register(c, func(s harness.Setting) bool { return s.Key == "queue" || s.Key == "format" })
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			ctx, stop := env.interruptible(cmd.Context())
			defer stop()
			conf, err := f.config(env, nil)
			if err != nil {
				return err
			}
			if conf.Queue == "" {
				return &harness.Problem{Where: "--queue", What: "there is no telling where the queue is", Hint: "for instance --queue nats://127.0.0.1:4222"}
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
		sub("status", "Say what waits on a queue and who works on it", "Say which run a queue carries, what waits, and which workers have spoken within\na few seconds.", func(ctx context.Context, o queue.Options, c harness.Config) error {
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
			fmt.Fprintf(env.Stdout, "queue %s carries the run %s%s: %d trials planned\n%d spans wait, %d are worked on; %d messages of finished trials wait for the coordinator\n%d workers\n%s",
				s.Queue, inert.Text(s.RunID), over, s.Planned, s.Spans-uint64(min(s.Busy, int(s.Spans))), s.Busy, s.Rows, len(s.Workers), workerTable(s.Workers))
			return nil
		}),
		sub("drain", "Take back the work that nobody does yet, and send the workers home", "Take back the spans that nobody works on and send the workers home. The run stops\nand can be resumed; finished trials that wait are taken then.", func(ctx context.Context, o queue.Options, c harness.Config) error {
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
