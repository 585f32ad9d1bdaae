package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/view"
)

func newView(env *Env, c *cobra.Command) action {
	port := c.Flags().Uint16("port", 0, "Listen on this `PORT` of the loopback interface; 0 takes a free one")
	return func(ctx context.Context, args []string) error {
		dir := append(args, "runs")[0]
		runs, err := view.NewRuns(env.path(dir))
		if err != nil {
			return err
		}
		defer runs.Close()
		l, err := view.Listen(int(*port))
		if err != nil {
			return &settings.Problem{Where: "--port", Err: err, Hint: "leave it out to take a free one"}
		}
		defer context.AfterFunc(ctx, func() { l.Close() })()
		s := view.NewServer(runs)
		if _, err := fmt.Fprintf(env.Stdout, "%s\n", s.URL(l.Addr())); err != nil {
			return fmt.Errorf("printing the address: %w", err)
		}
		env.say("open that address in a browser on this machine; interrupt to stop")
		return s.Serve(l)
	}
}
