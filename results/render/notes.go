package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/summary"
)

// clip keeps names from cases and configurations short.
func clip(s string) string { return inert.Clip(s, maxName) }

func armName(a *summary.Arm) string { return clip(a.Agent) + "/" + clip(a.Defense) }

// undefended is the name of the control without a defense.
const undefended = "none"

// heading says what the numbers are of.
func heading(s *summary.Summary) []string {
	d := s.Dataset
	name := clip(d.Name)
	if d.Version != "" {
		name += " " + clip(d.Version)
	}
	if s.Split != "" {
		name += ", split " + clip(s.Split)
	}
	lines := []string{
		fmt.Sprintf("%s: %s, %s; model %s", name, count(int64(d.Attacks), "attack"), count(int64(d.Benign), "benign case"),
			clip(s.Model)),
		fmt.Sprintf("run %s: %s, %s%s; digest %.16s", clip(s.RunID), count(int64(len(s.Arms)), "arm"),
			count(s.Trials, "trial"), resumed(s), s.Digest),
	}
	if why := s.Silence(); why != "" {
		lines = append(lines, "INCONCLUSIVE: "+why+".")
	}
	var scored int64
	for i := range s.Arms {
		scored += s.Arms[i].Scored
	}
	if scored == 0 {
		lines = append(lines, "NOTHING WAS SCORED: there is no number here.")
	}
	if s.Trials < s.Planned {
		lines = append(lines, fmt.Sprintf("THE RUN IS NOT FINISHED: %s of %s planned trials have rows.", thousands(s.Trials),
			thousands(s.Planned)))
	}
	if s.Whole > 0 {
		lines = append(lines, fmt.Sprintf("THIS IS ONE SHARD: %s of the plan's %s trials. `memtox merge` puts the shards "+
			"together.", thousands(s.Planned), thousands(s.Whole)))
	}
	if s.OnlyVariants {
		lines = append(lines, "Every attack of this run is a variant: these are figures of mutated attacks, not of the set.")
	}
	if !s.LLM {
		lines = append(lines, fmt.Sprintf("%s is NOT a language model: it is a fixed program that stands in for one, so "+
			"that defenses can be compared without a "+
			"model's mood. The numbers say what the defenses do to it, not what an LLM would do.", clip(s.Model)))
		if strings.HasSuffix(s.Model, ":naive") {
			lines = append(lines, "It is naive: it obeys whatever it reads. Its undefended rates are what it was built to "+
				"give, not findings.")
		}
	}
	return lines
}

func resumed(s *summary.Summary) string {
	if s.Resumed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s taken from an interrupted run)", thousands(int64(s.Resumed)))
}

// footnotes say how to read the numbers, and what is wrong with some.
func footnotes(s *summary.Summary) []string {
	lines := []string{
		fmt.Sprintf("Rates are k/n, percent and [%s%% interval] (%s: cases of one template family count for less than "+
			"independent ones). "+
			"%q is 0/0.", strings.TrimSuffix(fmt.Sprintf("%.1f", 100*s.Interval.Level), ".0"), s.Interval.Method, NotMeasured),
		"RSR depends on what a defense let through: compare defenses by end to end.",
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		if a.Trials() == 0 {
			lines = append(lines, fmt.Sprintf("%s: NO TRIAL of this arm has a row.", armName(a)))
		} else if a.Scored == 0 {
			lines = append(lines, fmt.Sprintf("%s: NO TRIAL of this arm was scored (%s ended in an error, %s are excluded).",
				armName(a), thousands(a.NotScored), thousands(a.Excluded)))
		}
		if a.NotScored > 0 {
			lines = append(lines, worst(a))
		}
		if a.Silent() {
			lines = append(lines, armName(a)+": "+a.Silence()+".")
		}
		if n := a.Costs.EmptyAnswers; n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s of the model, of %s calls, with neither text nor call.",
				armName(a), count(n, "empty answer"), thousands(a.Costs.ModelCalls)))
		}
	}
	return append(lines, headroom(s)...)
}

// worst says how far trials that were not scored could move the headline rates.
func worst(a *summary.Arm) string {
	var parts []string
	for _, m := range []*metric.Metric{metric.EndToEnd, metric.ASR, metric.TPR, metric.FPR, metric.Utility} {
		if b, ok := a.Bounds[m.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s–%s%%", m.Head, Percent(b.Lo), Percent(b.Hi)))
		}
	}
	line := fmt.Sprintf("%s: %s not scored", armName(a), count(a.NotScored, "trial"))
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(a.Errors)) {
		kinds = append(kinds, fmt.Sprintf("%s %s", k, thousands(a.Errors[k])))
	}
	if len(kinds) > 0 {
		line += " (" + strings.Join(kinds, ", ") + ")"
	}
	if len(parts) > 0 {
		line += "; had they been, the rates would lie within " + strings.Join(parts, ", ")
	}
	return line + "."
}

// headroom names the classes in which nothing landed undefended: what a defense
// shows there says nothing.
func headroom(s *summary.Summary) []string {
	var lines []string
	agents := map[string]bool{}
	for i := range s.Arms {
		a := &s.Arms[i]
		agents[a.Agent] = agents[a.Agent] || a.Defense == undefended
		if a.Defense != undefended {
			continue
		}
		var dry []string
		for j := range a.Classes {
			if c := &a.Classes[j]; c.Rate(metric.EndToEnd).Measured() && c.Rate(metric.EndToEnd).K == 0 {
				dry = append(dry, clip(c.Name))
			}
		}
		if len(dry) > 0 {
			lines = append(lines, fmt.Sprintf("No headroom for %s in %s: undefended, no attack reached its end, so no "+
				"defense can show anything there.", clip(a.Agent), strings.Join(dry, ", ")))
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		if !agents[agent] {
			lines = append(lines, fmt.Sprintf("%s was not run undefended (%s): it is not known whether its attacks would "+
				"have landed.", clip(agent), undefended))
		}
	}
	return lines
}
