package reference

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// ranked lists the statements that bear on a request, best first: of memory,
// then of the turn's content; later ones before earlier.
func (v *visible) ranked(request []word, t turn) []*statement {
	type hit struct {
		st    *statement
		score float64
	}
	hits := make([]hit, 0, 16)
	add := func(st *statement, least float64) {
		if st.form.has(question) {
			return
		}
		if s := st.bears(request); s >= least {
			hits = append(hits, hit{st, s})
		}
	}
	for i := len(v.known) - 1; i >= 0; i-- {
		add(v.known[i], bearsMemory)
	}
	for i := len(v.opened) - 1; i >= 0; i-- {
		add(v.opened[i], bearsMemory)
	}
	for i := len(v.kept) - 1; i >= 0; i-- {
		add(v.kept[i], bearsContent)
	}
	for _, b := range t.blocks {
		for _, st := range b.stmts {
			add(st, bearsContent)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := make([]*statement, len(hits))
	for i, h := range hits {
		out[i] = h.st
	}
	return out
}

// bestOfContent are the n statements of the turns' content that bear on a
// request best.
func (v *visible) bestOfContent(request []word, turns []turn, n int) []*statement {
	only := &visible{setting: v.setting}
	var all turn
	for _, t := range turns {
		all.blocks = append(all.blocks, t.blocks...)
	}
	best := slices.DeleteFunc(only.ranked(request, all), v.avoids)
	return best[:min(n, len(best))]
}

// answer is the model's closing text of a turn.
func (v *visible) answer(t turn) string {
	if refused := v.refused(); refused != "" {
		return refused
	}
	if names := v.actedWith(); len(names) > 0 {
		return "Done: " + strings.Join(names, ", ") + "."
	}
	if t.user.affirms() {
		return "All right."
	}
	if summarises(t.user.raw) && len(t.blocks) > 0 {
		return v.gist(t)
	}
	n := 1
	if len(t.blocks) > 0 || len(v.kept) > 0 {
		n = 2
	}
	var said []string
	for _, st := range v.ranked(requestOf(t.user), t) {
		if !v.avoids(st) && len(said) < n {
			said = append(said, st.body)
		}
	}
	switch {
	case len(said) > 0:
		return strings.Join(said, "\n")
	case len(t.blocks) > 0:
		return v.gist(t)
	case v.did(world.Remembers):
		return "Noted."
	}
	return "I don't have that in memory."
}

// avoids reports whether the model keeps away from a statement.
func (v *visible) avoids(st *statement) bool { return v.setting != Naive && st.form.has(suspicious) }

// refused says so when an action of this turn was not allowed.
func (v *visible) refused() string {
	for _, m := range v.last {
		if m.Name != "" && kindOf(m.Name) == world.Acts && strings.Contains(m.Content, `"success":false`) {
			return "I was not allowed to do that, so I left it."
		}
	}
	return ""
}

func (v *visible) actedWith() []string {
	var out []string
	for _, m := range v.last {
		for _, c := range m.Calls {
			if kindOf(c.Name) == world.Acts && !slices.Contains(out, c.Name) {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

func summarises(s string) bool {
	for _, t := range text.Tokens(s) {
		if t.Start > 0 && strings.IndexByte("-#/._@", s[t.Start-1]) >= 0 {
			continue // a part of a name: #weekly-summary
		}
		if formWords().Summarise[t.Text] {
			return true
		}
	}
	return false
}

// gist takes the first statement of every piece of content and the two with the
// most values.
func (v *visible) gist(t turn) string {
	var picked, all []*statement
	for _, b := range t.blocks {
		for _, st := range b.stmts {
			if st.first {
				picked = append(picked, st)
			} else if !v.avoids(st) {
				all = append(all, st)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *statement) int { return cmp.Compare(len(b.values), len(a.values)) })
	for _, st := range all[:min(2, len(all))] {
		if len(st.values) > 0 {
			picked = append(picked, st)
		}
	}
	lines := make([]string, len(picked))
	for i, st := range picked {
		lines[i] = st.text
	}
	return strings.Join(lines, "\n")
}
