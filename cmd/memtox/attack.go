package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"

	"github.com/memtox/memtox/internal/settings"
)

// attackFlags are the settings of run that attack has flags for.
var attackFlags = []string{"dataset", "agent", "model", "base_url", "record", "replay", "defense", "class", "limit",
	"seed", "background", "concurrency", "out", "format"}

func newAttack(env *Env) *cobra.Command {
	f := &runFlags{}
	campaign := harness.DefaultCampaignOptions()
	c := &cobra.Command{
		Use:   "attack",
		Short: "Search for variants that get past a defense, within a budget of queries",
		Long: `Attack every arm adaptively: a black-box search that sees of a defense only
whether its poison was stored, acted, or was visibly stopped. One query is one
trial of one variant. What works is learned on the split tune and reported on the
split report, case by case: the attack as it is, then what was learned, then every
mutation, then an evolutionary search over sequences of mutations, until the attack
lands or the budget is spent. Budget 1 is the static attack.

The winning variants are sets that run takes with --dataset. What was searched goes
on with --resume. docs/adaptive.md says what is searched where.`,
		Example: `  memtox attack --agent hermes --defense none,keyword --limit 200
  memtox attack --agent hermes --defense guard --budget 1000 --out attacks/guard
  memtox attack --out attacks/guard --agent hermes --defense guard --budget 1000 --resume`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.config(env, nil)
			if err != nil {
				return err
			}
			campaign.Config, campaign.Resume = config, f.resume
			return attack(cmd.Context(), env, campaign)
		},
	}
	fs := c.Flags()
	f.register(c, func(k settings.Key) bool { return slices.Contains(attackFlags, k.Name) }, map[string]string{
		"limit": "At most N attacks of the split report: a sample, stratified by class. 0 takes all"})
	fs.IntVar(&campaign.Budget, "budget", campaign.Budget, "Queries that each case may take, the original attack included")
	fs.IntVar(&campaign.Learn, "learn", campaign.Learn, "Attacks of the split tune to learn on; 0 learns nothing")
	fs.IntVar(&campaign.Fresh, "fresh", campaign.Fresh,
		"Fresh epochs in which a winner is run again, where the model is stochastic")
	fs.StringVar(&campaign.Rewriter, "rewriter", "", "`MODEL` that words claims anew: openai:NAME or ollama:NAME")
	fs.StringVar(&campaign.RewriterURL, "rewriter-url", "", "`URL` of the rewriter's server")
	fs.BoolVar(&f.resume, "resume", false, "Go on with the attack in --out; start it if there is none, print it again "+
		"if it is finished")
	return c
}

func attack(ctx context.Context, env *Env, campaign harness.CampaignOptions) error {
	out := campaign.Config.Out
	if campaign.Resume && out == "" {
		return &settings.Problem{Where: "--resume", What: "there is no telling which attack",
			Hint: "name its directory with --out"}
	}
	found, err := harness.PrepareCampaign(ctx, campaign, env.catalog(campaign.Resume, remote.Caps{}))
	if err != nil {
		return err
	}
	defer found.Close()
	if out == "" {
		out = filepath.Join("attacks", runID(campaign.Config, env.Now()))
	}
	dir := env.path(out)
	if err := found.Open(dir); err != nil {
		return err
	}
	ctx, stop, release := env.stoppable(ctx, "cases")
	defer release()
	progress := new(harness.CampaignProgress)
	ended := showCampaign(env, progress)
	done, err := found.Run(ctx, progress, stop)
	ended()
	if err != nil {
		return fmt.Errorf("%w; go on with the same command, --resume and --out %s", err, inert.Shell(out))
	}
	if !done {
		fmt.Fprintf(env.Stderr, "memtox: stopped after %d of %d cases; go on with the same command, --resume and --out %s\n",
			progress.Cases.Load(), progress.Planned.Load(), inert.Shell(out))
		return told{errInconclusive}
	}
	r, err := found.Result(dir)
	if err != nil {
		return err
	}
	return printCampaign(env, found, r, campaign.Config.Format, out)
}

// showCampaign prints a line now and then until the returned function is called.
func showCampaign(env *Env, p *harness.CampaignProgress) (done func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	began := env.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				arm := ""
				if a := p.Arm.Load(); a != nil {
					arm = *a
				}
				queries := p.Queries.Load()
				fmt.Fprintf(env.Stderr, "memtox: progress arm=%s cases=%d planned=%d landed=%d queries=%d rate=%.0f/s\n",
					inert.Text(arm), p.Cases.Load(), p.Planned.Load(), p.Landed.Load(), queries,
					float64(queries)/max(env.Now().Sub(began).Seconds(), 1e-3))
			}
		}
	}()
	return func() { close(end); <-ended }
}

