package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// ofTexts says what there is to say of `memtox detect`.
func ofTexts(p *Paper, s *summary.Summary) {
	rates := Table{Title: "Is it detected? (TPR: attacks stopped; FPR: benign cases stopped)", Labels: 1,
		Header: []string{"defense", "gate"}}
	left := Table{Title: "What is left to somebody's decision? (deferred: neither stopped nor let through)", Labels: 1,
		Header: []string{"defense"}}
	verdicts := Table{Title: "Verdicts on texts (allow/redact/defer/quarantine/block)", Labels: 1,
		Header: []string{"defense", "attacks", "benign"}}
	curve := Table{Title: "By score (ROC: area under TPR against FPR; PR: average precision)", Labels: 1,
		Header: []string{"defense", "AUC", "average precision", "cases with a score"}}
	for i := range s.Arms {
		a, x := &s.Arms[i], s.Arms[i].Texts
		figures := map[*Table][]string{&rates: {a.Defense, x.Gate}, &left: {a.Defense}}
		for _, m := range metric.OfTexts() {
			t := &rates
			if m == metric.DeferredAttack || m == metric.DeferredBenign {
				t = &left
			}
			if i == 0 {
				t.Header = append(t.Header, m.Head)
			}
			figures[t] = append(figures[t], figure(m, a.Rate(m)))
		}
		rates.Add(figures[&rates]...)
		left.Add(append(figures[&left], fmt.Sprint(a.Unsure), fmt.Sprint(a.NotScored))...)
		verdicts.Add(a.Defense, verdictText(x.Verdicts.Attack), verdictText(x.Verdicts.Benign))
		if x.ROC != nil {
			auc, average := NotMeasured, NotMeasured
			if v, ok := x.ROC.AUC.Value(); ok {
				auc = score(&v, &x.ROC.AUC.Lo, &x.ROC.AUC.Hi)
			}
			if v := x.PR.AveragePrecision; v != nil {
				average = fmt.Sprintf("%.3f", *v)
			}
			curve.Add(a.Defense, auc, average, fmt.Sprint(x.ROC.Attacks+x.ROC.Benign))
		}
	}
	left.Header = append(left.Header, "unsure", "errors")
	tables := []Table{rates, left, verdicts}
	for _, by := range []struct {
		title string
		of    func(*summary.Arm) []summary.Slice
	}{
		{"By class of attack and kind of benign case", func(a *summary.Arm) []summary.Slice { return a.Classes }},
		{"By signal", func(a *summary.Arm) []summary.Slice { return a.Signals }},
		{"By source of the text", func(a *summary.Arm) []summary.Slice { return a.Texts.Sources }},
		{"By mutation", func(a *summary.Arm) []summary.Slice { return a.Mutations }},
	} {
		if t := bySlice(s, by.title, by.of); len(t.Rows) > 1 { // one slice says what the totals say
			tables = append(tables, t)
		}
	}
	if len(curve.Rows) > 0 {
		tables = append(tables, curve)
	}
	p.page(notes("heading of texts", s), append(tables, textLatency(s)), notes("footnotes of texts", s))
}

// mostRows bounds a table of slices; JSON has them all.
const mostRows = 40

// bySlice has a column a defense, with TPR and FPR of each slice.
func bySlice(s *summary.Summary, title string, of func(*summary.Arm) []summary.Slice) Table {
	x := cross{Table: Table{Title: title, Labels: 1, Header: []string{"name"}}}
	for i := range s.Arms {
		x.column(s.Arms[i].Defense)
		for _, slice := range of(&s.Arms[i]) {
			x.set([]string{slice.Name}, s.Arms[i].Defense, bothRates(slice.Rate(metric.TPR), slice.Rate(metric.FPR)))
		}
	}
	x.whole()
	if n := len(x.Rows); n > mostRows {
		x.Title += fmt.Sprintf(" (%d of %d; --format json has all)", mostRows, n)
		x.Rows = x.Rows[:mostRows]
	}
	return x.Table
}

func bothRates(tpr, fpr stats.Rate) string {
	var parts []string
	if tpr.Measured() {
		parts = append(parts, "TPR "+Rate(tpr))
	}
	if fpr.Measured() {
		parts = append(parts, "FPR "+Rate(fpr))
	}
	return cmp.Or(strings.Join(parts, ", "), NotMeasured)
}

func verdictText(v summary.Verdicts) string {
	return fmt.Sprintf("%d/%d/%d/%d/%d", v.Allow, v.Redact, v.Defer, v.Quarantine, v.Block)
}

// textLatency has the times of all texts, by their size and by the size of the store.
func textLatency(s *summary.Summary) Table {
	x := cross{Table: Table{Title: "What does a decision take, warm? (p50/p95/p99/max)", Labels: 1,
		Header: []string{"defense"}}, empty: "–"}
	x.column("all texts")
	ends := map[int]bool{}
	for i := range s.Arms {
		for _, z := range s.Arms[i].Texts.BySize {
			ends[z.UpTo] = true
		}
	}
	larger := ends[0] // than all the others
	delete(ends, 0)
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		x.column(sizeName(end))
	}
	if larger {
		x.column(sizeName(0))
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		l := map[string]summary.Latency{"write": a.LatencyUS.Write, "read": a.LatencyUS.Read,
			"input": a.LatencyUS.Input}[a.Texts.Gate]
		x.set([]string{a.Defense}, "all texts", latency(l))
		for _, z := range a.Texts.BySize {
			x.set([]string{a.Defense}, sizeName(z.UpTo), latency(z.Latency))
		}
	}
	x.empty = NotMeasured
	for i := range s.Arms {
		for _, z := range s.Arms[i].Texts.ByStore {
			x.set([]string{s.Arms[i].Defense}, fmt.Sprintf("%d stored", z.Stored), latency(z.Latency))
		}
	}
	return x.whole()
}

func sizeName(upTo int) string {
	switch {
	case upTo == 0:
		return "larger"
	case upTo >= 1_000_000:
		return fmt.Sprintf("≤ %d MB", upTo/1_000_000)
	case upTo >= 1000:
		return fmt.Sprintf("≤ %d kB", upTo/1000)
	}
	return fmt.Sprintf("≤ %d B", upTo)
}
