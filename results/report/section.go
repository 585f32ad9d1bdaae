package report

import (
	"cmp"
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
	Folded    bool // HTML shows the title until somebody opens it
	Maps      bool // there is a map of rates among the figures
}

// Key are the classes of a map from the best to the worst.
func (section) Key() (out []string) {
	for i := range 11 {
		out = append(out, fmt.Sprint("h", i))
	}
	return out
}

// figure is a plot and the table of what is in it. Plot is empty where a table
// says it all.
type figure struct {
	Plot    htmltemplate.HTML
	Caption string
	Table   render.Table
	Folded  bool // as of a section
	// Examples are the trials that a cell names, by row and column; nil but for theirs.
	Examples [][][]example
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
		s.Maps = plots == nil && slices.ContainsFunc(s.Figures, func(f figure) bool { return f.Plot != "" })
		_, outcome := outcomes[s.ID]
		s.Folded = r.states() && (!outcome || s.ID == "tasks") &&
			!slices.Contains([]string{"verdict", "tradeoff", "examples", "situations"}, s.ID)
		if len(s.Figures) > 0 || s.ID == "classes" || s.ID == "checks" {
			for k := range s.Figures {
				r.unheld(&s.Figures[k].Table)
			}
			all[i] = s
			i++
		}
	}
	return all[0], all[1:i]
}

