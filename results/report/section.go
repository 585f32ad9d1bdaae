package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
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
	Plot    htmltemplate.HTML
	Caption string
	Table   render.Table
}

// words are the sections: behind the line with the title come paragraphs, then tables. A
// table begins with how many of its columns are labels and with its caption; its lines
// are rows, with cells between " | ".
//
//go:embed words.md
var words string

// row is cells that are inert already.
type row []string

// sections are the whole page in order, behind the lead. One that the run says nothing of
// is left out.
func (r *Report) sections() (lead section, all []section) {
	all = r.written()
	i := 1
	for _, s := range all[1:] {
		plots := r.plots(&s)
		for k := range min(len(plots), len(s.Figures)) {
			s.Figures[k].Plot = plots[k]
		}
		if len(s.Figures) > 0 || s.ID == "classes" || s.ID == "checks" {
			all[i] = s
			i++
		}
	}
	return all[0], all[1:i]
}

// written reads what the words say of the run.
func (r *Report) written() []section {
	said := r.said()
	show := func(v any) string {
		if cells, ok := v.(row); ok {
			return strings.Join(cells, "\t")
		}
		return inert.Text(fmt.Sprint(v))
	}
	as := func(w width) func(stats.Rate) row {
		return func(rate stats.Rate) row { return rateCells(rate, w) }
	}
	t := inert.Template(strings.ReplaceAll(words, " | ", "\t"), show, template.FuncMap{
		"heads": r.heads, "rates": r.rates, "short": as(short), "ranged": as(ranged), "wide": as(wide), "pct": pct,
		"micros": micros, "join": strings.Join, "flatten": flatten, "mostChecks": func() int { return mostChecks },
		"of": func(name string, of interface {
			Rate(*metric.Metric) stats.Rate
		}) stats.Rate {
			m, _ := metric.Find(name)
			return of.Rate(m)
		},
		"worst": func(a *summary.Arm) string {
			b, ok := a.Bounds[metric.EndToEnd.Name]
			if !ok {
				return "–"
			}
			return fmt.Sprintf("%s to %s (%d not scored)", pct(b.Lo), pct(b.Hi), b.NotScored)
		},
		"bounded": func(a *summary.Arm) []string {
			return metric.Names(func(m *metric.Metric) bool { _, ok := a.Bounds[m.Name]; return ok && r.summary.Has(m) })
		},
		"rest": func(c summary.Check) int64 { return c.N - c.PoisonStopped - c.LegitStopped - c.OtherStopped },
	})
	var b strings.Builder
	if err := t.Execute(&b, said); err != nil {
		panic("report: words.md: " + err.Error())
	}
	var out []section
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		s := &section{}
		if len(out) > 0 {
			s = &out[len(out)-1]
		}
		var f *figure
		if n := len(s.Figures); n > 0 {
			f = &s.Figures[n-1]
		}
		switch head, rest, _ := strings.Cut(line, ": "); {
		case line == "":
		case strings.HasPrefix(line, "# "):
			out = append(out, section{ID: head[2:], Title: rest})
		case strings.HasPrefix(head, "table ") && len(head) == len("table 2"):
			s.Figures = append(s.Figures, figure{Caption: rest, Table: render.Table{Labels: int(head[6] - '0')}})
		case f == nil:
			s.Notes = append(s.Notes, line)
		case f.Table.Header == nil:
			f.Table.Header = strings.Split(line, "\t")
		default:
			f.Table.Add(strings.Split(line, "\t")...)
		}
	}
	for i := range out {
		out[i].Figures = slices.DeleteFunc(out[i].Figures, func(f figure) bool { return len(f.Table.Rows) == 0 })
	}
	return out
}

