package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/report"
)

// reportFormats are the formats of a report.
var reportFormats = []string{"html", "markdown"}

func newReport(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "report RUN", Short: "Write a run as one page with plots", Args: oneArg("a run directory"),
		Long: `Write a run as one page that can be sent to somebody: an HTML file that loads
nothing, runs no script, prints, and fits a phone; or Markdown with the tables
alone. A run that goes on, or was killed, gives the figures so far and says so.`,
		Example: "  memtox report runs/small -o report.html\n  memtox report runs/small --format markdown >> " +
			"$GITHUB_STEP_SUMMARY",
	}
	format := c.Flags().String("format", "", strings.Join(reportFormats, " or ")+
		" (default html; markdown for -o FILE.md)")
	out := outputFlag(c)
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		as := *format
		if as == "" {
			as = "html"
			if strings.HasSuffix(*out, ".md") {
				as = "markdown"
			}
		}
		if err := choice("--format", as, reportFormats); err != nil {
			return err
		}
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		r, err := results.OpenReader(env.path(args[0]))
		if err != nil {
			return err
		}
		defer r.Close()
		rep, err := report.Read(ctx, r, report.Options{Summary: summaryOptions(0)})
		if err != nil {
			return err
		}
		return env.output(*out, func(w io.Writer) error {
			if as == "markdown" {
				return rep.Markdown(w)
			}
			return rep.HTML(w)
		})
	}
	return c
}
