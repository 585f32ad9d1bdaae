package render

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/summary"
)

// What the numbers are of, how to read them, and what is wrong with some.
//
//go:embed notes.txt
var notesText string

// notes are the lines of a template of notes.txt.
func notes(name string, s *summary.Summary) []string {
	var b strings.Builder
	t := inert.Template(notesText, nil, template.FuncMap{"clip": clip, "armName": armName, "count": count,
		"thousands": thousands, "bounds": bounds, "kinds": kinds, "dry": dry, "unguarded": unguarded,
		"scored": func(s *summary.Summary) (n int64) {
			for _, a := range s.Arms {
				n += a.Scored
			}
			return n
		},
		"naive": func(model string) bool { return strings.HasSuffix(model, ":naive") },
		"level": func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*v), ".0") },
		"scores": func(s *summary.Summary) bool {
			return slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return a.Texts.ROC != nil })
		},
		"worst": func(s *summary.Summary, a *summary.Arm) string {
			worst, n := s.MostFrequentError(a)
			return fmt.Sprintf("(%d times): %s", n, worst)
		}})
	if err := t.ExecuteTemplate(&b, name, s); err != nil {
		panic(err) // a mistake in notes.txt
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\n' })
}

// clip keeps names from cases and configurations short.
func clip(s string) string { return inert.Clip(s, maxName) }

func armName(a *summary.Arm) string { return clip(a.Agent) + "/" + clip(a.Defense) }

// undefended is the name of the control without a defense.
const undefended = "none"

// bounds says how far trials that were not scored could move the headline rates.
func bounds(a *summary.Arm) string {
	var parts []string
	for _, m := range []*metric.Metric{metric.EndToEnd, metric.ASR, metric.TPR, metric.FPR, metric.Utility} {
		if b, ok := a.Bounds[m.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s %s–%s%%", m.Head, Percent(b.Lo), Percent(b.Hi)))
		}
	}
	return strings.Join(parts, ", ")
}

// kinds counts the errors of an arm by their kinds.
func kinds(a *summary.Arm) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(a.Errors)) {
		name := k
		if said := map[string]string{"fatal": "failed for good", "transient": "failed for now"}[k]; said != "" {
			name = said
		}
		out = append(out, fmt.Sprintf("%s %s", name, thousands(a.Errors[k])))
	}
	return strings.Join(out, ", ")
}

// dry names the classes in which nothing landed undefended: what a defense shows there
// says nothing.
func dry(a *summary.Arm) string {
	var out []string
	for _, c := range a.Classes {
		if r := c.Rate(metric.EndToEnd); a.Defense == undefended && r.Measured() && r.K == 0 {
			out = append(out, clip(c.Name))
		}
	}
	return strings.Join(out, ", ")
}

// unguarded are the agents that were not run undefended.
func unguarded(s *summary.Summary) []string {
	agents := map[string]bool{}
	for _, a := range s.Arms {
		if s.Arm(a.Agent, undefended) == nil {
			agents[a.Agent] = true
		}
	}
	return slices.Sorted(maps.Keys(agents))
}
