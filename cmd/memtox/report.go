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
	viewer := c.Flags().String("viewer", "", "Link the examples to the pages that view RUN --bundle wrote, at this `URL`")
	return func(ctx context.Context, args []string) error {
		return readRun(env.path(args[0]), func(r *results.Reader) error {
			o := report.Options{Summary: summaryOptions(0)}
			if *viewer != "" {
				o.Viewer = *viewer + "#/trial?run=."
			}
			rep, err := report.Read(ctx, r, o)
			if err != nil {
				return err
			}
			write, what := rep.HTML, "open it in a browser"
			if *format == "markdown" || *format == "" && strings.HasSuffix(*out, ".md") {
				write, what = rep.Markdown, "Markdown"
			}
			if err = env.output(*out, write); err == nil && *out != "" {
				env.say("the report is in %s: %s", *out, what)
			}
			return err
		})
	}
}
