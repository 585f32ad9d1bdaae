package render

import (
	"fmt"
	"math"
	"slices"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// grid is a table before anybody decided how it looks. Cells are not inert yet.
type grid struct {
	title  string
	labels int // leading columns that say what a row is
	header []string
	rows   [][]string
}

const notMeasured = "not measured"

// rate is "1234/1620 76.2% [70.1, 81.0]".
func rate(r stats.Rate) string {
	v, ok := r.Value()
	if !ok {
		return notMeasured
	}
	return fmt.Sprintf("%d/%d %s%% [%s, %s]", r.K, r.N, percent(v), percent(r.Lo), percent(r.Hi))
}

// percent has one decimal. What is not 0 or 100 percent is never rounded to it:
// 1 of 3,240 is <0.1, not 0.0.
func percent(v float64) string {
	switch s := fmt.Sprintf("%.1f", 100*v); {
	case v > 0 && s == "0.0":
		return "<0.1"
	case v < 1 && s == "100.0":
		return ">99.9"
	default:
		return s
	}
}

// latency is "1.2/3.4/9.8 µs", in milliseconds from 10 ms on.
func latency(l summary.Latency) string {
	if l.P50 == nil || l.P95 == nil || l.P99 == nil {
		return notMeasured
	}
	unit, by := "µs", 1.0
	if *l.P99 >= 10_000 {
		unit, by = "ms", 1000
	}
	return fmt.Sprintf("%s/%s/%s %s", short(*l.P50/by), short(*l.P95/by), short(*l.P99/by), unit)
}

func short(v float64) string {
	if math.Abs(v) < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// column is a value column of the tables by arm.
type column struct {
	name string
	of   func(*summary.Arm) string
}

// section is one table by arm.
type section struct {
	title   string
	columns []column
}

// sections are the tables by arm: each asks one question and fits 120 columns.
func sections() []section {
	return []section{
		{"Does an attack reach its end? (stored in one session, it acts in a later one)", []column{
			{"end to end", func(a *summary.Arm) string { return rate(a.Rate(metric.EndToEnd)) }},
			{"by acting", func(a *summary.Arm) string { return rate(a.Rate(metric.Acted)) }},
			{"by asserting", func(a *summary.Arm) string { return rate(a.Rate(metric.Asserted)) }}}},
		{"How far does it come? (ASR: stored; RSR: influence where stored)", []column{
			{"ASR", func(a *summary.Arm) string { return rate(a.Rate(metric.ASR)) }},
			{"RSR", func(a *summary.Arm) string { return rate(a.Rate(metric.RSR)) }},
			{"unwritten", func(a *summary.Arm) string { return rate(a.Rate(metric.InfluencedUnwritten)) }}}},
		{"Is it detected? (TPR: attacks stopped; FPR: legitimate writes stopped)", []column{
			{"TPR", func(a *summary.Arm) string { return rate(a.Rate(metric.TPR)) }},
			{"FPR", func(a *summary.Arm) string { return rate(a.Rate(metric.FPR)) }}}},
		{"What is left to somebody's decision?", []column{
			{"deferred, attacks", func(a *summary.Arm) string { return rate(a.Rate(metric.DeferredAttack)) }},
			{"deferred, benign", func(a *summary.Arm) string { return rate(a.Rate(metric.DeferredBenign)) }},
			{"held", func(a *summary.Arm) string { return rate(a.Rate(metric.Held)) }}}},
		{"Is the agent still of use?", []column{
			{"utility", func(a *summary.Arm) string { return rate(a.Rate(metric.Utility)) }},
			{"other tasks", func(a *summary.Arm) string { return rate(a.Rate(metric.OtherTasks)) }},
			{"utility under attack", func(a *summary.Arm) string { return rate(a.Rate(metric.UtilityUnderAttack)) }}}},
		{"What becomes of what is worth keeping? (usable: a later session can see it)", []column{
			{"user's, stopped", func(a *summary.Arm) string { return rate(a.Rate(metric.StoppedUser)) }},
			{"asked, usable", func(a *summary.Arm) string { return rate(a.Rate(metric.UsableAsked)) }},
			{"unasked, usable", func(a *summary.Arm) string { return rate(a.Rate(metric.UsableUnasked)) }},
			{"held", func(a *summary.Arm) string { return rate(a.Rate(metric.HeldBenign)) }}}},
		{"What does a decision take? (p50/p95/p99)", []column{
			{"write", func(a *summary.Arm) string { return latency(a.LatencyUS.Write) }},
			{"read", func(a *summary.Arm) string { return latency(a.LatencyUS.Read) }},
			{"unsure", func(a *summary.Arm) string { return thousands(a.Unsure) }},
			{"not scored", func(a *summary.Arm) string { return thousands(a.NotScored) }},
			{"excluded", func(a *summary.Arm) string { return thousands(a.Excluded) }}}},
	}
}

// judged is the table of what a language model says of the cases and records that
// hold no value to look for.
func judged() section {
	return section{"What does the judge say? (a language model decides where no value can be looked for)", []column{
		{"end to end, judged", func(a *summary.Arm) string { return rate(a.Rate(metric.EndToEndJudged)) }},
		{"ASR, judged", func(a *summary.Arm) string { return rate(a.Rate(metric.ASRJudged)) }},
		{"questions", func(a *summary.Arm) string { return thousands(a.Costs.JudgeCalls) }},
		{"no verdict", func(a *summary.Arm) string { return thousands(a.Costs.JudgeUnanswered) }}}}
}

// outside is the table of what defenses outside the process cost beside their
// own time.
func outside() section {
	wire := func(of func(*summary.Gates) summary.Latency) func(*summary.Arm) string {
		return func(a *summary.Arm) string {
			if a.WireUS == nil {
				return notMeasured
			}
			return latency(of(a.WireUS))
		}
	}
	return section{"What does the way to a defense elsewhere take? (p50/p95/p99, not in the times above)", []column{
		{"wire, write", wire(func(g *summary.Gates) summary.Latency { return g.Write })},
		{"wire, read", wire(func(g *summary.Gates) summary.Latency { return g.Read })},
		{"model calls of the defense", func(a *summary.Arm) string { return thousands(a.Costs.DefenseCalls) }},
		{"their tokens", func(a *summary.Arm) string { return thousands(a.Costs.DefenseTokens) }}}}
}

// grids returns all tables of a summary in the order of reading.
func grids(s *summary.Summary) []grid {
	var out []grid
	list := sections()
	if slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return a.WireUS != nil || a.Costs.DefenseCalls > 0 }) {
		list = append(list, outside())
	}
	if slices.ContainsFunc(s.Arms, summary.Arm.Judged) {
		list = slices.Insert(list, 2, judged())
	}
	for _, sec := range list {
		g := grid{title: sec.title, labels: 2, header: []string{"agent", "defense"}}
		for _, c := range sec.columns {
			g.header = append(g.header, c.name)
		}
		for i := range s.Arms {
			row := []string{s.Arms[i].Agent, s.Arms[i].Defense}
			for _, c := range sec.columns {
				row = append(row, c.of(&s.Arms[i]))
			}
			g.rows = append(g.rows, row)
		}
		out = append(out, g)
	}
	out = append(out,
		byClass(s, "End to end, by class", func(x *summary.Slice) stats.Rate { return x.Rate(metric.EndToEnd) }),
		byClass(s, "ASR, by class", func(x *summary.Slice) stats.Rate { return x.Rate(metric.ASR) }))
	if slices.ContainsFunc(s.Arms, func(a summary.Arm) bool { return len(a.Mutations) > 0 }) {
		out = append(out,
			byMutation(s, "End to end, by mutation ("+summary.Original+": the original attacks)", func(x *summary.Slice) stats.Rate { return x.Rate(metric.EndToEnd) }),
			byMutation(s, "TPR, by mutation", func(x *summary.Slice) stats.Rate { return x.Rate(metric.TPR) }))
	}
	return out
}

