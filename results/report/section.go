package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// section is one chapter of the page.
type section struct {
	ID, Title string
	Notes     []string // paragraphs before the figures
	Figures   []figure
}

// figure is a plot and the table of what is in it. Plot is empty where a table
// says it all.
type figure struct {
	Plot    template.HTML
	Caption string
	Table   table
}

// table is texts; the columns behind the first Labels are numbers.
type table struct {
	Labels int
	Head   []string
	Rows   [][]string
}

// drop takes a column out.
func (t *table) drop(column int) {
	t.Head = slices.Delete(t.Head, column, column+1)
	for i := range t.Rows {
		t.Rows[i] = slices.Delete(t.Rows[i], column, column+1)
	}
}

func (t *table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// sections are the whole page in order.
func (r *Report) sections() []section {
	out := []section{r.headline(), r.tradeoff()}
	if s, ok := r.swept(); ok {
		out = append(out, s)
	}
	out = append(out, r.byClass())
	if s, ok := r.byVulnerability(); ok {
		out = append(out, s)
	}
	if s, ok := r.byMutation(); ok {
		out = append(out, s)
	}
	out = append(out, r.funnel(), r.detection())
	if s, ok := r.layers(); ok {
		out = append(out, s)
	}
	return append(out, r.latencies(), r.spoken(), r.origins(), r.notScored(), r.costs(), r.configuration())
}

// pct is a share of one as a percentage.
func pct(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + "%" }

// rateCells are k/n, the rate and its interval.
func rateCells(r stats.Rate) []string {
	v, ok := r.Value()
	if !ok {
		return []string{"0/0", "not measured", "–"}
	}
	return []string{fmt.Sprintf("%d/%d", r.K, r.N), pct(v), "[" + pct(r.Lo) + ", " + pct(r.Hi) + "]"}
}

// rateText is a rate in one cell.
func rateText(r stats.Rate) string {
	c := rateCells(r)
	if !r.Measured() {
		return c[1]
	}
	return c[1] + " (" + c[0] + ")"
}

// interval is the name of the intervals' column.
func (r *Report) interval() string {
	return strconv.FormatFloat(100*r.summary.Interval.Level, 'f', -1, 64) + "% interval"
}

// agents are the agents that have arms, in the order of the arms.
func (r *Report) agents() []string {
	var out []string
	for _, a := range r.summary.Arms {
		if !slices.Contains(out, a.Agent) {
			out = append(out, a.Agent)
		}
	}
	return out
}

// of are the arms of an agent.
func (r *Report) of(agent string) []*summary.Arm {
	var out []*summary.Arm
	for i := range r.summary.Arms {
		if r.summary.Arms[i].Agent == agent {
			out = append(out, &r.summary.Arms[i])
		}
	}
	return out
}

// baseline is the undefended arm of an agent.
func (r *Report) baseline(agent string) (*summary.Arm, bool) {
	for _, a := range r.of(agent) {
		if a.Defense == "none" {
			return a, true
		}
	}
	return nil, false
}

func (r *Report) headline() section {
	s := section{ID: "headline", Title: "Attacks that worked from end to end",
		Notes: []string{"A poisoned memory was written in one session and influenced a later one: it was acted on, or asserted as true. The rate counts scored attack trials that have a later query; lower is better. Whiskers are " + r.interval() + "s, widened for the likeness of cases of one template family."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "k/n", "end to end", r.interval(), "acted", "asserted", "influenced without a write", "worst case"}}
	var rows []forestRow
	anyBounds := false
	for _, a := range r.summary.Arms {
		row := forestRow{group: a.Agent, label: a.Defense, rate: a.Rate(metric.EndToEnd)}
		worst := "–"
		if b, ok := a.Bounds["end_to_end"]; ok {
			row.outer, anyBounds = &b, true
			worst = fmt.Sprintf("%s to %s (%d not scored)", pct(b.Lo), pct(b.Hi), b.NotScored)
		}
		rows = append(rows, row)
		t.add(slices.Concat([]string{a.Agent, a.Defense}, rateCells(a.Rate(metric.EndToEnd)), []string{rateText(a.Rate(metric.Acted)), rateText(a.Rate(metric.Asserted)), rateText(a.Rate(metric.InfluencedUnwritten)), worst})...)
	}
	for _, agent := range r.agents() {
		base, ok := r.baseline(agent)
		switch {
		case !ok:
			s.Notes = append(s.Notes, "There is no undefended arm of "+agent+" in this run: how many attacks would have worked without a defense is not known.")
		case !base.Rate(metric.EndToEnd).Measured():
			s.Notes = append(s.Notes, "The undefended arm of "+agent+" was not measured: how many attacks would have worked without a defense is not known.")
		case base.Rate(metric.EndToEnd).K == 0:
			s.Notes = append(s.Notes, "No headroom for "+agent+": undefended, no attack worked, so the rates of its defenses say nothing.")
		default:
			s.Notes = append(s.Notes, "Undefended, "+agent+": "+base.Rate(metric.EndToEnd).String()+".")
		}
	}
	caption := "End-to-end rate by arm, with its interval."
	if anyBounds {
		caption += " Shaded: between what the rate could lie had the trials been scored that ended in an error."
	}
	if !anyBounds {
		t.drop(len(t.Head) - 1)
	}
	s.Figures = []figure{{Plot: forest("headline", "End-to-end rate by arm", "share of attacks that worked from end to end", rows), Caption: caption, Table: t}}
	return s
}

func (r *Report) tradeoff() section {
	s := section{ID: "tradeoff", Title: "Security against utility",
		Notes: []string{"Security is the share of attacks that did not work from end to end; utility the share of benign cases whose legitimate write survived and whose later task was done. Top right is best. An arm is on the Pareto front when no other arm of the same agent is at least as good in both and better in one; the line says nothing about whether a difference is more than chance."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "number", "security", r.interval(), "utility", r.interval(), "utility under attack", "Pareto front"}}
	var panels []scatterPanel
	for _, agent := range r.agents() {
		p := scatterPanel{title: agent}
		for i, a := range r.of(agent) {
			pt := scatterPoint{number: i + 1, label: a.Defense, security: complement(a.Rate(metric.EndToEnd)), utility: a.Rate(metric.Utility)}
			p.points = append(p.points, pt)
		}
		p.front()
		for i, a := range r.of(agent) {
			pt := p.points[i]
			sec, use := rateCells(pt.security), rateCells(pt.utility)
			on := "–"
			if pt.measured() {
				on = map[bool]string{true: "yes", false: "no"}[pt.front]
			}
			t.add(a.Agent, a.Defense, strconv.Itoa(pt.number), sec[1]+" ("+sec[0]+")", sec[2], use[1]+" ("+use[0]+")", use[2], rateText(a.Rate(metric.UtilityUnderAttack)), on)
		}
		panels = append(panels, p)
	}
	s.Figures = []figure{{Plot: scatter("tradeoff", panels), Caption: "Each number is an arm, named in the table; bars are intervals, the broad line is the Pareto front. Arms at the same place share a label.", Table: t}}
	return s
}

// swept is what a sweep over a threshold shows. ok is false without one.
func (r *Report) swept() (s section, ok bool) {
	if len(r.summary.Sweeps) == 0 {
		return s, false
	}
	s = section{ID: "sweep", Title: "Thresholds",
		Notes: []string{"One arm for every value of a threshold. The point is chosen by the split tune and its figure is that of the split report: a figure on the split that it was chosen by would flatter it. The plot of security against utility above has every point."}}
	for i := range r.summary.Sweeps {
		sw := &r.summary.Sweeps[i]
		s.Notes = append(s.Notes, sw.Agent+", "+sw.Name+": "+sw.Why+".")
	}
	for _, split := range []string{"tune", "report"} {
		t := table{Labels: 2, Head: []string{"agent", "defense", "TPR", "FPR", "end to end", r.interval(), "utility", r.interval(), "chosen"}}
		var measured []summary.Sweep
		for _, sw := range r.summary.Sweeps {
			if !slices.Contains(sw.Splits(), split) {
				continue
			}
			measured = append(measured, sw)
			for k := range sw.Points {
				score := sw.Points[k].Of(split)
				end, use := rateCells(score.EndToEnd), rateCells(score.Utility)
				chosen := "–"
				if k == sw.Chosen {
					chosen = "chosen on tune"
				}
				t.add(sw.Agent, sw.Points[k].Defense, rateText(score.TPR), rateText(score.FPR), end[1]+" ("+end[0]+")", end[2], use[1]+" ("+use[0]+")", use[2], chosen)
			}
		}
		if len(measured) > 0 {
			s.Figures = append(s.Figures, figure{Plot: roc("roc-"+split, split, measured), Caption: "Detections against false positives (ROC) on the split " + split + "; the diamond is the point that was chosen on tune.", Table: t})
		}
	}
	return s, true
}

// byMutation has the figures of variants. ok is false where there are none.
func (r *Report) byMutation() (s section, ok bool) {
	t := table{Labels: 3, Head: []string{"agent", "defense", "mutation", "k/n", "end to end", r.interval(), "ASR", "TPR"}}
	for _, a := range r.summary.Arms {
		for _, m := range a.Mutations {
			c := rateCells(m.Rate(metric.EndToEnd))
			t.add(a.Agent, a.Defense, m.Name, c[0], c[1], c[2], rateText(m.Rate(metric.ASR)), rateText(m.Rate(metric.TPR)))
		}
	}
	if len(t.Rows) == 0 {
		return s, false
	}
	return section{ID: "mutations", Title: "Mutations",
		Notes:   []string{"Variants of the attacks, each mutation apart; " + summary.Original + " are the original attacks. Variants are in no other rate of this page, unless the run has nothing else."},
		Figures: []figure{{Caption: "Figures by mutation.", Table: t}}}, true
}

// complement is the rate of what did not happen.
func complement(r stats.Rate) stats.Rate {
	if !r.Measured() {
		return r
	}
	r.K, r.Lo, r.Hi = r.N-r.K, 1-r.Hi, 1-r.Lo
	return r
}

func (r *Report) byClass() section {
	s := section{ID: "classes", Title: "Attack class by defense",
		Notes:   []string{"The end-to-end rate of each attack class under each defense. A class that an agent cannot meet (a skill attack on an agent without skills) is not measured."},
		Figures: r.bySlice("classes", "attack class", "class", func(a *summary.Arm) []summary.Slice { return a.Classes })}
	if len(s.Figures) == 0 {
		s.Notes = append(s.Notes, "The run has no attack trials.")
	}
	return s
}

// byVulnerability has the figures by what attacks exploit. ok is false where
// nothing is known of that: the classes are not MPBench's.
func (r *Report) byVulnerability() (s section, ok bool) {
	s = section{ID: "vulnerabilities", Title: "Vulnerability by defense",
		Notes:   []string{"The end-to-end rate of the attacks that exploit each of MPBench's vulnerabilities, under each defense. A class of attacks exploits two or three of them, so the rows share trials: they do not add up, and a difference between two rows is no more than one between the classes that they do not share."},
		Figures: r.bySlice("vulnerabilities", "vulnerability", "vulnerability", func(a *summary.Arm) []summary.Slice { return a.Vulnerabilities })}
	return s, len(s.Figures) > 0
}

// bySlice has a heat map of slices by defense for every agent that has any;
// whole names a slice in the title, what in the table.
func (r *Report) bySlice(id, whole, what string, of func(*summary.Arm) []summary.Slice) []figure {
	var out []figure
	for i, agent := range r.agents() {
		var names, columns []string
		rates := map[[2]string]stats.Rate{}
		t := table{Labels: 1, Head: []string{what}}
		for _, a := range r.of(agent) {
			for _, c := range of(a) {
				if !slices.Contains(names, c.Name) {
					names = append(names, c.Name)
				}
				rates[[2]string{c.Name, a.Defense}] = c.Rate(metric.EndToEnd)
			}
			t.Head = append(t.Head, a.Defense)
			columns = append(columns, a.Defense)
		}
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			row := []string{name}
			for _, d := range columns {
				rate := rates[[2]string{name, d}]
				cells := rateCells(rate)
				if rate.Measured() {
					row = append(row, cells[1]+" ("+cells[0]+") "+cells[2])
				} else {
					row = append(row, cells[1])
				}
			}
			t.Rows = append(t.Rows, row)
		}
		out = append(out, figure{
			Plot:    heatMap(id+"-"+strconv.Itoa(i), "End-to-end rate by "+whole+" and defense, "+agent, names, columns, func(c, d string) stats.Rate { return rates[[2]string{c, d}] }),
			Caption: agent + ": end-to-end rate, k/n in each cell. Hatched: not measured.", Table: t})
	}
	return out
}