// unheld says in the rows of a table where gates of a defense were not enforced.
func (r *Report) unheld(t *render.Table) {
	agent := slices.Index(t.Header, "agent")
	defense := slices.IndexFunc(t.Header, func(head string) bool { return head == "defense" || head == "arm" })
	if defense < 0 {
		return
	}
	for _, row := range t.Rows {
		of := ""
		if agent >= 0 {
			of = row[agent]
		}
		row[defense] = r.summary.Row(of, row[defense])
	}
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
		"row": func(cells []string) row {
			out := make(row, len(cells))
			for i, c := range cells {
				out[i] = inert.Text(c)
			}
			return out
		},
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
		"rest":     func(c summary.Check) int64 { return c.N - c.PoisonStopped - c.LegitStopped - c.OtherStopped },
		"sentence": sentence,
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
	worked, lead := "share of attacks that worked from end to end", metric.EndToEnd
	if r.states() {
		worked, lead = "share of attacks that did harm", metric.Harm
	}
	if list, ok := outcomes[s.ID]; ok {
		s.Figures = r.byArm(list)
	}
	switch s.ID {
	case "examples":
		if len(r.examples.of) > 0 {
			s.Figures = []figure{r.examples.figure(r)}
		}
	case "questions": // of state runs alone, like the others of outcomes
		s.Figures = append(s.Figures, figure{Folded: true, Caption: "Questions too many, per 100 trials.", Table: r.armTable(func(a *summary.Arm) string { return render.PerHundred(a.ExcessPer100) })})
	case "situations":
		s.Figures = r.bySlice("situation", metric.Harm, (*summary.Arm).SituationSlices)
		for _, m := range []*metric.Metric{metric.DoneBenign, metric.Rescued, metric.Wrong} {
			for _, f := range r.bySlice("situation", m, (*summary.Arm).SituationSlices) {
				f.Folded = true
				s.Figures = append(s.Figures, f)
			}
		}
	case "channels":
		s.Figures = r.bySlice("channel", lead, func(a *summary.Arm) []summary.Slice { return a.Vias })
	case "headline":
		return []htmltemplate.HTML{forest(s.ID, "End-to-end rate by arm", worked, arms, metric.EndToEnd, true)}
	case "tradeoff":
		harm, done := r.axes()
		return []htmltemplate.HTML{scatter(s.ID, harm.Head, done.Head, r.tradeoff())}
	case "sweep":
		var out []htmltemplate.HTML
		for _, split := range r.splits() {
			out = append(out, roc("roc-"+split, split, r.Swept(split)))
		}
		return out
	case "classes":
		s.Figures = r.bySlice("class", lead,
			func(a *summary.Arm) []summary.Slice { return a.Classes })
		if len(s.Figures) == 0 {
			s.Notes = append(s.Notes, "The run has no attack trials.")
		}
	case "vulnerabilities": // where something is known of them: the classes are MPBench's
		s.Figures = r.bySlice("vulnerability", lead,
			func(a *summary.Arm) []summary.Slice { return a.Vulnerabilities })
	case "funnel":
		last := "influenced"
		if r.states() {
			last = "harmed"
		}
		return []htmltemplate.HTML{funnel(s.ID, last, arms)}
	case "detection":
		return []htmltemplate.HTML{pairs(s.ID, "Detection rate and false-positive rate by arm", arms, metric.TPR, metric.FPR,
			"attacks detected (TPR)", "legitimate writes stopped (FPR)")}
	case "layers":
		if len(s.Figures) > 0 {
			var listed []*summary.Arm
			for _, l := range r.layers() {
				listed = append(listed, l.Arm)
			}
			return []htmltemplate.HTML{forest(s.ID, sentence(lead.Head)+" of the guard and of its layers", worked, listed,
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
	Estimated      bool   // some tokens are
	Bounded        bool   // some headline is
	States         bool   // outcomes are states
	Linked         bool   // examples are links
	HarmHead, Rate string // of harm: over a column, and in a sentence
	Look           *look
}

// look is what the run says at one look.
type look struct {
	Legend string
	Said   []string
	Tables []render.Table
}

// mostChecks is how many checks of a defense the page lists, mostReasons how many reasons.
const (
	mostChecks  = 15
	mostReasons = 60
)

func (r *Report) said() said {
	x := said{Report: r, Run: r.run, Summary: r.summary, Finished: r.finished, Interval: r.interval(), Agents: r.agents(),
		Splits: r.splits(), Linked: r.viewer != "", Arms: r.of(""), Layers: r.layers()}
	for _, p := range r.tradeoff() {
		x.Tradeoff = append(x.Tradeoff, p.points...)
	}
	harm, _ := r.axes()
	x.HarmHead, x.Rate = harm.Head, "the end-to-end rate"
	if v := r.summary.Verdict; v != nil {
		if x.States = r.states(); x.States {
			x.Rate = "the rate of harm"
		}
		x.Look = &look{Tables: render.Look(v)}
		x.Look.Legend, x.Look.Said = render.Said(v)
	}
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

// ends are the arms of an agent under a defense, one for each model. Its rates are those
// of the worse end.
type ends []*summary.Arm

func (e ends) Rate(m *metric.Metric) (out stats.Rate) {
	for _, a := range e {
		r := a.Rate(m)
		v, ok := r.Value()
		if most, any := out.Value(); ok && (!any || v != most && (m.Better == stats.LowerIsBetter) == (v > most)) {
			out = r
		}
	}
	return out
}

// axes are the rates that are held against each other.
func (r *Report) axes() (harm, done *metric.Metric) {
	if r.states() {
		return metric.Harm, metric.DoneBenign
	}
	return metric.EndToEnd, metric.Utility
}

// states reports whether outcomes are states.
func (r *Report) states() bool { return r.summary.Verdict != nil && r.summary.Verdict.States }

func (r *Report) tradeoff() (panels []scatterPanel) {
	harm, done := r.axes()
	for _, agent := range r.names() {
		p := scatterPanel{title: agent}
		for _, d := range r.defenses() {
			if e := r.ends(agent, d); len(e) > 0 {
				p.points = append(p.points, tradeoff{Agent: agent, Defense: d, ends: e, Harm: e.Rate(harm), Done: e.Rate(done)})
			}
		}
		p.front()
		panels = append(panels, p)
	}
	return panels
}

// outcomes are the rates of states by section, each with a map of its own but for those
// that stand beside, in folded tables.
var (
	outcomes = map[string][]*metric.Metric{
		"harm":      {metric.Harm, metric.HarmHigh, metric.Rescued, metric.Prevented, metric.HarmAtVigilance},
		"done":      {metric.DoneBenign, metric.DoneAttack, metric.Pairs, metric.Idle},
		"questions": {metric.Wrong, metric.DueAsked},
		"tasks":     {metric.QuestionHarm, metric.QuestionWrong, metric.QuestionDone, metric.QuestionTold},
	}
	beside = []*metric.Metric{metric.HarmAtVigilance, metric.Prevented, metric.Idle, metric.QuestionTold}
)

// byArm has a map of each rate that was measured: a row a defense, a column an agent at
// one end.
func (r *Report) byArm(list []*metric.Metric) (out []figure) {
	for _, m := range list {
		if !slices.ContainsFunc(r.summary.Arms, func(a summary.Arm) bool { return a.Rate(m).Measured() }) {
			continue
		}
		f := figure{Caption: sentence(m.Head) + ": " + m.About + ".", Folded: slices.Contains(beside, m)}
		f.Table = r.armTable(func(a *summary.Arm) string {
			cells := rateCells(a.Rate(m), ranged)
			if m.Unit > 1 { // parts of trials are no counts
				cells = rateCells(a.Rate(m), wide)[1:]
			}
			return strings.Join(cells, " ")
		})
		if !f.Folded {
			f.Plot = heat(r.defenses(), r.agents(), m.Better, func(defense, agent string) (rate stats.Rate) {
				if a := r.summary.Arm(agent, defense); a != nil {
					rate = a.Rate(m)
				}
				return rate
			})
		}
		out = append(out, f)
	}
	return out
}

// armTable has a row a defense and a column an agent.
func (r *Report) armTable(cell func(*summary.Arm) string) render.Table {
	t := render.Table{Labels: 1, Header: append([]string{"defense"}, r.agents()...)}
	for _, d := range r.defenses() {
		row := []string{d}
		for _, agent := range r.agents() {
			if a := r.summary.Arm(agent, d); a != nil {
				row = append(row, cell(a))
			} else {
				row = append(row, render.NotMeasured)
			}
		}
		t.Add(row...)
	}
	return t
}

// bySlice has a map of slices by defense for every agent that has any, of the worse end;
// what names a slice in the table, which has both ends.
func (r *Report) bySlice(what string, m *metric.Metric, of func(*summary.Arm) []summary.Slice) []figure {
	var out []figure
	for _, agent := range r.names() {
		var names []string
		slicesOf := map[[2]string]ends{}
		for _, d := range r.defenses() {
			for _, a := range r.ends(agent, d) {
				for _, c := range of(a) {
					if s := c.Rate(m); !slices.Contains(names, c.Name) && (s.Measured() || what != "situation") {
						names = append(names, c.Name)
					}
					key := [2]string{c.Name, d}
					slicesOf[key] = append(slicesOf[key], &summary.Arm{Rates: c.Rates})
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		t := render.Table{Labels: 1, Header: append([]string{what}, r.defenses()...)}
		for _, name := range names {
			row := []string{name}
			for _, d := range r.defenses() {
				var cells []string
				for _, a := range slicesOf[[2]string{name, d}] {
					cell := rateText(a.Rate(m))
					if a.Rate(m).Measured() {
						cell = strings.Join(rateCells(a.Rate(m), ranged), " ")
					}
					cells = append(cells, cell)
				}
				row = append(row, cmp.Or(strings.Join(cells, " / "), render.NotMeasured))
			}
			t.Add(row...)
		}
		head := sentence(m.Head)
		if m == metric.EndToEnd {
			head = "End-to-end rate"
		}
		out = append(out, figure{
			Plot:    heat(names, r.defenses(), m.Better, func(c, d string) stats.Rate { return slicesOf[[2]string{c, d}].Rate(m) }),
			Caption: head + ", " + agent + ".", Table: t})
	}
	return out
}

// sentence begins with a capital.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// names are the agents, each with as many labels as there are models.
func (r *Report) names() []string {
	if v := r.summary.Verdict; v != nil {
		return v.Agents
	}
	return nil
}

func (r *Report) ends(agent, defense string) (out ends) {
	for _, model := range r.run.ModelNames() {
		if a := r.summary.Arm(r.run.Label(agent, model), defense); a != nil {
			out = append(out, a)
		}
	}
	return out
}

// defenses are those of all arms, in their order.
func (r *Report) defenses() (out []string) {
	for _, a := range r.summary.Arms {
		if !slices.Contains(out, a.Defense) {
			out = append(out, a.Defense)
		}
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