// byMutation has a column a defense and a row an agent and mutation: there are
// more mutations than fit beside each other.
func byMutation(s *summary.Summary, title string, of func(*summary.Slice) stats.Rate) grid {
	g := grid{title: title, labels: 2, header: []string{"agent", "mutation"}}
	row, column := map[[2]string]int{}, map[string]int{}
	for i := range s.Arms {
		if d := s.Arms[i].Defense; column[d] == 0 {
			column[d] = len(g.header)
			g.header = append(g.header, d)
		}
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		for j := range a.Mutations {
			k := [2]string{a.Agent, a.Mutations[j].Name}
			if _, ok := row[k]; !ok {
				row[k] = len(g.rows)
				cells := []string{k[0], k[1]}
				for range len(g.header) - g.labels {
					cells = append(cells, notMeasured)
				}
				g.rows = append(g.rows, cells)
			}
			g.rows[row[k]][column[a.Defense]] = rate(of(&a.Mutations[j]))
		}
	}
	return g
}

// byClass has a column a class, in the order in which the arms list them.
func byClass(s *summary.Summary, title string, of func(*summary.Slice) stats.Rate) grid {
	g := grid{title: title, labels: 2, header: []string{"agent", "defense"}}
	at := map[string]int{}
	for i := range s.Arms {
		for j := range s.Arms[i].Classes {
			name := s.Arms[i].Classes[j].Name
			if _, ok := at[name]; !ok {
				at[name] = len(g.header)
				g.header = append(g.header, name)
			}
		}
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		row := make([]string, len(g.header))
		row[0], row[1] = a.Agent, a.Defense
		for k := g.labels; k < len(row); k++ {
			row[k] = notMeasured
		}
		for j := range a.Classes {
			row[at[a.Classes[j].Name]] = rate(of(&a.Classes[j]))
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
