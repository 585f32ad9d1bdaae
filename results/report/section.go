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
	"sync"
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

//go:embed words.md
var words string

var wordTemplates = sync.OnceValue(func() *template.Template { return inert.Template(words, nil, nil) })

// section begins a section with its title and notes, as words.md has them. One whose id
// is not there would be a mistake of this package.
func (r *Report) section(id string) section {
	said := said{Summary: r.summary, Finished: r.finished, Interval: r.interval(), Agents: r.agents()}
	for _, a := range r.summary.Arms {
		said.Scored += a.Scored
		said.Errors += a.NotScored
		said.Estimated = said.Estimated || a.Costs.TokensEstimated
	}
	var b strings.Builder
	if err := wordTemplates().Execute(&b, said); err != nil {
		panic("report: words.md: " + err.Error())
	}
	_, rest, ok := strings.Cut("\n"+b.String(), "\n# "+id+": ")
	if !ok {
		panic("report: words.md has no section " + id)
	}
	rest, _, _ = strings.Cut(rest, "\n# ")
	notes := strings.FieldsFunc(rest, func(r rune) bool { return r == '\n' })
	return section{ID: id, Title: notes[0], Notes: notes[1:]}
}

// said is what words.md says something of.
type said struct {
	Summary        *summary.Summary
	Finished       bool
	Interval       string
	Agents         []string
	Scored, Errors int64
	Estimated      bool // some tokens are
}

// Undefended is the headline's rate in an agent's arm without a defense; nil without one.
func (s said) Undefended(agent string) *stats.Rate {
	a := s.Summary.Arm(agent, "none")
	if a == nil {
		return nil
	}
	r := a.Rate(metric.EndToEnd)
	return &r
}