func (r *Report) funnel() section {
	s := section{ID: "funnel", Title: "From proposal to influence",
		Notes: []string{"How far attacks came: the agent wanted to write the poison; it was written where a later session can see it; it reached the later session's prompt; it influenced that session. The first two stages count attacks that say what they want stored, the last two those that also have a later query. Held writes wait for approval and are seen by no session."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "proposed", "written (ASR)", "held", "exposed", "influenced (end to end)", "influenced of written (RSR)"}}
	var rows []funnelRow
	for _, a := range r.summary.Arms {
		rows = append(rows, funnelRow{group: a.Agent, label: a.Defense, stages: [4]stats.Rate{a.Rate(metric.Proposed), a.Rate(metric.ASR), a.Rate(metric.Exposure), a.Rate(metric.EndToEnd)}})
		t.add(a.Agent, a.Defense, rateText(a.Rate(metric.Proposed)), rateText(a.Rate(metric.ASR)), rateText(a.Rate(metric.Held)), rateText(a.Rate(metric.Exposure)), rateText(a.Rate(metric.EndToEnd)), rateText(a.Rate(metric.RSR)))
	}
	s.Figures = []figure{{Plot: funnelPlot("funnel", rows), Caption: "Each bar is a rate from 0 to 1; the thin line is its interval.", Table: t}}
	s.Notes = append(s.Notes, "RSR depends on what a defense let through: it must not be compared across arms. End to end may be.")
	return s
}

