package guard

import (
	"fmt"

	"github.com/memtox/memtox/agents/memory"
)

// The ids of size findings.
const (
	tooLong     = "size_limit"
	tooLongHere = "size_against_history"
)

// size finds contents that are too long, in all or for their key.
func size(g *gate, s *subject) {
	if s.Op == memory.Remove {
		return
	}
	n, limit := len(s.Record.Text), g.policy.Size
	if limit.MaxBytes > 0 && n+len(s.Record.Key) > limit.MaxBytes {
		s.add(found(SizeCheck, Medium, tooLong, fmt.Sprintf("%d bytes, where %d are the limit", n+len(s.Record.Key),
			limit.MaxBytes)))
		return
	}
	if limit.Growth == 0 || n <= limit.Floor {
		return
	}
	usual := 0
	if h := g.trial.history(slot{s.Record.Store, s.Record.Key}); h != nil {
		usual = h.median()
	}
	if usual == 0 && s.Prior != nil { // written before this trial began
		usual = len(s.Prior.Text)
	}
	if usual > 0 && float64(n) > limit.Growth*float64(usual) {
		s.add(found(SizeCheck, Medium, tooLongHere, fmt.Sprintf("%d bytes, where the key usually holds %d", n, usual)))
	}
}
