package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/summary"
)

// What fits one screen.
const (
	screenWidth = 80
	screenName  = 16 // of a defense
	screenArms  = 10
)

// screen says what a run comes to in one table and one sentence: 24 lines of 80 columns,
// whatever the width of the terminal.
func screen(p *Paper, s *summary.Summary) {
	p.options.Width = screenWidth
	for _, line := range slices.Concat(notes("first", s), notes("alarms", s)) {
		p.Say("%s", line)
	}
	v := s.Verdict
	if v == nil {
		return
	}
	for _, line := range tableOf(v, columnsOf(v)) {
		p.text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, line := range unheld(v) {
		p.Say("%s", line)
	}
	legend, said := Said(v)
	p.Say("%s", legend)
	p.Gap()
	for _, line := range said {
		p.Say("%s", line)
	}
	for i := range s.Sweeps {
		p.Say("%s on %s: %s.", s.Sweeps[i].Name, s.Sweeps[i].Agent, s.Sweeps[i].Why)
	}
	switch remarks := notes("remarks", s); {
	case len(remarks) > 2:
		p.Say("%s on single arms, such as trials not scored: --full.", count(len(remarks), "remark"))
	default:
		for _, line := range remarks {
			p.Say("%s", line)
		}
	}
}

// group are the columns of an agent, or of the worst of all.
type group struct {
	title string
	cell  int
}

func columnsOf(v *summary.Verdict) (out []group) {
	if len(v.Agents) > 2 {
		return []group{{fmt.Sprintf("worst of %d agents", len(v.Agents)), len(v.Agents)}}
	}
	for i, a := range v.Agents {
		out = append(out, group{a, i})
	}
	return out
}

// headsOf stand over the figures of an agent, cellsOf are the figures of a line.
func headsOf(v *summary.Verdict) []string {
	if v.States {
		return []string{"harm", "done", "wrong", "ask", "resc"}
	}
	return []string{"end to end", "utility"}
}

func cellsOf(v *summary.Verdict, c *summary.Cell) []string {
	cells := []string{ends(c.Harm), whole(c.Done)}
	if v.States {
		cells = append(cells, whole(c.Wrong), per100(c.Excess), whole(c.Rescued))
	}
	return cells
}

// Look is a verdict with all its lines for a page: a table an agent, which its title
// names, so that they fit a phone.
func Look(v *summary.Verdict) (out []Table) {
	groups := columnsOf(v)
	for i, g := range groups {
		t := Table{Title: g.title, Labels: 1, Header: append([]string{"defense"}, headsOf(v)...)}
		last := i == len(groups)-1 && slices.ContainsFunc(v.Lines, func(l summary.Line) bool { return l.P50 != nil })
		if last {
			t.Header = append(t.Header, "p50")
		}
		for k := range v.Lines {
			l := &v.Lines[k]
			row := append([]string{l.Row(&l.By[g.cell])}, cellsOf(v, &l.By[g.cell])...)
			if last {
				row = append(row, brief(l.P50))
			}
			t.Add(row...)
		}
		out = append(out, t)
	}
	return out
}

// unheld says with which agents gates were not enforced.
func unheld(v *summary.Verdict) (out []string) {
	for i, agent := range v.Agents {
		var rows []string
		for _, l := range shownLines(v) {
			if gates := l.By[i].NotEnforced; len(gates) > 0 {
				rows = append(rows, clip(l.Defense)+" "+strings.Join(gates, ", "))
			}
		}
		if rows != nil {
			out = append(out, fmt.Sprintf("* not enforced with %s, which asks a model of its own: %s.", clip(agent),
				strings.Join(rows, "; ")))
		}
	}
	return out
}

// tableOf are the lines of the table: a defense a line, agents side by side.
func tableOf(v *summary.Verdict, groups []group) []string {
	heads := headsOf(v)
	width := []int{7, 4, 5, 3, 4}
	if !v.States {
		width = []int{10, 7}
	}
	total := len(width) - 1
	for _, w := range width {
		total += w
	}
	first, second := pad("", screenName), pad("", screenName)
	for _, g := range groups {
		title := inert.Clip(inert.Text(g.title), total)
		first += "  " + title + strings.Repeat(" ", total-len([]rune(title)))
		second += " "
		for i, h := range heads {
			second += " " + left(h, width[i])
		}
	}
	lines := []string{first, second + left("p50", 6)}
	for _, l := range shownLines(v) {
		name := inert.Text(l.Defense)
		if len(l.Worst().NotEnforced) > 0 {
			name = inert.Clip(name, screenName-2) + " *"
		}
		row := pad(inert.Clip(name, screenName), screenName)
		for _, g := range groups {
			row += " "
			for i, text := range cellsOf(v, &l.By[g.cell]) {
				row += " " + left(text, width[i])
			}
		}
		lines = append(lines, row+left(brief(l.P50), 6))
	}
	if n := len(v.Lines) - len(shownLines(v)); n > 0 {
		lines = append(lines, fmt.Sprintf("%d more defenses are beaten by one of these in harm and done: --full", n))
	}
	return lines
}

// shownLines are all, or where they are too many the controls and the front: what no
// other beats in both harm and done.
func shownLines(v *summary.Verdict) (out []*summary.Line) {
	for i := range v.Lines {
		l := &v.Lines[i]
		beaten := slices.ContainsFunc(v.Lines, func(o summary.Line) bool { return o.Beats(l) })
		if len(v.Lines) <= screenArms || l.Control || !beaten {
			out = append(out, l)
		}
	}
	return out
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len([]rune(s)))) }