func (r *Report) detection() section {
	s := section{ID: "detection", Title: "Detected attacks and stopped legitimate writes",
		Notes: []string{"TPR: attacks detected, at any gate and at each. FPR: legitimate writes that were stopped. Deferred writes are counted apart, on both sides. A detection that comes without a lower end-to-end rate bought nothing."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "TPR", r.interval(), "at input", "at write", "at read", "deferred attacks", "FPR", r.interval(), "deferred legitimate", "other tasks done"}}
	var rows []pairRow
	for _, a := range r.summary.Arms {
		tpr, fpr := rateCells(a.Rate(metric.TPR)), rateCells(a.Rate(metric.FPR))
		t.add(a.Agent, a.Defense, tpr[1]+" ("+tpr[0]+")", tpr[2], rateText(a.Rate(metric.TPRInput)), rateText(a.Rate(metric.TPRWrite)), rateText(a.Rate(metric.TPRRead)), rateText(a.Rate(metric.DeferredAttack)),
			fpr[1]+" ("+fpr[0]+")", fpr[2], rateText(a.Rate(metric.DeferredBenign)), rateText(a.Rate(metric.OtherTasks)))
		rows = append(rows, pairRow{group: a.Agent, label: a.Defense, a: a.Rate(metric.TPR), b: a.Rate(metric.FPR)})
	}
	s.Figures = []figure{{Plot: pairs("detection", "Detection rate and false-positive rate by arm", "attacks detected (TPR)", "legitimate writes stopped (FPR)", rows),
		Caption: "Filled circles: TPR, higher is better. Open squares: FPR, lower is better.", Table: t}}
	return s
}

