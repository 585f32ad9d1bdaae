package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/internal/text"
)

// redact takes out of a content what the findings to be redacted span and puts
// labels there, and takes out hidden characters without one. A finding that has
// no place in the content is about all of it.
func (g *gate) redact(s string, fs []Finding) (out string, changed bool) {
	var cut []*Finding
	hidden := false
	for i := range fs {
		f := &fs[i]
		if f.Action != memory.Redact {
			continue
		}
		switch {
		case f.On == HiddenTextCheck:
			hidden = true
		case f.End <= f.Start || f.End > len(s):
			return label(f), true
		default:
			cut = append(cut, f)
		}
	}
	if len(cut) > 0 {
		s, changed = cutOut(s, cut), true
	}
	if hidden {
		if clean, had := keyword.Clean(s, text.Scan(s), g.policy.Scan); had {
			s, changed = clean, true
		}
	}
	return s, changed
}

func cutOut(s string, cut []*Finding) string {
	slices.SortFunc(cut, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start),
			cmp.Compare(b.End, a.End))
	})
	var b strings.Builder
	at := 0
	for _, f := range cut {
		if f.End <= at {
			continue // within what is gone
		}
		b.WriteString(s[at:max(at, f.Start)])
		b.WriteString(label(f))
		at = f.End
	}
	b.WriteString(s[at:])
	return b.String()
}

func label(f *Finding) string { return "[REDACTED:" + f.Check + "]" }
