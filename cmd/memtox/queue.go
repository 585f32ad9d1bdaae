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
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
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
		e.say("%s", inert.Clip(text, 400))
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
		e.say("workers join with: memtox worker --queue %s%s", o.URL, joining(c, s.TokenFile))
	}
	co := &queue.Coordinator{Options: o, Experiment: x, Record: journal.Run()}
	return func(ctx context.Context, sink harness.Sink, progress *harness.Progress, stop <-chan struct{}) error {
		defer e.tellWorkers(co)()
		err := co.Run(ctx, sink, progress, stop)
		over = err == nil && progress.Done() == x.Plan.Len()
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

// tellWorkers prints the table of workers whenever one came or went, until the returned
// function is called.
func (e *Env) tellWorkers(co *queue.Coordinator) (done func()) {
	var before []string
	return ticking(2*time.Second, func() {
		ws := co.Workers()
		var now []string
		for _, w := range ws {
			now = append(now, w.Worker)
		}
		if !slices.Equal(before, now) {
			before = now
			fmt.Fprintf(e.Stderr, "memtox: %d workers\n%s", len(ws), workerTable(ws))
		}
	})
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

// queueFlags adds the flags of a command about a queue; the function returns the settings
// and how they reach it.
func (e *Env) queueFlags(c *cobra.Command, want func(settings.Key) bool) (*runFlags,
	func() (queue.Options, harness.Config, error)) {
	f := newRunFlags(c, want, nil)
	return f, func() (queue.Options, harness.Config, error) {
		conf, err := f.config(e, nil)
		if err == nil && conf.Queue == "" {
			err = &settings.Problem{Where: "--queue", What: "there is no telling where the queue is",
				Hint: "for instance --queue nats://127.0.0.1:4222"}
		}
		if err != nil {
			return queue.Options{}, conf, err
		}
		o, err := e.queueOptions(conf)
		return o, conf, err
	}
}

func newWorker(env *Env, c *cobra.Command) action {
	f, open := env.queueFlags(c, func(s settings.Key) bool {
		return s.Reach == harness.Acts || s.Name == "queue" || s.Name == "concurrency"
	})
	for _, sf := range f.flags {
		c.Flags().Lookup(sf.key.Flag).DefValue = "" // it is the run's
	}
	wait := c.Flags().Duration("wait", time.Minute, "How long to wait for a server and for a run")
	return func(ctx context.Context, _ []string) error {
		o, _, err := open()
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
		ctx, stop, release := env.stoppable(ctx, "trials")
		defer release()
		err = w.Run(ctx, stop)
		env.say("this worker ran %d trials", w.Finished())
		if errors.Is(err, context.Canceled) {
			return told{errInconclusive}
		}
		return err
	}
}

func queueOrFormat(s settings.Key) bool { return s.Name == "queue" || s.Name == "format" }

func newQueueStatus(env *Env, c *cobra.Command) action {
	_, open := env.queueFlags(c, queueOrFormat)
	return func(ctx context.Context, _ []string) error {
		o, conf, err := open()
		if err != nil {
			return err
		}
		s, err := queue.Look(ctx, o)
		if err != nil {
			return err
		}
		if conf.Format == "json" {
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
	}
}

func newQueueDrain(env *Env, c *cobra.Command) action {
	_, open := env.queueFlags(c, queueOrFormat)
	return func(ctx context.Context, _ []string) error {
		o, conf, err := open()
		if err != nil {
			return err
		}
		n, err := queue.Drain(ctx, o)
		if err != nil {
			return err
		}
		if conf.Format == "json" {
			return printJSON(env, map[string]any{"taken_back": n})
		}
		fmt.Fprintf(env.Stdout, "%d spans taken back; go on with memtox run --resume\n", n)
		return nil
	}
}
