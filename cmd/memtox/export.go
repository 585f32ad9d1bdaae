package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/export"
)

func newExport(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "export RUN", Short: "Write the rows of a run as CSV or JSON Lines", Args: oneArg("a run directory"),
		Long: `Write the rows of a run for tools that do not read Parquet. The columns are those
of results/SCHEMA.md. In CSV no text can become a formula of a spreadsheet; JSON
Lines is exact. A run that goes on, or was killed, gives the rows that it has.`,
		Example: "  memtox export runs/small --format csv -o trials.csv\n  memtox export runs/small --format jsonl " +
			"--table decisions | head",
	}
	format := c.Flags().String("format", "csv", strings.Join(export.Formats, " or "))
	table := c.Flags().String("table", "trials", strings.Join(export.Tables, " or "))
	out := outputFlag(c)
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(export.Formats,
		cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("table", cobra.FixedCompletions(export.Tables, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		if err := choice("--format", *format, export.Formats); err != nil {
			return err
		}
		if err := choice("--table", *table, export.Tables); err != nil {
			return err
		}
		r, err := results.OpenReader(env.path(args[0]))
		if err != nil {
			return err
		}
		defer r.Close()
		return env.output(*out, func(w io.Writer) error { return export.Write(ctx, w, r, *format, *table) })
	}
	return c
}

// outputFlag adds -o.
func outputFlag(c *cobra.Command) *string {
	return c.Flags().StringP("output", "o", "", "Write to `FILE` instead of standard output")
}

// interruptible is ctx until the first interrupt.
func (e *Env) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.Signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// output writes to a file of the user's, or to standard output where none is
// named. The file appears when it is complete; until then it has another name.
func (e *Env) output(file string, write func(io.Writer) error) error {
	if file == "" || file == "-" {
		return write(e.Stdout)
	}
	path := e.path(file)
	tmp, flags := path+".tmp", os.O_EXCL // a link of that name, which a change under review may bring, is not followed
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		tmp, flags = path, 0 // a device or a pipe has no other name
	} else if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|flags, 0o666)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	err = write(f)
	if e := f.Close(); err == nil && e != nil {
		err = fmt.Errorf("writing %s: %w", file, e)
	}
	if tmp == path {
		return err
	}
	if err == nil {
		if err = os.Rename(tmp, path); err != nil {
			err = fmt.Errorf("writing %s: %w", file, err)
		}
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

// choice refuses a value that is none of a flag's.
func choice(flag, value string, of []string) error { return known(flag, "value", value, of) }

// known refuses a name that is none of those that there are; kind says of what.
func known(where, kind, value string, of []string) error {
	if slices.Contains(of, value) {
		return nil
	}
	p := &settings.Problem{Where: where, What: fmt.Sprintf("unknown %s %q", kind, value),
		Hint: "one of " + strings.Join(of, ", ")}
	if n := settings.Nearest(value, of); n != "" {
		p.Hint = fmt.Sprintf("did you mean %q?", n)
	}
	return p
}
