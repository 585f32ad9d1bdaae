package agents

import (
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
)

// fileOf is the file that holds what was written to a store at a time: of a folder that of
// the day.
func (s *session) fileOf(store string, at time.Time) string {
	title := s.stores[store].Title
	if strings.HasSuffix(title, "/") {
		title += at.Format(time.DateOnly) + ".md"
	}
	return title
}

// distrust classes the file of an entry that has just been written, in place of another or
// of none.
func (s *session) distrust(store string, prior *memory.Record) {
	at := s.mem.Now()
	if prior != nil {
		at = prior.Created
	}
	if slices.Contains(s.Profile.Classed, store) {
		s.mem.Distrust(s.fileOf(store, at))
	}
}

// untrusted reports whether the file of an entry is classed so.
func (s *session) untrusted(store string, at time.Time) bool {
	return slices.Contains(s.Profile.Classed, store) && s.mem.Distrusts(s.fileOf(store, at))
}
