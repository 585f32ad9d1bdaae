package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/export"
)

func newExport(env *Env, c *cobra.Command) action {
	format := choiceFlag(c, "format", "csv", strings.Join(export.Formats, " or "), export.Formats...)
	table := choiceFlag(c, "table", "trials", strings.Join(export.Tables, " or "), export.Tables...)
	out := outputFlag(c)
	return func(ctx context.Context, args []string) error {
		return readRun(env.path(args[0]), func(r *results.Reader) error {
			return env.output(*out, func(w io.Writer) error { return export.Write(ctx, w, r, *format, *table) })
		})
	}
}