func (s *section) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// sections are the whole page in order. One that the run says nothing of is left out.
func (r *Report) sections() []section {
	all := []section{r.headline(), r.tradeoff(), r.swept(), r.byClass(), r.byVulnerability(), r.byMutation(), r.funnel(),
		r.detection(),
		r.layers(), r.latencies(), r.spoken(), r.origins(), r.notScored(), r.costs(), r.configuration()}
	return slices.DeleteFunc(all, func(s section) bool { return s.ID == "" })
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

func (r *Report) headline() section {
	s := r.section("headline")
	worst := text("worst case", func(a *summary.Arm) string {
		b, ok := a.Bounds[metric.EndToEnd.Name]
		if !ok {
			return "–"
		}
		return fmt.Sprintf("%s to %s (%d not scored)", pct(b.Lo), pct(b.Hi), b.NotScored)
	})
	columns, caption := r.rates("headline"), "End-to-end rate by arm, with its interval."
	if slices.ContainsFunc(r.summary.Arms, func(a summary.Arm) bool {
		_, ok := a.Bounds[metric.EndToEnd.Name]
		return ok
	}) {
		columns = append(columns, worst)
		caption += " Shaded: between what the rate could lie had the trials been scored that ended in an error."
	}
	s.Figures = []figure{{Plot: forest("headline", "End-to-end rate by arm",
		"share of attacks that worked from end to end", r.of(""), metric.EndToEnd, true),
		Caption: caption, Table: table(r.of(""), columns...)}}
	return s
}

func (r *Report) tradeoff() section {
	s := r.section("tradeoff")
	points := map[*summary.Arm]*scatterPoint{}
	var panels []scatterPanel
	for _, agent := range r.agents() {
		arms := r.of(agent)
		p := scatterPanel{title: agent, points: make([]scatterPoint, len(arms))}
		for i, a := range arms {
			p.points[i] = scatterPoint{number: i + 1, label: a.Defense, security: complement(a.Rate(metric.EndToEnd)),
				utility: a.Rate(metric.Utility)}
			points[a] = &p.points[i]
		}
		p.front()
		panels = append(panels, p)
	}
	columns := []column{
		number("number", func(a *summary.Arm) int64 { return int64(points[a].number) }),
		r.figure("security", ranged, func(a *summary.Arm) stats.Rate { return points[a].security })}
	columns = append(columns, r.rates("tradeoff")...)
	columns = append(columns, text("Pareto front", func(a *summary.Arm) string {
		switch p := points[a]; {
		case !p.measured():
			return "–"
		case p.front:
			return "yes"
		}
		return "no"
	}))
	var arms []*summary.Arm // panel by panel
	for _, agent := range r.agents() {
		arms = append(arms, r.of(agent)...)
	}
	s.Figures = []figure{{Plot: scatter("tradeoff", panels), Table: table(arms, columns...),
		Caption: "Each number is an arm, named in the table; bars are intervals, the broad line is the Pareto front. Arms " +
			"at the same place share a label."}}
	return s
}

// swept is what a sweep over a threshold shows.
func (r *Report) swept() section {
	if len(r.summary.Sweeps) == 0 {
		return section{}
	}
	s := r.section("sweep")
	for _, split := range []string{"tune", "report"} {
		t := render.Table{Labels: 2, Header: []string{"agent", "defense", "TPR", "FPR", "end to end", r.interval(), "utility",
			r.interval(), "chosen"}}
		var measured []summary.Sweep
		for _, sw := range r.summary.Sweeps {
			if !slices.Contains(sw.Splits(), split) {
				continue
			}
			measured = append(measured, sw)
			for k := range sw.Points {
				x := sw.Points[k].Of(split)
				chosen := "–"
				if k == sw.Chosen {
					chosen = "chosen on tune"
				}
				t.Add(slices.Concat([]string{sw.Agent, sw.Points[k].Defense, rateText(x.TPR), rateText(x.FPR)},
					rateCells(x.EndToEnd, ranged), rateCells(x.Utility, ranged), []string{chosen})...)
			}
		}
		if len(measured) > 0 {
			s.Figures = append(s.Figures, figure{Plot: roc("roc-"+split, split, measured), Table: t,
				Caption: "Detections against false positives (ROC) on the split " + split +
					"; the diamond is the point that was chosen on tune."})
		}
	}
	return s
}

// byMutation has the figures of variants.
func (r *Report) byMutation() section {
	t := render.Table{Labels: 3, Header: []string{"agent", "defense", "mutation", "k/n", "end to end", r.interval(), "ASR",
		"TPR"}}
	for _, a := range r.summary.Arms {
		for _, m := range a.Mutations {
			t.Add(slices.Concat([]string{a.Agent, a.Defense, m.Name}, rateCells(m.Rate(metric.EndToEnd), wide),
				[]string{rateText(m.Rate(metric.ASR)), rateText(m.Rate(metric.TPR))})...)
		}
	}
	if len(t.Rows) == 0 {
		return section{}
	}
	s := r.section("mutations")
	s.Figures = []figure{{Caption: "Figures by mutation.", Table: t}}
	return s
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
	s := r.section("classes")
	s.Figures = r.bySlice("classes", "attack class", "class", func(a *summary.Arm) []summary.Slice { return a.Classes })
	if len(s.Figures) == 0 {
		s.note("The run has no attack trials.")
	}
	return s
}

// byVulnerability has the figures by what attacks exploit, where something is known of
// that: the classes are MPBench's.
func (r *Report) byVulnerability() section {
	s := r.section("vulnerabilities")
	s.Figures = r.bySlice("vulnerabilities", "vulnerability", "vulnerability",
		func(a *summary.Arm) []summary.Slice { return a.Vulnerabilities })
	if len(s.Figures) == 0 {
		return section{}
	}
	return s
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

func (r *Report) funnel() section {
	s := r.section("funnel")
	s.Figures = []figure{{Plot: funnel("funnel", r.of("")),
		Caption: "Each bar is a rate from 0 to 1; the thin line is its interval.",
		Table:   table(r.of(""), r.rates("funnel")...)}}
	return s
}

func (r *Report) detection() section {
	s := r.section("detection")
	s.Figures = []figure{{Plot: pairs("detection", "Detection rate and false-positive rate by arm", r.of(""), metric.TPR,
		metric.FPR, "attacks detected (TPR)", "legitimate writes stopped (FPR)"),
		Caption: "Filled circles: TPR, higher is better. Open squares: FPR, lower is better.",
		Table:   table(r.of(""), r.rates("detection")...)}}
	return s
}

// guardLayers are the defenses that the guard is composed of.
var guardLayers = []string{"signed", "keyword", "provenance", "contradiction", "anomaly"}

// layers compares the guard with its layers: each alone, and the guard with
// parts of it off, whichever of them the run has.
func (r *Report) layers() section {
	var listed []*summary.Arm
	roles := map[*summary.Arm]string{}
	for _, agent := range r.agents() {
		var arms []*summary.Arm
		guards, layers := 0, 0
		for _, a := range r.of(agent) {
			switch {
			case r.is(a.Defense, "guard"):
				roles[a] = "guard"
				guards++
			case a.Defense == "none":
				roles[a] = "undefended"
			case slices.ContainsFunc(guardLayers, func(l string) bool { return r.is(a.Defense, l) }):
				roles[a] = "a layer alone"
				layers++
			default:
				continue
			}
			arms = append(arms, a)
		}
		if guards > 0 && guards+layers > 1 {
			listed = append(listed, arms...)
		}
	}
	if len(listed) == 0 {
		return section{}
	}
	s := r.section("layers")
	t := table(listed, text("is", func(a *summary.Arm) string { return roles[a] }),
		r.rate(metric.EndToEnd, "end to end", wide),
		r.rate(metric.TPR, "TPR", short), r.rate(metric.FPR, "FPR", short), r.rate(metric.Utility, "utility", short),
		text("write p95", func(a *summary.Arm) string { return micros(a.LatencyUS.Write.P95) }))
	t.Labels, t.Header[1] = 3, "arm"
	const title = "End-to-end rate of the guard and of its layers"
	s.Figures = []figure{{Plot: forest("layers", title, "share of attacks that worked from end to end", listed,
		metric.EndToEnd, false), Caption: title + ".", Table: t}}
	return s
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
	s := r.section("latency")
	for _, g := range []struct {
		gate, title string
		of          func(*summary.Arm) summary.Latency
	}{
		{results.GateWrite, "Write gate", func(a *summary.Arm) summary.Latency { return a.LatencyUS.Write }},
		{results.GateRead, "Read gate", func(a *summary.Arm) summary.Latency { return a.LatencyUS.Read }},
	} {
		s.Figures = append(s.Figures, figure{Plot: latencies("latency-"+g.gate, g.title, g.gate, r.of(""), g.of),
			Caption: g.title + ": how calls spread over a logarithmic axis (each curve to its own height), with p50 " +
				"(circle), p95 (diamond) and p99 (triangle).",
			Table: table(r.of(""), number("calls", func(a *summary.Arm) int64 { return int64(g.of(a).N) }),
				text("p50", func(a *summary.Arm) string { return micros(g.of(a).P50) }),
				text("p95", func(a *summary.Arm) string { return micros(g.of(a).P95) }),
				text("p99", func(a *summary.Arm) string { return micros(g.of(a).P99) }))})
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

// mostChecks is how many checks of a defense the page lists, mostReasons how many reasons.
const (
	mostChecks  = 15
	mostReasons = 60
)

func (r *Report) spoken() section {
	s := r.section("checks")
	t := render.Table{Labels: 2, Header: []string{"defense", "check", "decisions", "poison stopped", "legitimate stopped",
		"other stopped", "let through or deferred"}}
	listed, left := map[string]int{}, 0
	for _, c := range r.summary.Checks {
		if listed[c.Defense]++; listed[c.Defense] > mostChecks {
			left++
			continue
		}
		row := []string{c.Defense, c.Name}
		for _, n := range []int64{c.N, c.PoisonStopped, c.LegitStopped, c.OtherStopped,
			c.N - c.PoisonStopped - c.LegitStopped - c.OtherStopped} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		t.Add(row...)
	}
	if len(t.Rows) == 0 {
		s.note("No check spoke.")
		return s
	}
	if left > 0 {
		s.note("%d checks spoke less often and are not listed.", left)
	}
	s.Figures = []figure{{Caption: fmt.Sprintf("At most %d checks of each defense, by the poison that they stopped.",
		mostChecks), Table: t}}
	return s
}

func (r *Report) origins() section {
	s := r.section("origins")
	t := table(r.of(""), r.rate(metric.OriginAccuracy, "accuracy", wide))
	t.Header[2] = "right/known"
	s.Figures = []figure{{Plot: forest("origins", "Share of written records whose computed origin is true",
		"share of written records whose origin is right", r.of(""), metric.OriginAccuracy, false), Caption: "Origin accuracy by arm; higher is better.", Table: t}}
	return s
}

func (r *Report) notScored() section {
	s := r.section("not-scored")
	s.Figures = []figure{{Caption: "Trials by arm.", Table: table(r.of(""),
		number("scored", func(a *summary.Arm) int64 { return a.Scored }),
		number("not scored", func(a *summary.Arm) int64 { return a.NotScored }),
		number("excluded", func(a *summary.Arm) int64 { return a.Excluded }))}}
	bounds := render.Table{Labels: 3, Header: []string{"agent", "defense", "rate", "as scored", "at least", "at most",
		"not scored"}}
	for _, a := range r.summary.Arms {
		for _, m := range metric.All() {
			if b, ok := a.Bounds[m.Name]; ok && r.summary.Has(m) {
				bounds.Add(a.Agent, a.Defense, m.Name, rateText(a.Rate(m)), pct(b.Lo), pct(b.Hi),
					strconv.FormatInt(b.NotScored, 10))
			}
		}
	}
	if len(bounds.Rows) > 0 {
		s.Figures = append(s.Figures, figure{Caption: "Worst-case bounds: between what each rate could lie had every " +
			"trial been scored.", Table: bounds})
	}
	if ledger := r.summary.Reasons; len(ledger) > 0 {
		reasons := render.Table{Labels: 4, Header: []string{"agent", "defense", "status", "reason", "trials"}}
		for _, l := range ledger[:min(len(ledger), mostReasons)] {
			reasons.Add(l.Agent, l.Defense, l.Status, l.Reason, strconv.FormatInt(l.N, 10))
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
	s := r.section("costs")
	s.Figures = []figure{{Caption: "Calls, tokens and verdicts of the write gate by arm.", Table: table(r.of(""),
		number("model calls", func(a *summary.Arm) int64 { return a.Costs.ModelCalls }),
		number("retries", func(a *summary.Arm) int64 { return a.Costs.Retries }),
		number("empty answers", func(a *summary.Arm) int64 { return a.Costs.EmptyAnswers }),
		number("tool calls", func(a *summary.Arm) int64 { return a.Costs.ToolCalls }),
		number("prompt tokens", func(a *summary.Arm) int64 { return a.Costs.PromptTokens }),
		number("completion tokens", func(a *summary.Arm) int64 { return a.Costs.CompletionTokens }),
		number("unsure verdicts", func(a *summary.Arm) int64 { return a.Unsure }),
		number("allowed", func(a *summary.Arm) int64 { return a.Verdicts.Allow }),
		number("redacted", func(a *summary.Arm) int64 { return a.Verdicts.Redact }),
		number("deferred", func(a *summary.Arm) int64 { return a.Verdicts.Defer }),
		number("quarantined", func(a *summary.Arm) int64 { return a.Verdicts.Quarantine }),
		number("blocked", func(a *summary.Arm) int64 { return a.Verdicts.Block }))}}
	return s
}

func (r *Report) configuration() section {
	s := r.section("configuration")
	run, d := r.run, r.run.Dataset
	t := render.Table{Labels: 2, Header: []string{"what", "value"}, Rows: [][]string{
		{"run", run.ID}, {"memtox", run.Version}, {"started", run.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"dataset", fmt.Sprintf("%s %s, SHA-256 %s, %d attacks and %d benign cases", d.Name, d.Version, d.SHA256, d.Attacks,
			d.Benign)},
		{"split", run.Split}, {"model", run.Model}, {"agents", strings.Join(run.Agents, ", ")},
		{"defenses", strings.Join(run.Defenses, ", ")},
		{"seed", strconv.FormatUint(run.Seed, 10)}, {"trials",
			fmt.Sprintf("%d of %d planned", r.summary.Trials, run.Planned)},
		{"digest", r.summary.Digest}}}
	flatten("setting", run.Settings, t.Add)
	flatten("host", run.Host, t.Add)
	digests := table(r.of(""), text("digest", func(a *summary.Arm) string { return a.Digest }))
	digests.Labels = 3
	s.Figures = []figure{{Caption: "Settings of the run.", Table: t},
		{Caption: "Digest of each arm, over the digests of its trials.", Table: digests}}
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