// plots are those of the figures of a section, in their order. The sections with a map
// get their figures here.
func (r *Report) plots(s *section) []htmltemplate.HTML {
	arms := r.of("")
	const worked = "share of attacks that worked from end to end"
	switch s.ID {
	case "headline":
		return []htmltemplate.HTML{forest(s.ID, "End-to-end rate by arm", worked, arms, metric.EndToEnd, true)}
	case "tradeoff":
		panels, _ := r.tradeoff()
		return []htmltemplate.HTML{scatter(s.ID, panels)}
	case "sweep":
		var out []htmltemplate.HTML
		for _, split := range r.splits() {
			out = append(out, roc("roc-"+split, split, r.Swept(split)))
		}
		return out
	case "classes":
		s.Figures = r.bySlice(s.ID, "attack class", "class", func(a *summary.Arm) []summary.Slice { return a.Classes })
		if len(s.Figures) == 0 {
			s.Notes = append(s.Notes, "The run has no attack trials.")
		}
	case "vulnerabilities": // where something is known of them: the classes are MPBench's
		s.Figures = r.bySlice(s.ID, "vulnerability", "vulnerability",
			func(a *summary.Arm) []summary.Slice { return a.Vulnerabilities })
	case "funnel":
		return []htmltemplate.HTML{funnel(s.ID, arms)}
	case "detection":
		return []htmltemplate.HTML{pairs(s.ID, "Detection rate and false-positive rate by arm", arms, metric.TPR, metric.FPR,
			"attacks detected (TPR)", "legitimate writes stopped (FPR)")}
	case "layers":
		if len(s.Figures) > 0 {
			var listed []*summary.Arm
			for _, l := range r.layers() {
				listed = append(listed, l.Arm)
			}
			return []htmltemplate.HTML{forest(s.ID, "End-to-end rate of the guard and of its layers", worked, listed,
				metric.EndToEnd, false)}
		}
	case "latency":
		return []htmltemplate.HTML{
			latencies("latency-write", "Write gate", results.GateWrite, arms,
				func(a *summary.Arm) summary.Latency { return a.LatencyUS.Write }),
			latencies("latency-read", "Read gate", results.GateRead, arms,
				func(a *summary.Arm) summary.Latency { return a.LatencyUS.Read })}
	case "origins":
		return []htmltemplate.HTML{forest(s.ID, "Share of written records whose computed origin is true",
			"share of written records whose origin is right", arms, metric.OriginAccuracy, false)}
	}
	return nil
}

// said is what words.md says something of.
type said struct {
	*Report
	Run            *results.Run
	Summary        *summary.Summary
	Finished       bool
	Interval       string
	Agents, Splits []string
	Arms           []*summary.Arm
	Tradeoff       []tradeoff
	Layers         []layer
	Checks         []summary.Check
	Unlisted       int
	Reasons        []summary.Reason
	MoreReasons    int
	Scored, Errors int64
	Estimated      bool // some tokens are
	Bounded        bool // some headline is
}

// mostChecks is how many checks of a defense the page lists, mostReasons how many reasons.
const (
	mostChecks  = 15
	mostReasons = 60
)

func (r *Report) said() said {
	x := said{Report: r, Run: r.run, Summary: r.summary, Finished: r.finished, Interval: r.interval(), Agents: r.agents(),
		Splits: r.splits(), Arms: r.of(""), Layers: r.layers()}
	_, x.Tradeoff = r.tradeoff()
	for _, a := range x.Arms {
		x.Scored += a.Scored
		x.Errors += a.NotScored
		x.Estimated = x.Estimated || a.Costs.TokensEstimated
		_, bounded := a.Bounds[metric.EndToEnd.Name]
		x.Bounded = x.Bounded || bounded
	}
	listed := map[string]int{}
	for _, c := range r.summary.Checks {
		if listed[c.Defense]++; listed[c.Defense] > mostChecks {
			x.Unlisted++
		} else {
			x.Checks = append(x.Checks, c)
		}
	}
	x.Reasons = r.summary.Reasons[:min(len(r.summary.Reasons), mostReasons)]
	x.MoreReasons = len(r.summary.Reasons) - len(x.Reasons)
	return x
}

// Undefended is the headline's rate in an agent's arm without a defense; nil without one.
func (r *Report) Undefended(agent string) *stats.Rate {
	a := r.summary.Arm(agent, "none")
	if a == nil {
		return nil
	}
	rate := a.Rate(metric.EndToEnd)
	return &rate
}

// splits are those on which sweeps were measured.
func (r *Report) splits() []string {
	return slices.DeleteFunc([]string{"tune", "report"}, func(split string) bool { return len(r.Swept(split)) == 0 })
}