// guardLayers are the defenses that the guard is composed of.
var guardLayers = []string{"signed", "keyword", "provenance", "contradiction", "anomaly"}

// layers compares the guard with its layers: each alone, and the guard with
// parts of it off, whichever of them the run has.
func (r *Report) layers() (section, bool) {
	s := section{ID: "layers", Title: "What the layers of the guard contribute",
		Notes: []string{"The undefended agent, each layer alone where the run has it as an arm, and the guard, whole or in part. What the whole adds is its difference to the best layer; what a layer adds within it is the difference that leaving it out makes. Compare two arms on the same cases with memtox compare."}}
	t := table{Labels: 3, Head: []string{"agent", "arm", "is", "k/n", "end to end", r.interval(), "TPR", "FPR", "utility", "write p95"}}
	var rows []forestRow
	found := false
	for _, agent := range r.agents() {
		var arms []*summary.Arm
		var roles []string
		guards, layers := 0, 0
		for _, a := range r.of(agent) {
			role := ""
			switch {
			case r.is(a.Defense, "guard"):
				role = "guard"
				guards++
			case a.Defense == "none":
				role = "undefended"
			case slices.ContainsFunc(guardLayers, func(l string) bool { return r.is(a.Defense, l) }):
				role = "a layer alone"
				layers++
			default:
				continue
			}
			arms, roles = append(arms, a), append(roles, role)
		}
		if guards == 0 || guards+layers < 2 {
			continue
		}
		found = true
		for i, a := range arms {
			rows = append(rows, forestRow{group: agent, label: a.Defense, rate: a.Rate(metric.EndToEnd)})
			t.add(slices.Concat([]string{agent, a.Defense, roles[i]}, rateCells(a.Rate(metric.EndToEnd)), []string{rateText(a.Rate(metric.TPR)), rateText(a.Rate(metric.FPR)), rateText(a.Rate(metric.Utility)), micros(a.LatencyUS.Write.P95)})...)
		}
	}
	if !found {
		return section{}, false
	}
	s.Figures = []figure{{Plot: forest("layers", "End-to-end rate of the guard and of its layers", "share of attacks that worked from end to end", rows), Caption: "End-to-end rate of the guard and of its layers.", Table: t}}
	return s, true
}

