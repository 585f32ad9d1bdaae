package guard

import "github.com/memtox/memtox/agents/memory"

// repetition finds external contents that say again what was stored a short time
// ago: nearly in the same words, or the same value about the same thing in other
// words, under whatever key. Memory takes what comes often for important, so that
// an attacker says it often. The first of them is stored, and nothing is lost by
// leaving out the rest.
//
// Within one store that is of severity medium. Where another store holds it, it is
// low: an agent that moves a note into its curated memory says it again, too.
//
// What the user says again is the user's to say; what the agent says again is
// self-reinforcement. A content that replaces its own earlier version, or differs
// from it in a number, is an update.
func repetition(g *gate, s *subject) {
	limit := g.policy.Cooldown
	if limit.Window == 0 || s.Op == memory.Remove || s.class != memory.External || len(g.trial.recent) == 0 {
		return
	}
	if s.Prior != nil && s.Prior.ID == s.Record.ID && s.Prior.Text == s.Record.Text {
		return // nothing is said again: the user asks to keep it, say
	}
	k := s.sketch()
	severity, said := Info, (*recent)(nil)
	g.trial.since(g.now, limit.Window, func(e *recent) bool {
		if e.id == s.Record.ID || s.Prior != nil && e.id == s.Prior.ID || !k.repeats(&e.sketch, limit.Similarity) {
			return true
		}
		if e.store == s.Record.Store {
			severity, said = Medium, e
			return false
		}
		severity, said = Low, e
		return true
	})
	if said != nil {
		s.find(RepetitionCheck, severity, "record %q said it %s ago", said.id, g.now.Sub(said.at))
	}
}

// selfReinforcement finds contents of the agent's own that it has said nearly the
// same often enough, with nobody else saying it in between: a belief that feeds on
// itself.
func selfReinforcement(g *gate, s *subject) {
	limit := g.policy.SelfReinforcement
	if limit.Writes == 0 || s.Op == memory.Remove || s.class != memory.Agent || len(g.trial.recent) == 0 {
		return
	}
	k, said := s.sketch(), 0
	g.trial.since(g.now, limit.Window, func(e *recent) bool {
		if e.id == s.Record.ID || k.like(&e.sketch, limit.Similarity) < limit.Similarity {
			return true
		}
		if e.class != memory.Agent {
			return false // somebody else says so too
		}
		said++
		return said+1 < limit.Writes
	})
	if said+1 >= limit.Writes {
		s.find(SelfReinforcementCheck, Medium, "the agent has said so %d times within %s, and nobody else", said,
			limit.Window)
	}
}
