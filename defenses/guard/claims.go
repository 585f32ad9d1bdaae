package guard

import (
	"slices"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// claims knows which trusted principals say the same as an external record.
//
// Two records say the same if the trusted one holds every operative value of the
// other (address, account, path, command …), and at least half of its other words,
// and denies nothing. An
// external record without such a value is corroborated by nobody: it says nothing
// that an action could hang on. Only what the user or the operator said counts,
// and each of them once.
//
// It learns what the store holds when the guard is opened, follows Committed from
// then on, and costs nothing for records without values. It is bounded: what comes
// when it is full is corroborated by nobody.
type claims struct {
	trusted map[uint64][]witness // by hash of a value
	said    map[string]claim     // of external records, by id
}

// claim is what a record says.
type claim struct {
	values []uint64
	words  []uint64
}

// witness is a trusted record that states a value.
type witness struct {
	record    string
	principal string
	words     []uint64
}

// maxClaims bounds the values of one record that are remembered, and the
// witnesses of one value.
const maxClaims = 16

// maxRemembered bounds the external records, and the values of trusted ones, that
// are remembered.
const maxRemembered = 1 << 16

// sameMatter is the share of an external record's words that a trusted one must
// have.
const sameMatter = 0.5

func (c *claims) of(s string) (claim, bool) {
	var out claim
	var rest []byte // what it says about the values
	at := 0
	for _, v := range text.Values(s) {
		if !operative(v.Kind) {
			continue
		}
		if v.Start >= at {
			rest = append(append(rest, s[at:v.Start]...), ' ')
			at = v.End
		}
		if len(out.values) == maxClaims {
			return claim{}, false // too much to be one claim
		}
		out.values = append(out.values, text.Shingles(v.Text, 64)...)
	}
	if len(out.values) == 0 {
		return claim{}, false
	}
	slices.Sort(out.values)
	out.values = slices.Compact(out.values)
	out.words = contentWords(string(append(rest, s[at:]...)))
	return out, true
}

// contentWords are the content words of a text, as hashes of their stems.
func contentWords(s string) []uint64 {
	var stems []byte
	for _, t := range text.Tokens(s) {
		if t.Kind == text.Word && text.IsStopword(t.Text) {
			continue
		}
		stems = append(append(stems, text.Stem(t.Text)...), ' ')
	}
	return text.Shingles(string(stems), 1)
}

// denies reports whether a word turns a statement round.
func denies(w string) bool {
	switch w {
	case "not", "no", "never", "nor", "neither", "without", "isn't", "aren't", "wasn't", "don't", "doesn't", "didn't",
		"won't", "can't", "cannot", "mustn't", "shouldn't",
		"wrong", "false", "old", "former", "formerly", "instead", "stop", "avoid":
		return true
	}
	return false
}

// operative reports whether a value of this kind is one that an action can hang
// on.
func operative(k text.ValueKind) bool {
	switch k {
	case text.Name, text.DateTime, text.Figure, text.Money:
		return false
	}
	return true
}

// committed is told of every change.
func (c *claims) committed(ch memory.Change) {
	if ch.Prior != nil && (ch.Op == memory.Remove || ch.Record.State == memory.Live) {
		c.forget(ch.Prior)
	}
	if ch.Op != memory.Remove && ch.Record.State.Visible() {
		c.learn(&ch.Record)
	}
}

func (c *claims) learn(r *memory.Record) {
	class := leastClass(r)
	if class == memory.Agent {
		return // its own conclusions are no evidence, and need none
	}
	cl, ok := c.of(r.Text)
	if !ok {
		return
	}
	if class == memory.External {
		if c.said == nil {
			c.said = make(map[string]claim)
		}
		if len(c.said) < maxRemembered {
			c.said[r.ID] = cl
		}
		return
	}
	if r.State != memory.Live || r.Principal == everybody && class < memory.System {
		return
	}
	if c.trusted == nil {
		c.trusted = make(map[uint64][]witness)
	}
	for _, t := range text.Tokens(r.Text) {
		if denies(t.Text) {
			return
		}
	}
	w := witness{r.ID, r.Principal, cl.words}
	if class == memory.System {
		w.principal = "" // the operator is one, in whoever's memory
	}
	for _, v := range cl.values {
		if ws := c.trusted[v]; (ws != nil || len(c.trusted) < maxRemembered) && len(ws) < maxClaims &&
			!slices.ContainsFunc(ws, func(o witness) bool { return o.record == r.ID }) {
			c.trusted[v] = append(ws, w)
		}
	}
}

func (c *claims) forget(r *memory.Record) {
	delete(c.said, r.ID)
	if len(c.trusted) == 0 {
		return
	}
	cl, ok := c.of(r.Text)
	if !ok {
		return
	}
	for _, v := range cl.values {
		ws := slices.DeleteFunc(c.trusted[v], func(w witness) bool { return w.record == r.ID })
		if len(ws) == 0 {
			delete(c.trusted, v)
			continue
		}
		c.trusted[v] = ws
	}
}

// corroborated reports whether at least k trusted principals say what the
// external record of that id says.
func (c *claims) corroborated(id string, k int) bool {
	if k <= 0 || len(c.trusted) == 0 {
		return false
	}
	cl, ok := c.said[id]
	if !ok {
		return false
	}
	var who []string
next:
	for _, w := range c.trusted[cl.values[0]] {
		if slices.Contains(who, w.principal) || text.Containment(cl.words, w.words) < sameMatter {
			continue
		}
		for _, v := range cl.values[1:] {
			if !slices.ContainsFunc(c.trusted[v], func(o witness) bool { return o.record == w.record }) {
				continue next
			}
		}
		who = append(who, w.principal)
	}
	return len(who) >= k
}
