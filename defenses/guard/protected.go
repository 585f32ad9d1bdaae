package guard

import (
	"github.com/memtox/memtox/agents/memory"
)

// protectedKeys finds writes to keys that only the operator may write, their
// removal included.
func protectedKeys(g *gate, s *subject) {
	if s.class == memory.System {
		return
	}
	if s.key.match(g.policy.ProtectedKeys) {
		f := found(ProtectedKeyCheck, High, string(ProtectedKeyCheck), "only the operator may write this key")
		f.key = true
		s.add(f)
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
	f := found(ImmutableKeyCheck, High, string(ImmutableKeyCheck), why)
	f.key = true
	s.add(f)
}

// sourceClass finds records that claim a class which whoever writes them cannot
// have: SYSTEM is the operator's alone.
func sourceClass(_ *gate, s *subject) {
	if s.Record.Origin.Class == memory.System && s.Record.Principal != operator {
		f := found(SourceClassCheck, High, string(SourceClassCheck),
			"only the principal "+operator+" writes records of class SYSTEM")
		f.key = true
		s.add(f)
	}
}

// operator is the principal that writes records of class SYSTEM.
const operator = "system"
