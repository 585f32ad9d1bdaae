package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness/attack"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/summary"
)

var attackFlags = []string{"dataset", "agent", "model", "base_url", "record", "replay", "defense", "class", "limit",
	"seed", "background", "concurrency", "out", "format"}

func newAttack(env *Env, c *cobra.Command) action {
	campaign := attack.DefaultOptions()
	f := newRunFlags(c, func(k settings.Key) bool { return slices.Contains(attackFlags, k.Name) }, map[string]string{
		"limit": "At most N attacks of the split report: a sample, stratified by class. 0 takes all"})
	fs := c.Flags()
	fs.IntVar(&campaign.Budget, "budget", campaign.Budget, "Queries that each case may take, the original attack included")
	fs.IntVar(&campaign.Learn, "learn", campaign.Learn, "Attacks of the split tune to learn on; 0 learns nothing")
	fs.IntVar(&campaign.Fresh, "fresh", campaign.Fresh,
		"Fresh epochs in which a winner is run again, where the model is stochastic")
	fs.StringVar(&campaign.Rewriter, "rewriter", "", "`MODEL` that words claims anew: openai:NAME or ollama:NAME")
	fs.StringVar(&campaign.RewriterURL, "rewriter-url", "", "`URL` of the rewriter's server")
	fs.BoolVar(&campaign.Resume, "resume", false, "Go on with the attack in --out; start it if there is none, print it "+
		"again if it is finished")
	return func(ctx context.Context, _ []string) (err error) {
		if campaign.Config, err = f.config(env, nil); err != nil {
			return err
		}
		return runAttack(ctx, env, campaign)
	}
}

func runAttack(ctx context.Context, env *Env, campaign attack.Options) error {
	out := campaign.Config.Out
	if campaign.Resume && out == "" {
		return &settings.Problem{Where: "--resume", What: "there is no telling which attack",
			Hint: "name its directory with --out"}
	}
	found, err := attack.Prepare(ctx, campaign, env.catalog(campaign.Resume, remote.Caps{}))
	if err != nil {
		return err
	}
	defer found.Close()
	if out == "" {
		out = filepath.Join("attacks", campaign.Config.RunID(env.Now()))
	}
	dir := env.path(out)
	if err := found.Open(dir); err != nil {
		return err
	}
	ctx, stop, release := env.stoppable(ctx, "cases")
	defer release()
	progress := new(attack.Progress)
	began := env.Now()
	ended := ticking(every, func() { fmt.Fprintln(env.Stderr, campaignLine(progress, env.Now().Sub(began))) })
	done, err := found.Run(ctx, progress, stop)
	ended()
	if err != nil {
		return fmt.Errorf("%w; go on with the same command, --resume and --out %s", err, inert.Shell(out))
	}
	if !done {
		return env.end(errInconclusive, "stopped after %d of %d cases; go on with the same command, --resume and --out %s",
			progress.Cases.Load(), progress.Planned.Load(), inert.Shell(out))
	}
	r, err := found.Result(dir)
	if err != nil {
		return err
	}
	format := campaign.Config.Format
	if err = show(env, format, "campaign", r, r); err == nil && format == "table" {
		_, err = fmt.Fprintf(env.Stdout, "\nresult, journal and winning variants: %s\n", inert.Text(out))
	}
	if err != nil {
		return err
	}
	return campaignVerdict(env, found, r)
}

// campaignLine is the state of a campaign as one line of key=value pairs.
func campaignLine(p *attack.Progress, elapsed time.Duration) string {
	arm := ""
	if a := p.Arm.Load(); a != nil {
		arm = *a
	}
	queries := p.Queries.Load()
	return fmt.Sprintf("memtox: progress arm=%s cases=%d planned=%d landed=%d queries=%d rate=%.0f/s", inert.Text(arm),
		p.Cases.Load(), p.Planned.Load(), p.Landed.Load(), queries, float64(queries)/max(elapsed.Seconds(), 1e-3))
}

// campaignVerdict says so where nothing was measured, or where queries failed: a
// defense that is dead must not look like one that resists.
func campaignVerdict(env *Env, found *attack.Campaign, r *attack.Result) error {
	scored, queries, failed, silent := 0, 0, 0, 0
	for _, a := range r.Arms {
		if a.Cases == a.NotScored {
			env.say("nothing was scored under %s/%s", a.Agent, a.Defense)
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
		env.say("%d of %d queries failed and count as not landed%s", failed, queries, why)
	}
	all := summary.Arm{WriteExpected: int64(queries - failed), WriteProposed: int64(queries - failed - silent)}
	switch {
	case scored == 0:
		return told{errInconclusive}
	case all.Silent():
		return env.end(errInconclusive, "%s", all.Silence())
	}
	return endIf(nil, failed > found.Config.MaxNotScored, errBadNews)
}