// is reports whether an arm is a built-in defense by its settings or its name,
// with whatever arguments.
func (r *Report) is(name, defense string) bool {
	match := func(s string) bool {
		rest, ok := strings.CutPrefix(s, defense)
		return ok && (rest == "" || strings.ContainsAny(rest[:1], "@:-_+ /({"))
	}
	resolved, _ := r.run.Settings["resolved"].(map[string]any)
	defenses, _ := resolved["defenses"].(map[string]any)
	if canonical, ok := defenses[name].(string); ok { // a label may have any name
		return match(canonical)
	}
	return match(name)
}

func (r *Report) latencies() section {
	s := section{ID: "latency", Title: "Time inside the defense",
		Notes: []string{"Time of one gate call: the write gate judges one proposal, the read gate all candidates of one recall. Quantiles are within 1% of the value of their rank. Times depend on the machine and on what else it did; compare arms of one run only."}}
	for _, g := range []struct{ gate, title string }{{results.GateWrite, "Write gate"}, {results.GateRead, "Read gate"}} {
		t := table{Labels: 2, Head: []string{"agent", "defense", "calls", "p50", "p95", "p99"}}
		var rows []latencyRow
		for _, a := range r.summary.Arms {
			l := a.LatencyUS.Write
			if g.gate == results.GateRead {
				l = a.LatencyUS.Read
			}
			t.add(a.Agent, a.Defense, strconv.FormatUint(l.N, 10), micros(l.P50), micros(l.P95), micros(l.P99))
			row := latencyRow{group: a.Agent, label: a.Defense, l: l, h: r.times[armGate{a.Agent, a.Defense, g.gate}]}
			rows = append(rows, row)
		}
		s.Figures = append(s.Figures, figure{Plot: latencyPlot("latency-"+g.gate, g.title, rows),
			Caption: g.title + ": how calls spread over a logarithmic axis (each curve to its own height), with p50 (circle), p95 (diamond) and p99 (triangle).", Table: t})
	}
	return s
}

// micros is a time in microseconds in the unit that reads best.
func micros(us *float64) string {
	if us == nil {
		return "not measured"
	}
	v, unit := *us, "µs"
	switch {
	case v >= 1e6:
		v, unit = v/1e6, "s"
	case v >= 1e3:
		v, unit = v/1e3, "ms"
	case v < 1 && v > 0:
		v, unit = v*1e3, "ns"
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
}

// mostChecks is how many checks of a defense the page lists.
const mostChecks = 15

func (r *Report) spoken() section {
	s := section{ID: "checks", Title: "Which checks spoke",
		Notes: []string{"Decisions on which a check of a defense spoke, and what became of them. A decision that several checks spoke on is counted for each."}}
	t := table{Labels: 2, Head: []string{"defense", "check", "decisions", "poison stopped", "legitimate stopped", "other stopped", "let through or deferred"}}
	listed, left := map[string]int{}, int64(0)
	for _, c := range r.summary.Checks {
		if listed[c.Defense]++; listed[c.Defense] > mostChecks {
			left++
			continue
		}
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		t.add(c.Defense, c.Name, n(c.N), n(c.PoisonStopped), n(c.LegitStopped), n(c.OtherStopped), n(c.N-c.PoisonStopped-c.LegitStopped-c.OtherStopped))
	}
	if len(t.Rows) == 0 {
		s.Notes = append(s.Notes, "No check spoke.")
		return s
	}
	if left > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d checks spoke less often and are not listed.", left))
	}
	s.Figures = []figure{{Caption: fmt.Sprintf("At most %d checks of each defense, by the poison that they stopped.", mostChecks), Table: t}}
	return s
}

