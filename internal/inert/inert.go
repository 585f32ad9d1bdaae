// Package inert makes hostile text harmless where a person or a program reads
// it: text from cases, models and tools may hold terminal escapes, bidirectional
// overrides, invisible characters or markup.
//
// Nothing is dropped. What would act is shown instead: ESC becomes the four
// characters \x1b. [Text] is for terminals and logs and is what the others build
// on; [Markdown] is for one cell or run of text, [JSON] and [Terminal] for whole
// outputs. All are linear in the length.
package inert

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line with every character that does not print shown as
// an escape: control characters (line breaks and tabs too), format characters
// (bidirectional controls, zero-width and tag characters), private and
// unassigned ones, and bytes that are no UTF-8.
func Text(s string) string {
	clean := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
	if clean < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:clean])
	for i := clean; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case !unicode.IsGraphic(r):
			switch {
			case r < 0x80:
				fmt.Fprintf(&b, `\x%02x`, r)
			case r <= 0xffff:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				fmt.Fprintf(&b, `\U%08x`, r)
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// markdownEscapes neutralises what CommonMark and GitHub's tables, mentions,
// references and automatic links give a meaning.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `#`, `\#`, `|`, `\|`, `~`, `\~`, `$`, `\$`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`,
	`@`, `&#64;`, `://`, `:&#47;&#47;`, `www.`, `www&#46;`)

// Markdown returns s as text that Markdown shows as it is, in a paragraph or the
// cell of a table.
func Markdown(s string) string {
	s = markdownEscapes.Replace(Text(s))
	// At the beginning: lists, and the underline of a heading.
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	switch {
	case digits < len(s) && strings.IndexByte("-=+", s[0]) >= 0:
		return `\` + s
	case digits > 0 && digits < len(s) && strings.IndexByte(".)", s[digits]) >= 0:
		return s[:digits] + `\` + s[digits:]
	}
	return s
}

// Clip returns at most n characters of s, with an ellipsis where something is
// missing. Clip first where s may be huge, then make it inert.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	seen := 0
	cut := 0
	for i := range s {
		if seen == n {
			return s[:cut] + "…"
		}
		if seen == n-1 {
			cut = i
		}
		seen++
	}
	return s
}

// unsafeInNames is what some file system, or shell, takes for something else.
var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// FileName makes a name that every file system takes.
func FileName(s string) string { return unsafeInNames.ReplaceAllString(s, "_") }

// Shell returns s as one word of a POSIX shell. What acts on a terminal is not
// shown: that is for [Text].
func Shell(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:+@%,=", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
