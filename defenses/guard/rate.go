package guard

import "github.com/memtox/memtox/agents/memory"

// burst finds writes that come too fast, whatever they say. What the user or the
// operator removes is no flood.
func burst(g *gate, s *subject) {
	if s.cleans() {
		return
	}
	if r := g.policy.Rate; g.trial.writes.full(g.now, r) {
		s.findKey(BurstCheck, Medium, "%d writes within %s already", r.Writes, r.Window)
	}
}

// cleans reports whether the user or the operator removes a record.
func (s *subject) cleans() bool { return s.Op == memory.Remove && s.class >= memory.User }

// rapidChange finds keys that change too often.
func rapidChange(g *gate, s *subject) {
	if s.cleans() {
		return
	}
	r := g.policy.RapidChange
	if h := g.trial.history(slot{s.Record.Store, s.Record.Key}); h != nil && h.changes.full(g.now, r) {
		s.findKey(RapidChangeCheck, Medium, "the key changed %d times within %s already", r.Writes, r.Window)
	}
}