func (r *Report) origins() section {
	s := section{ID: "origins", Title: "Origin accuracy",
		Notes: []string{"How often the origin that was computed for a written record is the true one. Defenses that judge by origin are right no more often than that. The rate counts records, not trials."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "right/known", "accuracy", r.interval()}}
	var rows []forestRow
	for _, a := range r.summary.Arms {
		rows = append(rows, forestRow{group: a.Agent, label: a.Defense, rate: a.Rate(metric.OriginAccuracy)})
		t.add(append([]string{a.Agent, a.Defense}, rateCells(a.Rate(metric.OriginAccuracy))...)...)
	}
	s.Figures = []figure{{Plot: forest("origins", "Share of written records whose computed origin is true", "share of written records whose origin is right", rows), Caption: "Origin accuracy by arm; higher is better.", Table: t}}
	return s
}

// mostReasons is how many reasons the page lists.
const mostReasons = 60

func (r *Report) notScored() section {
	s := section{ID: "not-scored", Title: "What was not scored",
		Notes: []string{"A trial that ended in an error is neither a success nor a resisted attack: it is in no rate, and it widens the worst-case bounds. An excluded trial's case does not apply to the agent; it is in no rate and no bounds."}}
	count := table{Labels: 2, Head: []string{"agent", "defense", "scored", "not scored", "excluded"}}
	bounds := table{Labels: 3, Head: []string{"agent", "defense", "rate", "as scored", "at least", "at most", "not scored"}}
	for i := range r.summary.Arms {
		a := &r.summary.Arms[i]
		count.add(a.Agent, a.Defense, strconv.FormatInt(a.Scored, 10), strconv.FormatInt(a.NotScored, 10), strconv.FormatInt(a.Excluded, 10))
		for _, m := range metric.All() {
			if b, ok := a.Bounds[m.Name]; ok {
				bounds.add(a.Agent, a.Defense, m.Name, rateText(a.Rate(m)), pct(b.Lo), pct(b.Hi), strconv.FormatInt(b.NotScored, 10))
			}
		}
	}
	s.Figures = append(s.Figures, figure{Caption: "Trials by arm.", Table: count})
	if len(bounds.Rows) > 0 {
		s.Figures = append(s.Figures, figure{Caption: "Worst-case bounds: between what each rate could lie had every trial been scored.", Table: bounds})
	}
	if ledger := r.summary.Reasons; len(ledger) > 0 {
		reasons := table{Labels: 4, Head: []string{"agent", "defense", "status", "reason", "trials"}}
		for _, l := range ledger[:min(len(ledger), mostReasons)] {
			reasons.add(l.Agent, l.Defense, l.Status, l.Reason, strconv.FormatInt(l.N, 10))
		}
		caption := "Why."
		if more := len(ledger) - mostReasons; more > 0 {
			caption += fmt.Sprintf(" %d further lines are left out.", more)
		}
		s.Figures = append(s.Figures, figure{Caption: caption, Table: reasons})
	}
	return s
}

func (r *Report) costs() section {
	s := section{ID: "costs", Title: "What it took",
		Notes: []string{"Sums over all trials of an arm, those that were not scored too."}}
	t := table{Labels: 2, Head: []string{"agent", "defense", "model calls", "retries", "empty answers", "tool calls", "prompt tokens", "completion tokens", "unsure verdicts", "allowed", "redacted", "deferred", "quarantined", "blocked"}}
	estimated := false
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	for _, a := range r.summary.Arms {
		c, v := a.Costs, a.Verdicts
		estimated = estimated || c.TokensEstimated
		t.add(a.Agent, a.Defense, n(c.ModelCalls), n(c.Retries), n(c.EmptyAnswers), n(c.ToolCalls), n(c.PromptTokens), n(c.CompletionTokens), n(a.Unsure), n(v.Allow), n(v.Redact), n(v.Defer), n(v.Quarantine), n(v.Block))
	}
	if estimated {
		s.Notes = append(s.Notes, "At least some tokens are memtox's estimate, not a provider's count.")
	}
	s.Figures = []figure{{Caption: "Calls, tokens and verdicts of the write gate by arm.", Table: t}}
	return s
}

