package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is a mistake in what the user asked for: a name that does not exist,
// a setting out of range, a file that does not parse. The command line answers
// it with exit code 2. Any other error is a failure of the tool.
type Problem struct {
	Where string // file:line:column, flag or key; empty when the text says it
	What  string
	Hint  string // what would mend it; may be empty
	Err   error  // the cause, if there is one
}

// Error gives the problem on one line: place, what, cause, hint.
func (p *Problem) Error() string {
	parts := []string{p.Where, p.What}
	if p.Err != nil {
		parts = append(parts, p.Err.Error())
	}
	text := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Err }

// Placed makes a Problem of an error of another package that the user can mend, and
// gives one that has no place its place.
func Placed(where string, err error) error {
	var placed *Problem
	switch p, plain := err.(*Problem); {
	case err == nil:
		return nil
	case errors.As(err, &placed) && placed.Where != "":
		return err
	case plain:
		placed := *p
		placed.Where = where
		return &placed
	}
	return &Problem{Where: where, Err: err}
}

// Unknown is the problem of a name that is not among those known.
func Unknown(where, what, got string, known []string) *Problem {
	return &Problem{Where: where, What: fmt.Sprintf("unknown %s %q", what, got), Hint: Meant(got, known)}
}

// Meant is the hint for a name that is not among those known: the one that was most likely
// meant, or all of them.
func Meant(got string, known []string) string {
	if n := Nearest(got, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	} else if len(known) == 0 {
		return ""
	}
	return "one of " + strings.Join(known, ", ")
}

// Nearest returns the known name that a mistyped one most likely meant, or "".
// A name is near when no more than a third of its letters, and at most three,
// have to change.
func Nearest(got string, known []string) string {
	const longest = 64 // longer input is no typo, and the distance is quadratic
	got = strings.ToLower(got)
	if len(got) > longest || len(got) < 2 { // of one letter every other is near
		return ""
	}
	best, name := max(1, min(3, (len(got)+2)/3))+1, ""
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		if d := distance(got, strings.ToLower(k)); d < best {
			best, name = d, k
		}
	}
	if name == "" && len(got) >= 3 {
		i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(strings.ToLower(k), got) })
		if i >= 0 {
			name = known[i]
		}
	}
	return name
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours cost one each.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
