package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"

	"github.com/memtox/memtox/internal/settings"
)

func newPlan(env *Env) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "plan", Short: "Say what a run would take: calls, tokens, price, time, smallest detectable difference",
		Args: noArgs,
		Long: `Estimate what memtox run with the same flags would take, before anything is spent.
No model is called: a sample of the trials is walked through with the reference
model and counted. For another model that gives a range; --pilot N runs N trials
with the model itself and scales by what they took. The price comes from the
settings price_prompt and price_completion (US dollars for a million tokens).`,
		Example: "  memtox plan --model openai:gpt-oss-120b --agent hermes --limit 200 --set price_prompt=0.15 --set " +
			"price_completion=0.6\n  memtox plan --model ollama:llama3.2 --pilot 20",
	}
	f.register(c, func(s settings.Key) bool { return s.Name != "out" }, nil)
	latency := c.Flags().Duration("latency", 2*time.Second, "How long a server is assumed to take for an answer")
	pilot := c.Flags().Int("pilot", 0, "Run `N` trials with the model itself first; this calls it")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		conf, err := f.config(env, nil)
		if err != nil {
			return err
		}
		if *pilot < 0 || *latency < 0 {
			return &settings.Problem{Where: "--pilot, --latency", What: "below 0", Hint: "give a number of trials, a duration"}
		}
		e, err := conf.Estimate(ctx, env.catalog(false, remote.Caps{}),
			harness.EstimateOptions{SecondsPerCall: latency.Seconds(), Pilot: *pilot})
		if err != nil {
			return err
		}
		if conf.Format == "json" {
			return printJSON(env, e)
		}
		return writeEstimate(env.Stdout, e)
	}
	return c
}

func writeEstimate(w io.Writer, e *harness.Estimate) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s %s\n", name, inert.Text(fmt.Sprintf(format, args...)))
	}
	line("dataset", "%s: %d cases, %d of them attacks of %d families", e.Dataset, e.Cases, e.Attacks, e.Families)
	line("model", "%s%s", e.Model, map[bool]string{false: " (NOT a language model)"}[e.LLM])
	line("trials", "%d in %d arms; %d of them do not apply to their agent", e.Trials, e.Arms, e.Excluded)
	span := func(s harness.Span, number func(float64) string) string {
		if s.Low == s.High {
			return "about " + number(s.Expected)
		}
		return fmt.Sprintf("about %s (%s to %s)", number(s.Expected), number(s.Low), number(s.High))
	}
	count := func(f float64) string { return fmt.Sprintf("%.0f", f) }
	line("model calls", "%s", span(e.Calls, count))
	line("prompt tokens", "%s", span(e.PromptTokens, count))
	line("completion tokens", "%s", span(e.CompletionTokens, count))
	if e.USD != nil {
		line("price", "%s US dollars", span(*e.USD, func(f float64) string { return fmt.Sprintf("%.2f", f) }))
	} else if e.LLM {
		line("price", "not known: set price_prompt and price_completion")
	}
	clock := func(f float64) string {
		return time.Duration(f * float64(time.Second)).Round(max(time.Second, time.Duration(f/50)*time.Second)).String()
	}
	if e.LLM {
		how := "assumed"
		if e.Pilot > 0 {
			how = "measured"
		}
		line("time", "%s at %d in flight and %.2f s a call (%s)", span(e.Seconds, clock), e.Concurrency, e.SecondsPerCall,
			how)
	} else {
		line("time", "%s on one processor", span(e.Seconds, clock))
	}
	b.WriteString("\nsmallest difference of two arms that is found with 80% power at 5%:\n")
	points := func(v *float64) string {
		if v == nil {
			return "none"
		}
		return fmt.Sprintf("%.1f points", 100**v)
	}
	for _, d := range e.Detectable {
		fmt.Fprintf(&b, "  arms differ on %2.0f%% of the cases: %s if cases are independent, %s if all cases of a family "+
			"are alike\n", 100*d.Discordance, points(d.Independent), points(d.Families))
	}
	fmt.Fprintf(&b, "\n%s\n", inert.Text(e.Basis))
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "%s\n", inert.Text(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