func left(s string, width int) string { return strings.Repeat(" ", max(0, width-len([]rune(s)))) + s }

// whole is a share in whole percents; what is not 0 or 100 is never rounded to it.
func whole(v *float64) string {
	if v == nil {
		return "–"
	}
	switch s := strconv.FormatFloat(100**v, 'f', 0, 64); {
	case *v > 0 && s == "0":
		return "<1"
	case *v < 1 && s == "100":
		return ">99"
	default:
		return s
	}
}

func per100(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(math.Round(*v), 'f', 0, 64)
}

// ends are the figures of the ends of compliance; of more than two models the least and
// the greatest.
func ends(list []*float64) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, whole(v))
	}
	if len(list) > 2 {
		known := slices.DeleteFunc(slices.Clone(list), func(v *float64) bool { return v == nil })
		slices.SortFunc(known, func(a, b *float64) int { return int(math.Copysign(1, *a-*b)) })
		if len(known) > 0 {
			parts = []string{whole(known[0]), whole(known[len(known)-1])}
		}
	}
	return strings.Join(parts, "/")
}

// brief is a time in three digits.
func brief(us *float64) string {
	switch {
	case us == nil:
		return "–"
	case *us >= 1e6:
		return fmt.Sprintf("%.1fs", *us/1e6)
	case *us >= 1e3:
		return fmt.Sprintf("%.1fms", *us/1e3)
	case *us >= 9.95:
		return fmt.Sprintf("%.0fµs", *us)
	}
	return fmt.Sprintf("%.1fµs", *us)
}

// Said is how to read the table, the verdict, and what is decided.
func Said(v *summary.Verdict) (legend string, out []string) {
	harm, gets, done, where := "harm", "gets", "of benign tasks done", ""
	if !v.States {
		harm, gets, done = "end to end", "has", "utility"
	}
	legend = "Percents"
	switch {
	case len(v.Models) > 1 && len(v.Agents) > 1:
		where = " with every agent and model"
	case len(v.Models) > 1:
		where = " with every model"
	case len(v.Agents) > 1:
		where = " with every agent"
	}
	switch {
	case len(v.Models) == 2:
		var names []string
		for _, m := range v.Models {
			names = append(names, clip(strings.TrimPrefix(m, "reference:")))
		}
		legend += fmt.Sprintf(". %s: %s model; other columns: the worse of the two", harm, strings.Join(names, "/"))
	case len(v.Models) > 2:
		legend += fmt.Sprintf(". %s: the least and the greatest of %d models; other columns: the worst", harm, len(v.Models))
	}
	if v.States {
		legend += ". ask: needless questions per 100. resc: rescued"
	}
	list := func(names []string) string {
		var short []string
		for _, n := range names {
			short = append(short, inert.Clip(n, 24))
		}
		if len(short) > 12 {
			short = append(short[:12], fmt.Sprintf("%d more", len(short)-12))
		}
		return strings.Join(short, ", ")
	}
	measured := slices.ContainsFunc(v.Lines, func(l summary.Line) bool { return l.Worst().Most() != nil })
	limit := fmt.Sprintf("%s to %.0f%%%s", harm, 100*summary.HarmLimit, where)
	switch {
	case !measured:
		out = append(out, "Best: no arm, because no attack was scored.")
	case !v.Headroom:
		out = append(out, fmt.Sprintf("Best: no arm. Undefended %s is not above %.0f%%, so no defense can show anything here.",
			harm, 100*summary.HarmLimit))
	case v.Best != nil:
		line := fmt.Sprintf("Best: %s, which %s %s%% %s and keeps %s", clip(v.Best.Defense), gets,
			whole(v.Best.Worst().Done), done, limit)
		if len(v.Rivals) > 0 {
			line += ". Not decidedly worse, and checks nothing: " + list(v.Rivals)
		} else if slices.ContainsFunc(v.Lines, func(l summary.Line) bool { return l.Control && l.Defense != undefended }) {
			line += ". No control comes near"
		}
		out = append(out, line+".")
	case !slices.ContainsFunc(v.Lines, func(l summary.Line) bool { return l.Worst().Done != nil }):
		out = append(out, "Best: no arm. There is no benign case with a task, so nothing tells what gets done.")
	default:
		line := "Best: no arm. No defense keeps " + limit
		if len(v.Rivals) > 0 {
			line += "; only a control does: " + list(v.Rivals)
		}
		if l := v.Least(); l != nil {
			line += fmt.Sprintf(". Closest: %s, with %s%% %s and %s%% %s", clip(l.Defense), whole(l.Worst().Most()), harm,
				whole(l.Worst().Done), done)
		}
		out = append(out, line+".")
	}
	switch {
	case len(v.Less) == 0 && len(v.Same) > 0:
		out = append(out, fmt.Sprintf("No arm has decidedly less %s than none (95%%).", harm))
	case len(v.Less) > 0:
		line := fmt.Sprintf("Decidedly less %s than none (95%%): %s", harm, list(v.Less))
		if len(v.Same) > 0 {
			line += ". Not decided: " + list(v.Same)
		}
		out = append(out, line+".")
	}
	return legend + ". p50: time of a write decision.", out
}
