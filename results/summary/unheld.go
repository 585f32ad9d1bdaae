package summary

import (
	"fmt"
	"slices"
	"strings"
)

// Row names the arm's defense in a table, and says where gates of it were not enforced.
func (a *Arm) Row() string { return row(a.Defense, a.NotEnforced) }

// Row is that of a line's arms with an agent.
func (l *Line) Row(c *Cell) string { return row(l.Defense, c.NotEnforced) }

func row(defense string, unheld []string) string {
	if len(unheld) == 0 {
		return defense
	}
	return defense + " (not enforced)"
}

// Row names a defense in a table, with an agent by its name or label, or with all where
// that is empty.
func (s *Summary) Row(agent, defense string) string {
	i := slices.IndexFunc(s.Arms, func(a Arm) bool {
		return a.Defense == defense && len(a.NotEnforced) > 0 && (agent == "" || agent == a.Agent || agent == a.name)
	})
	if i < 0 {
		return defense
	}
	return s.Arms[i].Row()
}

// Unheld says which gates were not enforced, and why.
func (a *Arm) Unheld() string {
	return fmt.Sprintf("not enforced: %s. The agent asks a model of its own, and does not ask about what it recalls; point it to "+
		"the model that memtox offers it", strings.Join(a.NotEnforced, ", "))
}
