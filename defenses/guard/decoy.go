package guard

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/text"
)

// decoy marks a decoy endpoint: a name that stands nowhere but in a trap, so that
// whoever writes one has been where they should not be.
var decoy sensitive

func decoyFinding(start, end int) Finding {
	f := found(DecoyCheck, Critical, string(DecoyCheck), "the content names a decoy endpoint")
	f.Start, f.End = start, end
	return f
}

// bracketed finds decoys whose dots stand in brackets: host[.]example.
func (g *gate) bracketed(s *subject) {
	content := s.Record.Text
	if len(g.policy.DecoyEndpoints) == 0 || !strings.Contains(content, "[.]") && !strings.Contains(content, "(.)") ||
		slices.ContainsFunc(s.findings, func(f Finding) bool { return f.On == DecoyCheck }) {
		return
	}
	plain := text.Fold(strings.NewReplacer("[.]", ".", "(.)", ".").Replace(content))
	for _, d := range g.policy.DecoyEndpoints {
		if strings.Contains(plain, text.Fold(d)) {
			s.add(decoyFinding(0, 0))
			return
		}
	}
}
