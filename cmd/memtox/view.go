package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/view"
)

func newView(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "view [DIR]", Short: "Read runs in the browser, trial by trial",
		Long: `Serve a local page over one run directory, or all that are under DIR (runs by
default): filter and sort trials, read both sessions of a trial turn by turn with
the origin of every text and each decision where it was made, and the same case
under another defense beside it. A run that goes on is followed.

The page answers on the loopback interface only, to whoever has the token in the
printed address, and loads nothing from anywhere. Interrupt to stop.`,
		Example: "  memtox view\n  memtox view runs/small --port 8080",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &settings.Problem{What: fmt.Sprintf("memtox view takes one directory, and %q stands there too", args[1])}
			}
			return nil
		},
	}
	port := c.Flags().Uint16("port", 0, "Listen on this `PORT` of the loopback interface; 0 takes a free one")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "runs"
		if len(args) == 1 {
			dir = args[0]
		}
		runs, err := view.NewRuns(env.path(dir))
		if err != nil {
			return err
		}
		defer runs.Close()
		l, err := view.Listen(int(*port))
		if err != nil {
			return &settings.Problem{Where: "--port", Err: err, Hint: "leave it out to take a free one"}
		}
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		go func() {
			<-ctx.Done()
			l.Close()
		}()
		s := view.NewServer(runs)
		if _, err := fmt.Fprintf(env.Stdout, "%s\n", s.URL(l.Addr())); err != nil {
			return fmt.Errorf("printing the address: %w", err)
		}
		fmt.Fprintln(env.Stderr, "memtox: open that address in a browser on this machine; interrupt to stop")
		return s.Serve(l)
	}
	return c
}
