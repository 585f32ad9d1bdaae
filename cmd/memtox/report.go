package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/report"
)

func newReport(env *Env, c *cobra.Command) action {
	format := choiceFlag(c, "format", "", "html or markdown (default html; markdown for -o FILE.md)", "html", "markdown")
	out := outputFlag(c)
	return func(ctx context.Context, args []string) error {
		return readRun(env.path(args[0]), func(r *results.Reader) error {
			rep, err := report.Read(ctx, r, report.Options{Summary: summaryOptions(0)})
			if err != nil {
				return err
			}
			if *format == "markdown" || *format == "" && strings.HasSuffix(*out, ".md") {
				return env.output(*out, rep.Markdown)
			}
			return env.output(*out, rep.HTML)
		})
	}
}