// printCampaign prints the figures by budget.
func printCampaign(env *Env, found *harness.Campaign, r *harness.CampaignResult, format, out string) error {
	if format == "json" {
		if err := printJSON(env, r); err != nil {
			return err
		}
		return campaignVerdict(env, found, r)
	}
	line := func(s string) string {
		if format == "markdown" {
			return inert.Markdown(s) + "\n\n"
		}
		return inert.Text(s) + "\n"
	}
	var b strings.Builder
	b.WriteString(line(fmt.Sprintf("%s %s, split report: %d attacks, at most %d queries each; model %s; seed %d",
		r.Dataset.Name, r.Dataset.Version, r.Dataset.Attacks, r.Budget, r.Model, r.Seed)))
	if !r.LLM {
		b.WriteString(line(r.Model + " is NOT a language model: the figures say how defenses stand against this search on " +
			"it, not what an LLM would do."))
	}
	if r.Learned > 0 {
		b.WriteString(line(fmt.Sprintf("Sequences were learned against each arm on %d attacks of the split tune.",
			r.Learned)))
	} else {
		b.WriteString(line("Nothing was learned beforehand: the mutations were tried in the order of the catalog."))
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n", strings.TrimRight(b.String(), "\n")); err != nil {
		return err
	}
	section := func(title string) {
		if format == "markdown" {
			title = "### " + title + "\n"
		}
		fmt.Fprintf(env.Stdout, "\n%s\n", title)
	}
	section("End to end, by budget of queries (1: the static attack)")
	if err := levels(r, func(l harness.CampaignLevel) stats.Rate { return l.EndToEnd }).print(env, format); err != nil {
		return err
	}
	section("ASR, by budget of queries")
	if err := levels(r, func(l harness.CampaignLevel) stats.Rate { return l.ASR }).print(env, format); err != nil {
		return err
	}
	section("What landed, and what it took")
	l := &listing{columns: []string{"agent", "defense", "queries", "failed", "not scored", "landed again",
		"what landed most", "learned first"}}
	for _, a := range r.Arms {
		again := "–"
		if a.Fresh != nil {
			again = render.Rate(*a.Fresh)
		}
		l.add(a.Agent, a.Defense, fmt.Sprint(a.Queries), fmt.Sprint(a.Errors), fmt.Sprint(a.NotScored), again,
			mostFrequent(a.Winners, 3), strings.Join(a.Portfolio[:min(3, len(a.Portfolio))], ", "))
	}
	if err := l.print(env, format); err != nil {
		return err
	}
	if format == "table" {
		fmt.Fprintf(env.Stdout, "\nresult, journal and winning variants: %s\n", inert.Text(out))
	}
	return campaignVerdict(env, found, r)
}

// levels is a table with a column a budget.
func levels(r *harness.CampaignResult, of func(harness.CampaignLevel) stats.Rate) *listing {
	l := &listing{columns: []string{"agent", "defense"}}
	for i, a := range r.Arms {
		row := []string{a.Agent, a.Defense}
		for _, level := range a.Levels {
			if i == 0 {
				l.columns = append(l.columns, fmt.Sprint(level.Budget))
			}
			row = append(row, render.Rate(of(level)))
		}
		l.add(row...)
	}
	return l
}

// mostFrequent names the n keys with the greatest counts.
func mostFrequent(counts map[string]int, n int) string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return counts[b] - counts[a] })
	var parts []string
	for _, k := range keys[:min(n, len(keys))] {
		parts = append(parts, fmt.Sprintf("%s (%d)", k, counts[k]))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// campaignVerdict says so where nothing was measured, or where queries failed: a
// defense that is dead must not look like one that resists.
func campaignVerdict(env *Env, found *harness.Campaign, r *harness.CampaignResult) error {
	scored, queries, failed, silent := 0, 0, 0, 0
	for _, a := range r.Arms {
		if a.Cases == a.NotScored {
			fmt.Fprintf(env.Stderr, "memtox: nothing was scored under %s/%s\n", inert.Text(a.Agent), inert.Text(a.Defense))
		}
		scored += a.Cases - a.NotScored
		queries += a.Queries
		failed += a.Errors
		silent += a.Silent
	}
	if failed > 0 {
		why := ""
		if reason, n := found.MostFrequentError(); n > 0 {
			why = fmt.Sprintf("; the most frequent reason (%d times): %s", n, reason)
		}
		fmt.Fprintf(env.Stderr, "memtox: %d of %d queries failed and count as not landed%s\n", failed, queries,
			inert.Text(why))
	}
	all := summary.Arm{WriteExpected: int64(queries - failed), WriteProposed: int64(queries - failed - silent)}
	switch {
	case scored == 0:
		return told{errInconclusive}
	case all.Silent():
		fmt.Fprintf(env.Stderr, "memtox: %s\n", all.Silence())
		return told{errInconclusive}
	case failed > found.Config.MaxNotScored:
		return told{errBadNews}
	}
	return nil
}
