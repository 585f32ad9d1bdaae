package memoryguard

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The published checks look at what Python's json.dumps(str(value)) and
// datetime.isoformat() make of an entry; what they miss follows from that. This
// file does the same.

// appendDumps appends json.dumps(s): a JSON string in ASCII, with a space, a
// tilde and all between as they are and everything else escaped. Bytes that are
// not UTF-8 become U+FFFD: a Python string cannot hold them.
func appendDumps(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch letter := strings.IndexByte("\n\r\t\f\b", c); {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c >= ' ' && c <= '~':
				dst = append(dst, c)
			case letter >= 0:
				dst = append(dst, '\\', "nrtfb"[letter])
			default:
				dst = appendEscape(dst, uint16(c))
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		for _, unit := range utf16.AppendRune(nil, r) {
			dst = appendEscape(dst, unit)
		}
		i += n
	}
	return append(dst, '"')
}

func appendEscape(dst []byte, u uint16) []byte {
	return fmt.Appendf(dst, `\u%04x`, u)
}

// lower is str.lower() of what appendDumps returns, which is ASCII.
func lower(b []byte) {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

// isoformat is datetime.isoformat() of a naive UTC time.
func isoformat(t time.Time) string {
	t = t.UTC()
	if t.Nanosecond()/1000 == 0 {
		return t.Format("2006-01-02T15:04:05")
	}
	return t.Format("2006-01-02T15:04:05.000000")
}

// object is a value as Python compares and prints it.
type object struct {
	// equal is the same for values that Python's == calls equal: 1, 1.0 and True.
	equal string
	repr  string // for messages
}

// objectOf reads a JSON scalar; ok is false for null, lists and objects, of
// which the published extraction makes no triple.
func objectOf(raw json.RawMessage) (o object, ok bool) {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "true":
		return object{"#1", "True"}, true
	case text == "false":
		return object{"#0", "False"}, true
	case strings.HasPrefix(text, `"`):
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return o, false
		}
		return object{"s" + s, repr(s)}, true
	case text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9'):
		return o, false
	}
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			text = "0"
		}
		return object{"#" + text, text}, true
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond the range: infinity, as in Python
	shown := strconv.FormatFloat(f, 'g', -1, 64)
	if !math.IsInf(f, 0) && f == math.Trunc(f) {
		if f == 0 {
			return object{"#0", shown}, true
		}
		return object{"#" + new(big.Float).SetFloat64(f).Text('f', 0), shown}, true
	}
	return object{"#" + shown, shown}, true
}

// repr is repr() of a string, near enough for a message.
func repr(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	r := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, quote, `\`+quote)
	return quote + r.Replace(s) + quote
}
