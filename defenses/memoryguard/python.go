package memoryguard

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The published checks look at what Python's json.dumps(str(value)) and
// datetime.isoformat() make of an entry; what they miss follows from that. This
// file does the same.

const hexDigits = "0123456789abcdef"

// appendDumps appends json.dumps(s): a JSON string in ASCII, with a space, a
// tilde and all between as they are and everything else escaped. Bytes that are
// not UTF-8 become U+FFFD: a Python string cannot hold them.
func appendDumps(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c >= ' ' && c <= '~':
				dst = append(dst, c)
			case c == '\n':
				dst = append(dst, `\n`...)
			case c == '\r':
				dst = append(dst, `\r`...)
			case c == '\t':
				dst = append(dst, `\t`...)
			case c == '\f':
				dst = append(dst, `\f`...)
			case c == '\b':
				dst = append(dst, `\b`...)
			default:
				dst = appendEscape(dst, uint16(c))
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= 0x10000 {
			r -= 0x10000
			dst = appendEscape(dst, uint16(0xD800+r>>10))
			dst = appendEscape(dst, uint16(0xDC00+r&0x3FF))
		} else {
			dst = appendEscape(dst, uint16(r))
		}
		i += n
	}
	return append(dst, '"')
}

func appendEscape(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
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
