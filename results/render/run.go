package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// question is a table by arm: a rate, those that stand behind it, and what else answers.
type question struct {
	title string
	lead  *metric.Metric // may be nil
	more  []column
}

// column is a value of an arm that is no rate.
type column struct {
	head string
	of   func(*summary.Arm) string
}

func number(head string, of func(*summary.Arm) int64) column {
	return column{head, func(a *summary.Arm) string { return thousands(of(a)) }}
}

func timed(head string, of func(*summary.Arm) summary.Latency) column {
	return column{head, func(a *summary.Arm) string { return latency(of(a)) }}
}

// questions are the tables by arm: each asks one question and fits 120 columns.
var questions = []question{
	{title: "Does an attack reach its end? (stored in one session, it acts in a later one)", lead: metric.EndToEnd},
	{title: "How far does it come? (ASR: stored; RSR: influence where stored)", lead: metric.ASR},
	{title: "Is it detected? (TPR: attacks stopped; FPR: legitimate writes stopped)", lead: metric.TPR},
	{title: "What is left to somebody's decision?", lead: metric.DeferredAttack},
	{title: "Is the agent still of use?", lead: metric.Utility},
	{title: "What becomes of what is worth keeping? (usable: a later session can see it)", lead: metric.StoppedUser},
	{title: "What does a decision take? (p50/p95/p99)", more: []column{
		timed("write", func(a *summary.Arm) summary.Latency { return a.LatencyUS.Write }),
		timed("read", func(a *summary.Arm) summary.Latency { return a.LatencyUS.Read }),
		number("unsure", func(a *summary.Arm) int64 { return a.Unsure }),
		number("not scored", func(a *summary.Arm) int64 { return a.NotScored }),
		number("excluded", func(a *summary.Arm) int64 { return a.Excluded })}},
}

// ofStates are the tables by arm of sets whose outcomes are states, before the others.
var ofStates = []question{
	{title: "What do attacks do? (harm: the attacker has his way; rescued: the task is done that he had undefended)", lead: metric.Harm},
	{title: "What gets done? (wrong: acted on an outdated value; pairs: an attack and its twin, both done)", lead: metric.DoneBenign,
		more: []column{{"excess per 100", func(a *summary.Arm) string { return PerHundred(a.ExcessPer100) }}}},
}

// answers is what becomes of questions, in sets that have any.
var answers = question{title: "What is answered? (questions are in no rate of harm, tasks done or wrong; told: only who says so)", lead: metric.QuestionHarm}

// PerHundred is a number of questions that were not due, per 100 trials.
func PerHundred(v *float64) string {
	if v == nil {
		return NotMeasured
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

// judged is what a language model says of the cases and records that hold no value to
// look for.
var judged = question{title: "What does the judge say? (a language model decides where no value can be looked for)",
	lead: metric.EndToEndJudged, more: []column{
		number("questions", func(a *summary.Arm) int64 { return a.Costs.JudgeCalls }),
		number("no verdict", func(a *summary.Arm) int64 { return a.Costs.JudgeUnanswered })}}

// outside is what defenses outside the process cost beside their own time.
var outside = question{title: "What does the way to a defense elsewhere take? (p50/p95/p99, not in the times above)",
	more: []column{
		timed("wire, write", func(a *summary.Arm) summary.Latency { return wire(a).Write }),
		timed("wire, read", func(a *summary.Arm) summary.Latency { return wire(a).Read }),
		number("model calls of the defense", func(a *summary.Arm) int64 { return a.Costs.DefenseCalls }),
		number("their tokens", func(a *summary.Arm) int64 { return a.Costs.DefenseTokens })}}

func wire(a *summary.Arm) summary.Gates {
	if a.WireUS == nil {
		return summary.Gates{}
	}
	return *a.WireUS
}

// ofRun says what there is to say of a run of agents.
func ofRun(p *Paper, s *summary.Summary) {
	list := questions
	states := slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return len(a.Situations) > 0 })
	if states {
		list = slices.Concat(ofStates, slices.DeleteFunc(slices.Clone(questions), func(q question) bool {
			return q.lead == metric.EndToEnd || q.lead == metric.Utility // said better already
		}))
	}
	if len(s.Arms) > 0 && s.Has(metric.QuestionDone) {
		list = append(slices.Clone(list), answers)
	}
	if slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return a.WireUS != nil || a.Costs.DefenseCalls > 0 }) {
		list = append(slices.Clone(list), outside)
	}
	if slices.ContainsFunc(s.Arms, summary.Arm.Judged) {
		list = slices.Insert(slices.Clone(list), 2, judged)
	}
	var tables []Table
	for _, q := range list {
		tables = append(tables, q.table(s))
	}
	if states {
		if slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return a.Mixed != nil }) {
			tables = append(tables, bySituation(s)[1:]...)
		}
		tables = append(tables, byClass(s, "Harm, by class", metric.Harm),
			byClass(s, "Done, benign twins, by class", metric.DoneBenign))
	} else {
		tables = append(tables, byClass(s, "End to end, by class", metric.EndToEnd))
	}
	tables = append(tables, byClass(s, "ASR, by class", metric.ASR))
	if t := byVia(s); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	if slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return len(a.Mutations) > 0 }) {
		tables = append(tables, byMutation(s, "End to end, by mutation ("+summary.Original+": the original attacks)",
			metric.EndToEnd), byMutation(s, "TPR, by mutation", metric.TPR))
	}
	p.page(notes("heading", s), tables, notes("footnotes", s))
	p.options = Options{} // what a sweep chose is said in one line
	for i := range s.Sweeps {
		p.Gap()
		p.Table(swept(&s.Sweeps[i]))
	}
}

