package inert

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns encoded JSON in which what a terminal would obey, or what no reader
// sees, is escaped as \uXXXX: the same value, for only texts hold such. Line ends and
// tabs stay, and bytes that are no UTF-8 become \ufffd.
func JSON(b []byte) []byte {
	out, _ := escape(make([]byte, 0, len(b)), b, true)
	return out
}

// Terminal returns a writer to w that escapes as [JSON] does. JSON of any kind passes
// through it with its value, and other text with what does not print shown.
func Terminal(w io.Writer) io.Writer { return &terminal{w: w} }

type terminal struct {
	w    io.Writer
	held []byte // the beginning of a character
}

func (t *terminal) Write(b []byte) (int, error) {
	out, rest := escape(make([]byte, 0, len(t.held)+len(b)), append(t.held, b...), false)
	t.held = append([]byte(nil), rest...)
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escape appends b to out, escaped. What may be the beginning of a character is left
// where more is to come.
func escape(out, b []byte, whole bool) (escaped, rest []byte) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case !whole && (!utf8.FullRune(b) || r == '\r' && len(b) == 1):
			return out, b
		case r == '\n' || r == '\t' || r == '\r' && n < len(b) && b[n] == '\n',
			unicode.IsGraphic(r) && (r != utf8.RuneError || n > 1):
			out = append(out, b[:n]...)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
		b = b[n:]
	}
	return out, nil
}
