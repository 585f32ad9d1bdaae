package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxSorted is how deep objects are sorted. Sorting moves what they hold, so that
// without a bound the work would be quadratic for text nested deeply on purpose.
const maxSorted = 64

// canonical is a JSON text without white space and with the members of objects
// sorted; strings and numbers stand as they were sent. What is not JSON stays as
// it is.
func canonical(body []byte) []byte {
	if !json.Valid(body) {
		return body
	}
	c := canon{in: body}
	return c.value(make([]byte, 0, len(body)))
}

// canon rewrites valid JSON; the recursion is bounded by encoding/json's own limit.
type canon struct {
	in    []byte
	i     int
	depth int
}

func (c *canon) space() {
	for c.i < len(c.in) && (c.in[c.i] == ' ' || c.in[c.i] == '\n' || c.in[c.i] == '\r' || c.in[c.i] == '\t') {
		c.i++
	}
}

func (c *canon) value(out []byte) []byte {
	c.space()
	switch c.in[c.i] {
	case '{':
		return c.object(out)
	case '[':
		c.i++
		out = append(out, '[')
		for first := true; ; first = false {
			c.space()
			if c.in[c.i] == ']' {
				c.i++
				return append(out, ']')
			}
			if !first {
				c.i++ // the comma
				out = append(out, ',')
			}
			out = c.value(out)
		}
	case '"':
		return append(out, c.text()...)
	}
	from := c.i
	for c.i < len(c.in) && !bytes.ContainsRune([]byte(",]} \n\r\t"), rune(c.in[c.i])) {
		c.i++
	}
	return append(out, c.in[from:c.i]...)
}

func (c *canon) text() []byte {
	from := c.i
	for c.i++; c.in[c.i] != '"'; c.i++ {
		if c.in[c.i] == '\\' {
			c.i++
		}
	}
	c.i++
	return c.in[from:c.i]
}

func (c *canon) object(out []byte) []byte {
	type member struct{ name, whole []byte }
	var members []member
	start := len(out)
	out = append(out, '{')
	c.i++
	c.depth++
	for {
		c.space()
		if c.in[c.i] == ',' {
			c.i++
			c.space()
		}
		if c.in[c.i] == '}' {
			c.i++
			break
		}
		if len(members) > 0 {
			out = append(out, ',')
		}
		from := len(out)
		name := c.text()
		c.space()
		c.i++ // the colon
		out = c.value(append(append(out, name...), ':'))
		members = append(members, member{name, out[from:]})
	}
	c.depth--
	byName := func(a, b member) int { return bytes.Compare(a.name, b.name) }
	if c.depth >= maxSorted || slices.IsSortedFunc(members, byName) {
		return append(out, '}')
	}
	// out may have been moved while it grew: what members hold stays as it was.
	slices.SortStableFunc(members, byName)
	sorted := make([]byte, 0, len(out)-start)
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, m.whole...)
	}
	return append(append(out[:start+1], sorted...), '}')
}

// operation is the method, path behind base, and query of a request. The values of query
// members that carry keys, signatures or the time are left out.
func operation(r *http.Request, base string) string {
	op := r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), base)
	if r.URL.RawQuery == "" {
		return op
	}
	q := r.URL.Query()
	for name := range q {
		switch strings.ToLower(name) {
		case "key", "api_key", "api-key", "apikey", "token", "access_token", "sig", "signature", "code", "ts":
			q[name] = []string{""}
		}
	}
	s, err := url.QueryUnescape(q.Encode())
	if err != nil {
		return op
	}
	return op + "?" + s
}

func hashOf(op string, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(op))
	h.Write([]byte{'\n'})
	h.Write(body)
	return [32]byte(h.Sum(nil))
}