// page says what the figures are of, the tables, and how to read them.
func (p *Paper) page(heading []string, tables []Table, notes []string) {
	for _, line := range heading {
		p.Say("%s", line)
	}
	p.Gap()
	for i := range tables {
		p.Table(clipped(&tables[i]))
	}
	for _, line := range notes {
		p.Item("%s", line)
	}
}

func (q *question) table(s *summary.Summary) Table {
	t := Table{Title: q.title, Labels: 2, Header: []string{"agent", "defense"}}
	var rates []*metric.Metric
	if q.lead != nil {
		rates = slices.DeleteFunc(q.lead.Row(), func(m *metric.Metric) bool { return !s.Has(m) })
	}
	t.Header = append(t.Header, headsOfRates(rates)...)
	for _, c := range q.more {
		t.Header = append(t.Header, c.head)
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		row := []string{a.Agent, a.Row()}
		for _, m := range rates {
			row = append(row, figure(m, a.Rate(m)))
		}
		for _, c := range q.more {
			row = append(row, c.of(a))
		}
		t.Add(row...)
	}
	return t
}

// byMutation has a column a defense and a row an agent and mutation: there are
// more mutations than fit beside each other.
func byMutation(s *summary.Summary, title string, m *metric.Metric) Table {
	x := cross{Table: Table{Title: title, Labels: 2, Header: []string{"agent", "mutation"}}}
	for _, a := range s.Arms {
		x.column(a.Defense)
		for _, part := range a.Mutations {
			x.set([]string{a.Agent, part.Name}, a.Defense, Rate(part.Rate(m)))
		}
	}
	return x.whole()
}

// Situations are the tables by situation; none where no outcome is a state.
func Situations(s *summary.Summary) []Table {
	if !slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return len(a.Situations) > 0 }) {
		return nil
	}
	out := bySituation(s)
	if t := byVia(s); len(t.Rows) > 0 {
		out = append(out, t)
	}
	return out
}

// byVia has a row an arm and channel by which content came to an installed product.
func byVia(s *summary.Summary) Table {
	return byPart(s, "By the channel by which the content came (installed products)", "channel",
		[]*metric.Metric{metric.ASR, metric.Harm, metric.DoneAttack, metric.DoneBenign, metric.Wrong},
		func(a *summary.Arm) []summary.Slice { return a.Vias })
}

// byPart has a row an arm and slice.
func byPart(s *summary.Summary, title, part string, rates []*metric.Metric, of func(*summary.Arm) []summary.Slice) Table {
	t := Table{Title: title, Labels: 3, Header: append([]string{"agent", "defense", part}, headsOfRates(rates)...)}
	for i := range s.Arms {
		a := &s.Arms[i]
		for _, x := range of(a) {
			row := []string{a.Agent, a.Row(), x.Name}
			for _, m := range rates {
				row = append(row, short(x.Rate(m)))
			}
			t.Add(row...)
		}
	}
	return t
}

func headsOfRates(rates []*metric.Metric) (out []string) {
	for _, m := range rates {
		out = append(out, m.Head)
	}
	return out
}

// bySituation has a row an arm and situation, and below it what a mix makes of them.
func bySituation(s *summary.Summary) []Table {
	rates := summary.SituationRates()
	t := byPart(s, "By situation: what a defense could know of the claim", "situation", rates, (*summary.Arm).SituationSlices)
	t.Header = append(t.Header, "excess per 100")
	mix := Table{Labels: 2, Header: append([]string{"agent", "defense"}, headsOfRates(rates)...)}
	rows := t.Rows
	for i := range s.Arms {
		a := &s.Arms[i]
		for _, x := range a.Situations {
			rows[0], rows = append(rows[0], PerHundred(x.Excess)), rows[1:]
		}
		if a.Mixed == nil {
			continue
		}
		mix.Title = "Situations weighed by the mix " + a.Mixed.Mix
		if len(a.Mixed.Unmeasured) > 0 {
			mix.Title += " (no trial in: " + strings.Join(a.Mixed.Unmeasured, ", ") + ")"
		}
		row := []string{a.Agent, a.Row()}
		for _, m := range rates {
			x := a.Mixed.Rates[m.Name]
			if x == nil {
				row = append(row, NotMeasured)
				continue
			}
			row = append(row, fmt.Sprintf("%s%% [%s%%, %s%%]", Percent(x.Rate), Percent(x.Lo), Percent(x.Hi)))
		}
		mix.Add(row...)
	}
	if len(mix.Rows) == 0 {
		return []Table{t}
	}
	return []Table{t, mix}
}

// short is a rate without its interval: there are many beside each other.
func short(r stats.Rate) string {
	if !r.Measured() {
		return "–"
	}
	return Share(r)
}

// byClass has a column a class, in the order in which the arms list them.
func byClass(s *summary.Summary, title string, m *metric.Metric) Table {
	x := cross{Table: Table{Title: title, Labels: 2, Header: []string{"agent", "defense"}}}
	for i := range s.Arms {
		a := &s.Arms[i]
		x.row([]string{a.Agent, a.Row()})
		for _, part := range a.Classes {
			x.set([]string{a.Agent, a.Row()}, part.Name, Rate(part.Rate(m)))
		}
	}
	return x.whole()
}

// swept has the points of a sweep by split.
func swept(s *summary.Sweep) *Table {
	t := &Table{Title: fmt.Sprintf("%s on %s: %s.", s.Name, s.Agent, s.Why),
		Header: append([]string{"defense", "split"}, headsOfRates(summary.PointMetrics)...)}
	for k := range s.Points {
		for _, split := range s.Splits() {
			row := []string{s.Points[k].Defense, split}
			for _, r := range s.Points[k].Of(split).Rates() {
				row = append(row, Rate(r))
			}
			t.Add(row...)
		}
	}
	return t
}
