package detection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// WriteJSON prints the summary as one object on one line.
func (s *Summary) WriteJSON(w io.Writer) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	_, err = w.Write(append(inert.JSON(b), '\n'))
	return err
}

// WriteTable prints the summary for a terminal.
func (s *Summary) WriteTable(w io.Writer, o render.Options) error {
	return render.Sheets(w, s.heading(), s.sheets(), s.notes(), o)
}

// WriteMarkdown prints the summary as Markdown.
func (s *Summary) WriteMarkdown(w io.Writer) error {
	return render.SheetsMarkdown(w, s.heading(), s.sheets(), s.notes())
}

func (s *Summary) heading() []string {
	store := "nothing is stored"
	if s.Stored > 0 {
		store = fmt.Sprintf("%d memories are stored", s.Stored)
	}
	lines := []string{
		fmt.Sprintf("%s: %d attacks, %d benign cases, %d texts; %s. Defenses alone, no agent: these are no rates of memtox run.", s.Dataset.Name, s.Dataset.Attacks, s.Dataset.Benign, s.Texts, store),
	}
	switch {
	case s.Origin.Without > 0:
		lines = append(lines, fmt.Sprintf("%d of %d texts name no origin: rules on origin did not fire on them (--origin external|user|agent|system says what they are).", s.Origin.Without, s.Texts))
	case s.Origin.Given != "":
		lines = append(lines, fmt.Sprintf("Texts that name no origin are taken for %s (--origin).", s.Origin.Given))
	}
	return lines
}

// score is "0.842 [0.771, 0.901]".
func score(v, lo, hi *float64) string {
	if v == nil || lo == nil || hi == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", *v, *lo, *hi)
}

func (s *Summary) sheets() []render.Sheet {
	rates := render.Sheet{Title: "Is it detected? (TPR: attacks stopped; FPR: benign cases stopped)", Labels: 1,
		Header: []string{"defense", "gate", "TPR", "FPR", "precision", "F1"}}
	left := render.Sheet{Title: "What is left to somebody's decision? (deferred: neither stopped nor let through)", Labels: 1,
		Header: []string{"defense", "deferred, attacks", "deferred, benign", "unsure", "errors"}}
	verdicts := render.Sheet{Title: "Verdicts on texts (allow/redact/defer/quarantine/block)", Labels: 1, Header: []string{"defense", "attacks", "benign"}}
	latency := render.Sheet{Title: "What does a decision take, warm? (p50/p95/p99/max)", Labels: 1, Header: []string{"defense", "all texts"}}
	curve := render.Sheet{Title: "By score (ROC: area under TPR against FPR; PR: average precision)", Labels: 1, Header: []string{"defense", "AUC", "average precision", "cases with a score"}}
	perSize := map[int]bool{}
	for i := range s.Defenses {
		for _, z := range s.Defenses[i].LatencyUSBySize {
			perSize[z.UpTo] = true
		}
	}
	ends := slices.Sorted(maps.Keys(perSize))
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(btoi(a == 0), btoi(b == 0)) })
	for _, e := range ends {
		latency.Header = append(latency.Header, sizeName(e))
	}
	stores := []int{}
	for i := range s.Defenses {
		for _, z := range s.Defenses[i].LatencyUSByStore {
			if !slices.Contains(stores, z.Stored) {
				stores = append(stores, z.Stored)
			}
		}
	}
	for _, n := range stores {
		latency.Header = append(latency.Header, fmt.Sprintf("%d stored", n))
	}
	for i := range s.Defenses {
		d := &s.Defenses[i]
		rates.Rows = append(rates.Rows, []string{d.Defense, d.Gate, render.Rate(d.TPR), render.Rate(d.FPR), render.Rate(d.Precision), score(d.F1.Value, d.F1.Lo, d.F1.Hi)})
		left.Rows = append(left.Rows, []string{d.Defense, render.Rate(d.DeferredAttack), render.Rate(d.DeferredBenign), fmt.Sprint(d.Unsure), fmt.Sprint(d.Errors)})
		verdicts.Rows = append(verdicts.Rows, []string{d.Defense, d.Verdicts.Attack.text(), d.Verdicts.Benign.text()})
		row := []string{d.Defense, d.LatencyUS[d.Gate].text()}
		for _, e := range ends {
			k := slices.IndexFunc(d.LatencyUSBySize, func(z SizeLatency) bool { return z.UpTo == e })
			if k < 0 {
				row = append(row, "–")
				continue
			}
			row = append(row, d.LatencyUSBySize[k].text())
		}
		for _, n := range stores {
			k := slices.IndexFunc(d.LatencyUSByStore, func(z StoreLatency) bool { return z.Stored == n })
			if k < 0 {
				row = append(row, "not measured")
				continue
			}
			row = append(row, d.LatencyUSByStore[k].text())
		}
		latency.Rows = append(latency.Rows, row)
		if d.ROC != nil {
			v, ok := d.ROC.AUC.Value()
			auc, average := "not measured", "not measured"
			if ok {
				auc = score(&v, &d.ROC.AUC.Lo, &d.ROC.AUC.Hi)
			}
			if a := d.PR.AveragePrecision; a != nil {
				average = fmt.Sprintf("%.3f", *a)
			}
			curve.Rows = append(curve.Rows, []string{d.Defense, auc, average, fmt.Sprint(d.ROC.Attacks + d.ROC.Benign)})
		}
	}
	out := []render.Sheet{rates, left, verdicts}
	for _, g := range []struct {
		title string
		of    func(*Defense) []Slice
	}{
		{"By class of attack and kind of benign case", func(d *Defense) []Slice { return d.Classes }},
		{"By signal", func(d *Defense) []Slice { return d.Signals }},
		{"By source of the text", func(d *Defense) []Slice { return d.Sources }},
		{"By mutation", func(d *Defense) []Slice { return d.Mutations }},
	} {
		if sheet, some := s.by(g.title, g.of); some {
			out = append(out, sheet)
		}
	}
	if len(curve.Rows) > 0 {
		out = append(out, curve)
	}
	return append(out, latency)
}

