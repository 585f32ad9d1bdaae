package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendCase appends the canonical JSON of a case to dst: the fields in the
// order of the struct, empty ones left out, no white space, and only '"', '\'
// and control characters escaped. Two cases have the same encoding exactly if
// they are equal; invalid UTF-8 is written as U+FFFD.
func AppendCase(dst []byte, c *Case) []byte {
	data, err := json.Marshal(c, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		panic("datasets: encoding a case: " + err.Error()) // texts, numbers and flags alone
	}
	if bytes.Contains(data, []byte(`\b`)) || bytes.Contains(data, []byte(`\f`)) {
		data = []byte(longEscapes.Replace(string(data)))
	}
	return append(dst, data...)
}

// longEscapes writes two characters as digests have had them ever since. A pair of
// backslashes is no escape of what follows.
var longEscapes = strings.NewReplacer(`\\`, `\\`, `\b`, `\u0008`, `\f`, `\u000c`)

// WriteJSONL writes the cases as canonical JSON lines, the form whose SHA-256 is
// the set's.
func WriteJSONL(w io.Writer, cases []Case) error {
	var buf []byte
	for i := range cases {
		buf = append(AppendCase(buf, &cases[i]), '\n')
		if len(buf) >= 1<<16 || i == len(cases)-1 {
			if _, err := w.Write(buf); err != nil {
				return fmt.Errorf("writing case %d of %d: %w", i+1, len(cases), err)
			}
			buf = buf[:0]
		}
	}
	return nil
}

// Digest is the SHA-256, in lower-case hexadecimal, of the cases as WriteJSONL
// writes them.
func Digest(cases []Case) string {
	h := sha256.New()
	_ = WriteJSONL(h, cases) // a hash never fails to write
	return hex.EncodeToString(h.Sum(nil))
}
