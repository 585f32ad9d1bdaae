package contradiction

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/memtox/memtox/internal/text"
)

// Bounds on what one text gives. What is longer is read up to the bound; real
// memory entries stay far below them.
const (
	maxClaims  = 1024
	maxNesting = 16
	maxKey     = 8    // words of a key
	maxKeyed   = 10   // words behind a key; more are a sentence of their own
	maxLength  = 2048 // bytes of a sentence that are read at once
)

// nowhere is the place of values that do not stand in the text as they are read.
const nowhere = -1 << 40

// reader reads one text.
type reader struct {
	claims  []claim
	words   []word
	values  []mention
	columns []string // of the table that is read
}

// read returns what a text claims, in its order, in time linear in the text.
func read(s string) []claim {
	r := &reader{}
	var v any
	if strings.IndexAny(s, "{[") == 0 && json.Unmarshal([]byte(s), &v) == nil {
		r.json("", v, 0)
		return r.claims
	}
	at := 0
	if text.Scan(s).Has(text.ZeroWidth | text.BidiControl | text.ANSIEscape | text.ControlChars | text.TagChars) {
		s, at = visible(s), nowhere
	}
	for _, st := range text.Sentences(s) {
		if len(r.claims) >= maxClaims {
			break
		}
		if st.Kind == text.Row {
			r.row(st.Text)
		} else {
			r.columns = nil
			r.line(st.Text, at+st.Start)
		}
	}
	return r.claims
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]?`)

// visible leaves out what nobody sees.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(s, ""))
}

// json reads the values of a document under the keys that lead to them. A list
// says nothing of its one value, unless its items have keys.
func (r *reader) json(path string, v any, depth int) {
	if depth > maxNesting || len(r.claims) >= maxClaims {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			r.json(path+" "+k, v[k], depth+1)
		}
	case []any:
		for _, e := range v {
			if _, keys := e.(map[string]any); keys || len(v) == 1 {
				r.json(path, e, depth+1)
			}
		}
	case float64:
		r.keyed(path, strconv.FormatFloat(v, 'f', -1, 64), nowhere)
	case string, bool:
		r.keyed(path, fmt.Sprint(v), nowhere)
	}
}

// row reads a row of a table: its first cell is the subject, the headings are the
// attributes.
func (r *reader) row(s string) {
	cells := strings.Split(strings.Trim(s, "| "), "|")
	for i := 1; i < min(len(cells), len(r.columns)); i++ {
		r.keyed(cells[0]+" "+r.columns[i], strings.TrimSpace(cells[i]), nowhere)
	}
	if r.columns == nil {
		r.columns = cells
	}
}

// line reads a key and its value, or a sentence.
func (r *reader) line(s string, at int) {
	if i := strings.IndexAny(s, ":="); i > 0 && len(s) < maxLength && len(strings.Fields(s[:i])) <= maxKey {
		v := strings.TrimLeft(s[i+1:], " \t")
		if (s[i] == '=' || len(v) < len(s)-i-1) && !strings.Contains(v, "; ") && len(strings.Fields(v)) <= maxKeyed {
			r.keyed(s[:i], v, at+len(s)-len(v))
			return
		}
	}
	if strings.HasSuffix(s, "?") {
		return
	}
	for part := ""; s != ""; s, at = s[len(part):], at+len(part) {
		part = s[:min(len(s), maxLength)]
		r.sentence(part, at, -1)
	}
}

// keyed reads a value under a key. at is where the value stands in the text.
func (r *reader) keyed(key, v string, at int) {
	key = joints.Replace(key)
	r.sentence(key+": "+v, at-len(key)-2, len(key))
}

// joints stand between the words of a key.
var joints = strings.NewReplacer("_", " ", ".", " ", `"`, " ", "*", " ", "`", " ")
