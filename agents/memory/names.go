package memory

import (
	"fmt"
	"slices"
)

// The names of everything that is counted up here, as the source documents, rows, JSON
// and settings have them.
var (
	classNames  = []string{"EXTERNAL_TOOL", "AGENT_AUTHORED", "USER", "SYSTEM"}
	momentNames = []string{"input", "write", "read", "act"}
	routeNames  = []string{"", "memory_tool", "file_tool", "flush", "compaction", "review", "skill",
		"snapshot", "inject", "search", "get", "transcript", "skill_view", "seed", "operator"}
	opNames     = []string{"add", "replace", "remove"}
	actionNames = []string{"allow", "redact", "defer", "quarantine", "block"}
	stateNames  = []string{"live", "staged", "held", "quarantined", "retired"}
	scopeNames  = []string{"", "CONTEXT_ONLY", "PLANNING_ALLOWED", "TOOL_ACTION_ALLOWED"}
	causeNames  = []string{"write", "seed", "inject", "approve", "reject", "quarantine", "retire", "rollback", "undo",
		"forget", "snapshot"}
	kindNames = []string{"entries", "notes", "skills"}
)

func (c Class) String() string  { return name(classNames, c) }
func (m Moment) String() string { return name(momentNames, m) }
func (r Route) String() string  { return name(routeNames, r) }
func (o Op) String() string     { return name(opNames, o) }
func (a Action) String() string { return name(actionNames, a) }
func (s State) String() string  { return name(stateNames, s) }
func (s Scope) String() string  { return name(scopeNames, s) }
func (c Cause) String() string  { return name(causeNames, c) }

func (c Class) MarshalText() ([]byte, error)  { return []byte(c.String()), nil }
func (r Route) MarshalText() ([]byte, error)  { return []byte(r.String()), nil }
func (o Op) MarshalText() ([]byte, error)     { return []byte(o.String()), nil }
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
func (s State) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }
func (s Scope) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }
func (c Cause) MarshalText() ([]byte, error)  { return []byte(c.String()), nil }

func (c *Class) UnmarshalText(b []byte) error  { return named(c, "source class", classNames, b) }
func (r *Route) UnmarshalText(b []byte) error  { return named(r, "route", routeNames, b) }
func (o *Op) UnmarshalText(b []byte) error     { return named(o, "operation", opNames, b) }
func (a *Action) UnmarshalText(b []byte) error { return named(a, "action", actionNames, b) }
func (s *State) UnmarshalText(b []byte) error  { return named(s, "state", stateNames, b) }
func (s *Scope) UnmarshalText(b []byte) error  { return named(s, "scope", scopeNames, b) }
func (c *Cause) UnmarshalText(b []byte) error  { return named(c, "cause", causeNames, b) }
func (k *Kind) UnmarshalText(b []byte) error   { return named(k, "kind of store", kindNames, b) }

func name[T ~uint8](names []string, x T) string {
	if int(x) < len(names) {
		return names[x]
	}
	return fmt.Sprintf("unknown(%d)", x)
}

// named sets to to what has a name.
func named[T ~uint8](to *T, what string, names []string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: one of %q", what, b, names)
	}
	*to = T(i)
	return nil
}