// Swept are the sweeps that were measured on a split.
func (r *Report) Swept(split string) []summary.Sweep {
	return slices.DeleteFunc(slices.Clone(r.summary.Sweeps), func(s summary.Sweep) bool {
		return !slices.Contains(s.Splits(), split)
	})
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

// of are the arms of an agent, or all for "".
func (r *Report) of(agent string) []*summary.Arm {
	var out []*summary.Arm
	for i := range r.summary.Arms {
		if a := &r.summary.Arms[i]; agent == "" || a.Agent == agent {
			out = append(out, a)
		}
	}
	return out
}

// tradeoff is an arm in the table of security against utility.
type tradeoff struct {
	Arm      *summary.Arm
	Number   int
	Security stats.Rate
	Front    string
}

func (r *Report) tradeoff() (panels []scatterPanel, rows []tradeoff) {
	for _, agent := range r.agents() {
		arms := r.of(agent)
		p := scatterPanel{title: agent, points: make([]scatterPoint, len(arms))}
		for i, a := range arms {
			p.points[i] = scatterPoint{number: i + 1, label: a.Defense, security: complement(a.Rate(metric.EndToEnd)),
				utility: a.Rate(metric.Utility)}
		}
		p.front()
		for i, x := range p.points {
			front := map[bool]string{true: "yes", false: "no"}[x.front]
			if !x.measured() {
				front = "–"
			}
			rows = append(rows, tradeoff{arms[i], x.number, x.security, front})
		}
		panels = append(panels, p)
	}
	return panels, rows
}

// complement is the rate of what did not happen.
func complement(r stats.Rate) stats.Rate {
	if !r.Measured() {
		return r
	}
	r.K, r.Lo, r.Hi = r.N-r.K, 1-r.Hi, 1-r.Lo
	return r
}

// bySlice has a heat map of slices by defense for every agent that has any;
// whole names a slice in the title, what in the table.
func (r *Report) bySlice(id, whole, what string, of func(*summary.Arm) []summary.Slice) []figure {
	var out []figure
	for i, agent := range r.agents() {
		var names, defenses []string
		rates := map[[2]string]stats.Rate{}
		for _, a := range r.of(agent) {
			for _, c := range of(a) {
				if !slices.Contains(names, c.Name) {
					names = append(names, c.Name)
				}
				rates[[2]string{c.Name, a.Defense}] = c.Rate(metric.EndToEnd)
			}
			defenses = append(defenses, a.Defense)
		}
		if len(names) == 0 {
			continue
		}
		t := render.Table{Labels: 1, Header: append([]string{what}, defenses...)}
		for _, name := range names {
			row := []string{name}
			for _, d := range defenses {
				rate := rates[[2]string{name, d}]
				cell := rateText(rate)
				if rate.Measured() {
					cell = strings.Join(rateCells(rate, ranged), " ")
				}
				row = append(row, cell)
			}
			t.Add(row...)
		}
		out = append(out, figure{
			Plot: heatMap(id+"-"+strconv.Itoa(i), "End-to-end rate by "+whole+" and defense, "+agent, names, defenses,
				func(c, d string) stats.Rate { return rates[[2]string{c, d}] }),
			Caption: agent + ": end-to-end rate, k/n in each cell. Hatched: not measured.", Table: t})
	}
	return out
}

// guardLayers are the defenses that the guard is composed of.
var guardLayers = []string{"signed", "keyword", "provenance", "contradiction", "anomaly"}

// layer is an arm that says something of the guard's layers.
type layer struct {
	*summary.Arm
	Role string
}

// layers compares the guard with its layers: each alone, and the guard with
// parts of it off, whichever of them the run has.
func (r *Report) layers() (listed []layer) {
	for _, agent := range r.agents() {
		var arms []layer
		guards, layers := 0, 0
		for _, a := range r.of(agent) {
			switch {
			case r.is(a.Defense, "guard"):
				arms = append(arms, layer{a, "guard"})
				guards++
			case a.Defense == "none":
				arms = append(arms, layer{a, "undefended"})
			case slices.ContainsFunc(guardLayers, func(l string) bool { return r.is(a.Defense, l) }):
				arms = append(arms, layer{a, "a layer alone"})
				layers++
			}
		}
		if guards > 0 && guards+layers > 1 {
			listed = append(listed, arms...)
		}
	}
	return listed
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

// micros is a time in microseconds in the unit that reads best.
func micros(us *float64) string {
	if us == nil {
		return render.NotMeasured
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

// flatten lists values by the path of their keys.
func flatten(path string, m map[string]any) (out [][2]string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		switch v := m[k].(type) {
		case map[string]any:
			out = append(out, flatten(path+" "+k, v)...)
		case string:
			out = append(out, [2]string{path + " " + k, v})
		default:
			b, err := json.Marshal(v)
			if err != nil {
				b = []byte(fmt.Sprint(v))
			}
			out = append(out, [2]string{path + " " + k, string(b)})
		}
	}
	return out
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