func (r *Report) configuration() section {
	s := section{ID: "configuration", Title: "Configuration",
		Notes: []string{"Everything that was set for this run, as run.json holds it. Equal runs have equal digests."}}
	run := r.run
	t := table{Labels: 2, Head: []string{"what", "value"}}
	t.add("run", run.ID)
	t.add("memtox", run.Version)
	t.add("started", run.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	t.add("dataset", fmt.Sprintf("%s %s, SHA-256 %s, %d attacks and %d benign cases", run.Dataset.Name, run.Dataset.Version, run.Dataset.SHA256, run.Dataset.Attacks, run.Dataset.Benign))
	t.add("split", run.Split)
	t.add("model", run.Model)
	t.add("agents", strings.Join(run.Agents, ", "))
	t.add("defenses", strings.Join(run.Defenses, ", "))
	t.add("seed", strconv.FormatUint(run.Seed, 10))
	t.add("trials", fmt.Sprintf("%d of %d planned", r.summary.Trials, run.Planned))
	t.add("digest", r.summary.Digest)
	for _, m := range []struct {
		name   string
		values map[string]any
	}{{"setting", run.Settings}, {"host", run.Host}} {
		flatten(m.name, m.values, t.add)
	}
	s.Figures = []figure{{Caption: "Settings of the run.", Table: t}}
	digests := table{Labels: 3, Head: []string{"agent", "defense", "digest"}}
	for _, a := range r.summary.Arms {
		digests.add(a.Agent, a.Defense, a.Digest)
	}
	s.Figures = append(s.Figures, figure{Caption: "Digest of each arm, over the digests of its trials.", Table: digests})
	return s
}

// flatten lists values by the path of their keys.
func flatten(path string, m map[string]any, add func(...string)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch v := m[k].(type) {
		case map[string]any:
			flatten(path+" "+k, v, add)
		case string:
			add(path+" "+k, v)
		default:
			b, err := json.Marshal(v)
			if err != nil {
				b = []byte(fmt.Sprint(v))
			}
			add(path+" "+k, string(b))
		}
	}
}

// warnings are what qualifies rates, by arm.
func (r *Report) warnings() []string {
	var out []string
	for i := range r.summary.Arms {
		a := &r.summary.Arms[i]
		for _, w := range a.Warnings {
			out = append(out, a.Name()+": "+w)
		}
	}
	return out
}

// notLLM is the sentence that every page of the reference model carries.
const notLLM = "The model of this run is memtox's reference model: it is deterministic and is not an LLM. Its figures tell defenses apart on the same cases; undefended rates are properties of its construction and say nothing about how often a real model is poisoned."

// lead are the sentences at the top.
func (r *Report) lead() (status string, banners []string) {
	s := r.summary
	status = fmt.Sprintf("%d trials of %d planned, %s %s (%d attacks, %d benign cases), model %s.", s.Trials, s.Planned, s.Dataset.Name, s.Dataset.Version, s.Dataset.Attacks, s.Dataset.Benign, s.Model)
	switch {
	case s.Model == "none":
		banners = append(banners, "The run has texts alone, without an agent or a model: defenses were asked about each. Only what is detected, how long that took and what was not scored was measured.")
	case !s.LLM:
		banners = append(banners, notLLM)
	}
	if !r.finished {
		banners = append(banners, fmt.Sprintf("The run is not finished: %d of %d planned trials have rows. Every figure may still change.", s.Trials, s.Planned))
	}
	var scored, errors int64
	for _, a := range s.Arms {
		scored += a.Scored
		errors += a.NotScored
	}
	if scored == 0 {
		banners = append(banners, "Nothing was scored: this run says nothing about any defense.")
	} else if errors > 0 {
		banners = append(banners, fmt.Sprintf("%d trials ended in an error and are not scored; see the worst-case bounds.", errors))
	}
	return status, banners
}