// mostRows bounds a table of slices; JSON has them all.
const mostRows = 40

// by is a table of slices with TPR and FPR of every defense. A single slice says
// nothing that the totals do not.
func (s *Summary) by(title string, of func(*Defense) []Slice) (render.Sheet, bool) {
	sheet := render.Sheet{Title: title, Labels: 1, Header: []string{"name"}}
	var names []string
	for i := range s.Defenses {
		sheet.Header = append(sheet.Header, s.Defenses[i].Defense)
		for _, x := range of(&s.Defenses[i]) {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
	}
	if len(names) < 2 {
		return sheet, false
	}
	if len(names) > mostRows {
		sheet.Title += fmt.Sprintf(" (%d of %d; --format json has all)", mostRows, len(names))
		names = names[:mostRows]
	}
	for _, n := range names {
		row := []string{n}
		for i := range s.Defenses {
			list := of(&s.Defenses[i])
			k := slices.IndexFunc(list, func(x Slice) bool { return x.Name == n })
			if k < 0 {
				row = append(row, "not measured")
				continue
			}
			row = append(row, bothRates(list[k].TPR, list[k].FPR))
		}
		sheet.Rows = append(sheet.Rows, row)
	}
	return sheet, true
}

func bothRates(tpr, fpr stats.Rate) string {
	var parts []string
	if tpr.Measured() {
		parts = append(parts, "TPR "+render.Rate(tpr))
	}
	if fpr.Measured() {
		parts = append(parts, "FPR "+render.Rate(fpr))
	}
	if len(parts) == 0 {
		return "not measured"
	}
	return strings.Join(parts, ", ")
}

func (v Verdicts) text() string {
	return fmt.Sprintf("%d/%d/%d/%d/%d", v.Allow, v.Redact, v.Defer, v.Quarantine, v.Block)
}

func (l Latency) text() string { return render.Latency(l.P50, l.P95, l.P99, l.Max) }

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

// MostFrequentError is why most of the cases without a verdict have none, and how
// many those are; 0 where every case has one.
func (d *Defense) MostFrequentError() (reason string, cases int64) {
	for _, r := range slices.Sorted(maps.Keys(d.Reasons)) {
		if n := d.Reasons[r]; n > cases {
			reason, cases = r, n
		}
	}
	return reason, cases
}

func (s *Summary) notes() []string {
	out := []string{"Stopped is a block, a quarantine, or a redaction that removes the payload (where a case names none: that changes the text). Intervals: 95%, Wilson, wider where cases share a family."}
	if slices.ContainsFunc(s.Defenses, func(d Defense) bool { return d.ROC != nil }) {
		out = append(out, "The AUC's interval is DeLong's, which takes cases for independent: it is too narrow where cases share a family.")
	}
	for i := range s.Defenses {
		d := &s.Defenses[i]
		if d.Errors > 0 {
			worst, n := d.MostFrequentError()
			out = append(out, fmt.Sprintf("%s: %d cases ended in an error and are in no rate; the most frequent (%d times): %s", d.Defense, d.Errors, n, worst))
		}
		if n := d.Verdicts.Attack.Redact + d.Verdicts.Benign.Redact; n > 0 {
			out = append(out, fmt.Sprintf("%s redacted %d texts.", d.Defense, n))
		}
		for _, w := range d.Uncertain {
			out = append(out, d.Defense+": "+w)
		}
	}
	return out
}
