package guard

import (
	"github.com/memtox/memtox/agents/memory"
)

// protectedKeys finds writes to keys that only the operator may write, their
// removal included.
func protectedKeys(g *gate, s *subject) {
	if s.class < memory.System && s.key.match(g.policy.ProtectedKeys) {
		s.findKey(ProtectedKeyCheck, High, "only the operator may write this key")
	}
}

// immutableKeys finds writes that change a key with an immutable value, whoever
// makes them. The first value is the operator's or the user's to give.
func immutableKeys(g *gate, s *subject) {
	if !s.key.match(g.policy.ImmutableKeys) {
		return
	}
	why := "the key keeps its first value"
	if s.Op == memory.Add {
		old, ok := g.view.ByKey(s.Record.Store, s.Record.Key)
		if !ok || old.ID == s.Record.ID {
			if s.class >= memory.User {
				return
			}
			why = "only the operator or the user may give the key its first value"
		}
	}
	s.findKey(ImmutableKeyCheck, High, "%s", why)
}

// sourceClass finds records that claim a class which whoever writes them cannot
// have: SYSTEM is the operator's alone.
func sourceClass(_ *gate, s *subject) {
	if s.Record.Origin.Class == memory.System && s.Record.Principal != operator {
		s.findKey(SourceClassCheck, High, "only the principal %s writes records of class SYSTEM", operator)
	}
}

// operator is the principal that writes records of class SYSTEM.
const operator = "system"
