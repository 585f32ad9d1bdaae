package report

import (
	"fmt"
	"slices"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// How a rate stands in a table.
type width int

const (
	short  width = iota // "76.2% (8/10)"
	ranged              // that, and its interval
	wide                // k/n, the rate, its interval
)

// shownRate is a rate in a table of the page.
type shownRate struct {
	m    *metric.Metric
	head string
	as   width
}

// onPage are the rates of the page's tables, by section. A rate that stands in none,
// but behind one of these in the tables of a run (see [metric.Metric.After]), is in the
// first section that has that one, at the end.
var onPage = follow([]string{"headline", "tradeoff", "funnel", "detection"}, map[string][]shownRate{
	"headline": {{metric.EndToEnd, "end to end", wide}, {metric.Acted, "acted", short},
		{metric.Asserted, "asserted", short},
		{metric.InfluencedUnwritten, "influenced without a write", short}},
	"tradeoff": {{metric.Utility, "utility", ranged}, {metric.UtilityUnderAttack, "utility under attack", short}},
	"funnel": {{metric.Proposed, "proposed", short}, {metric.ASR, "written (ASR)", short}, {metric.Held, "held", short},
		{metric.Exposure, "exposed", short}, {metric.EndToEnd, "influenced (end to end)", short},
		{metric.RSR, "influenced of written (RSR)", short}},
	"detection": {{metric.TPR, "TPR", ranged}, {metric.TPRInput, "at input", short}, {metric.TPRWrite, "at write", short},
		{metric.TPRRead, "at read", short}, {metric.DeferredAttack, "deferred attacks", short}, {metric.FPR, "FPR", ranged},
		{metric.DeferredBenign, "deferred legitimate", short}, {metric.OtherTasks, "other tasks done", short}},
})

func follow(order []string, page map[string][]shownRate) map[string][]shownRate {
	placed := map[*metric.Metric]bool{}
	for _, list := range page {
		for _, x := range list {
			placed[x.m] = true
		}
	}
	for _, id := range order {
		for _, x := range slices.Clone(page[id]) {
			for _, m := range x.m.Row() {
				if !placed[m] {
					placed[m] = true
					page[id] = append(page[id], shownRate{m, m.Head, short})
				}
			}
		}
	}
	return page
}

// ofStates is what rates are called where outcomes are states.
var ofStates = map[*metric.Metric]*metric.Metric{metric.EndToEnd: metric.Harm, metric.Utility: metric.DoneBenign,
	metric.UtilityUnderAttack: metric.DoneAttack}

// heads stand over the columns of a section's rates.
func (r *Report) heads(section string) (out row) {
	for _, x := range onPage[section] {
		if r.summary.Has(x.m) {
			head := x.head
			if is, ok := ofStates[x.m]; ok && r.states() {
				head = is.Head
			}
			out = append(out, [][]string{short: {head}, ranged: {head, r.interval()},
				wide: {"k/n", head, r.interval()}}[x.as]...)
		}
	}
	return out
}

// rates are an arm's cells of them.
func (r *Report) rates(section string, a interface {
	Rate(*metric.Metric) stats.Rate
}) (out row) {
	for _, x := range onPage[section] {
		if r.summary.Has(x.m) {
			out = append(out, rateCells(a.Rate(x.m), x.as)...)
		}
	}
	return out
}

// rateCells are the cells of a rate.
func rateCells(r stats.Rate, as width) []string {
	v, ok := r.Value()
	kn, rate, interval := fmt.Sprintf("%d/%d", r.K, r.N), pct(v), "["+pct(r.Lo)+", "+pct(r.Hi)+"]"
	if !ok {
		rate, interval = render.NotMeasured, "–"
	}
	switch {
	case as == wide:
		return []string{kn, rate, interval}
	case ok || as == ranged:
		rate += " (" + kn + ")"
	}
	return []string{rate, interval}[:as+1]
}

// rateText is a rate in one cell.
func rateText(r stats.Rate) string { return rateCells(r, short)[0] }

// pct is a share of one as a percentage.
func pct(v float64) string { return render.Percent(v) + "%" }
