package datasets

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one thing wrong with a case, a line or a file. Its text is a single
// line, and what it quotes of the data is escaped.
type Error struct {
	File   string // empty where the case came from no file
	Line   int    // from 1; 0 where it is not known
	Column int    // from 1, in bytes; 0 where it is not known
	Case   string // id of the case, where it is known
	Field  string // path such as write[0].segments[1].medium
	What   string
	Remedy string
}

// Error returns `file:line: field: what; remedy`, leaving out what is unknown.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(Inert(e.File))
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
			if e.Column > 0 {
				b.WriteString(":" + strconv.Itoa(e.Column))
			}
		}
		b.WriteString(": ")
	}
	if e.Case != "" {
		b.WriteString(Inert(e.Case) + ": ")
	}
	if e.Field != "" {
		b.WriteString(Inert(e.Field) + ": ")
	}
	b.WriteString(e.What)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Quote shows hostile text in an error: escaped, and cut to 60 bytes.
func Quote(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.QuoteToGraphic(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.QuoteToGraphic(s[:most]), len(s))
}

// Inert returns s as it is if it is plain printable text, else quoted.
func Inert(s string) string {
	for _, r := range s {
		if !strconv.IsGraphic(r) || r == '\uFFFD' {
			return Quote(s)
		}
	}
	return s
}
