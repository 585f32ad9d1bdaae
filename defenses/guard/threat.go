package guard

import (
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/keyword"
	"github.com/memtox/memtox/internal/text"
)

// threats looks for threat patterns in the content, also where it is wrapped, and,
// as an index of entries or skills shows it, in the key. A removal is not scanned,
// or nobody could remove what was found.
func threats(g *gate, s *subject) {
	if s.Op == memory.Remove {
		return
	}
	n := len(s.findings)
	s.findings = g.scan(s.findings, s.layers())
	if len(s.findings) == n {
		s.findings = g.scanKey(s.findings, s.Record.Key)
	}
}

// scan appends the threats of a content: of each pattern the first place.
func (g *gate) scan(out []Finding, layers []layer) []Finding {
	from := len(out)
	for i := range layers {
		l := &layers[i]
		hits := g.scanner.ScanText(&l.Text)
	next:
		for j := range hits {
			f := threat(&hits[j])
			for k := range out[from:] {
				if out[from+k].Check == f.Check {
					continue next
				}
			}
			if f.Start, f.End = l.place(f.Start, f.End); l.wrapping != "" {
				f.Note += " It is wrapped: " + l.wrapping + "."
			}
			out = append(out, f)
		}
	}
	return out
}

// scanKey appends the threats of a key.
func (g *gate) scanKey(out []Finding, key string) []Finding {
	hits := g.scanner.Scan(key, text.Scan(key))
	for i := range hits {
		f := threat(&hits[i])
		f.key, f.Start, f.End = true, 0, 0 // no place in the content
		out = append(out, f)
	}
	return out
}

// scanned is what was found in records that were recalled. They are read again and again,
// by all trials of a run; a write is scanned each time.
type scanned struct{ contents, keys *text.Memo[[]Finding] }

func newScanned() *scanned {
	return &scanned{text.New[[]Finding](4 << 20), text.New[[]Finding](1 << 20)}
}

// remembered is what a scan of a text finds, as far as that is remembered. Nobody may change it.
func remembered(m *text.Memo[[]Finding], s string, scan func() []Finding) []Finding {
	if len(s) > 16<<10 {
		return scan()
	}
	return m.Get(s, func(string) ([]Finding, int) {
		found := scan()
		return found, 256 * len(found)
	})
}

func threat(h *keyword.Hit) Finding {
	f := Finding{On: InjectionCheck, Family: h.Threat.Family, Severity: High, Finding: h.Finding()}
	switch h.Threat.Family {
	case keyword.Invisible, keyword.Bidirectional, keyword.Terminal:
		f.On = HiddenTextCheck
	}
	switch h.Threat.ID {
	case "remember_for_later_sessions", "write_to_memory", "from_now_on", "from_now_on_loose", "memory_marker",
		"unasked_authority":
		f.Family = PersistenceFamily
	}
	if h.Threat.Scope == keyword.Strict {
		f.Severity = Medium
	}
	return f
}

// PersistenceFamily are the patterns of contents that ask to be kept, or to be
// obeyed later. The name is that of OWASP Agent Memory Guard's detector.
const PersistenceFamily = "memory_persistence_injection"
