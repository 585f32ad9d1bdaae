package contradiction

import (
	"context"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
)

// Checks of findings. A conflict's check is Check, a colon and the slot's name.
const (
	Check = "contradiction"
	// Correction marks a user's (or the operator's) own new value: it is
	// allowed and takes the place of the old one.
	Correction = "correction"
	// Revision marks a claim of the agent's own, derived from nothing external,
	// against a trusted fact: it is allowed, and the fact stays.
	Revision = "agent_revision"
)

// Register adds the defense contradiction.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:    "contradiction",
		Screens: []defenses.Place{defenses.Write},
		Idea:    "subject–predicate–object facts against what trusted records say; users may correct themselves",
		Cost: "no model calls; about 8 µs a write of 300 bytes at 10,000 records and 12 µs at a million; state: about " +
			"150 bytes a known fact",
	}, func(string, defenses.Env) (defenses.Defense, error) { return New() })
}

// New returns the defense. It needs nothing from the run: facts come from each
// trial's own records.
func New() (defenses.Defense, error) {
	return defenses.Func(func(_ context.Context, v memory.View) (memory.Gate, error) {
		g := &gate{x: newExtractor(), known: newBase()}
		if v != nil && v.Len() > 0 { // a store that was there before this session
			v.Each(func(r memory.Record) bool {
				g.learn(&r)
				return true
			})
		}
		return g, nil
	}), nil
}

type gate struct {
	memory.Open
	x      *extractor
	known  *base
	claims []claim // of the record read last
	// fromKey says that they come from its key and its text together, so that
	// tokens have no place in the text.
	fromKey bool
	// seeded are the texts, by record, that Seed has taught and Committed is about
	// to tell of: they are not read twice.
	seeded map[string]string
}

// Write implements [memory.Gate].
func (g *gate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return memory.Verdict{}, err
	}
	if p.Op == memory.Remove {
		return memory.Verdict{}, nil
	}
	g.read(&p.Record)
	var v memory.Verdict
	for i := range g.claims {
		c := &g.claims[i]
		k := g.known.conflict(g.x, c)
		if k == nil {
			continue
		}
		check := Correction
		switch {
		case p.Record.Origin.Class == memory.External:
			check = Check
			v.Action = memory.Quarantine
		case p.Record.Origin.Class == memory.Agent && k.class > memory.Agent:
			check = Revision
		}
		if len(v.Findings) < 8 {
			v.Findings = append(v.Findings, g.finding(check, c, k))
		}
	}
	return v, nil
}

// finding names the slot and quotes both values, made harmless and short.
func (g *gate) finding(check string, c *claim, k *known) memory.Finding {
	f := &g.x.facts[c.fact]
	fd := memory.Finding{
		Check: check + ":" + slotName(g.x.phrase(f.subject), g.x.phrase(f.predicate)),
		Note: "record " + quote(k.record) + " says " + no(k.negated) + quote(k.object) + ", this says " + no(c.negated) +
			quote(g.x.phrase(c.object)),
	}
	if first, last := g.x.refs[c.object.from], g.x.refs[c.object.to-1]; !g.fromKey && first >= pseudoTokens {
		if start, end := g.x.tokens[first].start, g.x.tokens[last].end; start < end {
			fd.Start, fd.End = int(start), int(end)
		}
	}
	return fd
}

func no(negated bool) string {
	if negated {
		return "not "
	}
	return ""
}

// quote spells text from memory so that it is inert wherever it is shown.
func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return strconv.QuoteToASCII(s)
}

// read extracts the claims of a record into g.claims.
func (g *gate) read(r *memory.Record) {
	g.fromKey = false
	g.x.run(r.Text)
	if len(g.x.facts) == 0 && slotKey(r.Key) && len(r.Text) <= 120 && strings.IndexByte(r.Text, '\n') < 0 {
		g.fromKey = true
		g.x.run(r.Key + ": " + r.Text)
	}
	g.claims = g.x.claims(g.claims[:0])
}

// slotKey reports whether a record's key names a slot rather than a file or a
// counter: "billing_contact".
func slotKey(k string) bool {
	letters := 0
	for i := 0; i < len(k); i++ {
		c := k[i]
		if c == '/' || c == '#' || c == '\n' || c == '\\' {
			return false
		}
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			letters++
		}
	}
	return letters >= 3 && len(k) <= maxKey && !strings.HasSuffix(k, ".md")
}

// trusted reports whether a record's facts are known facts: the user's, the
// operator's, or the agent's own from these. A record's origin is the least
// trusted one of its lineage, so nothing derived from external content passes.
func trusted(r *memory.Record) bool {
	return r.Origin.Class != memory.External && r.State == memory.Live
}

func (g *gate) learn(r *memory.Record) {
	if !trusted(r) {
		return
	}
	g.read(r)
	for i := range g.claims {
		g.known.learn(g.x, &g.claims[i], r)
	}
}

func (g *gate) forget(r *memory.Record) {
	g.read(r)
	for i := range g.claims {
		g.known.forget(&g.claims[i], r.ID)
	}
}

// Seed implements [memory.Gate].
func (g *gate) Seed(ctx context.Context, rs []memory.Record) ([]memory.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if g.seeded == nil {
		g.seeded = make(map[string]string, len(rs))
	}
	for i := range rs {
		if g.learn(&rs[i]); trusted(&rs[i]) {
			g.seeded[rs[i].ID] = rs[i].Text
		}
	}
	return rs, nil
}

// Committed implements [memory.Gate]: what is known follows what is stored.
func (g *gate) Committed(c memory.Change) {
	if text, ok := g.seeded[c.Record.ID]; ok {
		delete(g.seeded, c.Record.ID)
		if c.Route == memory.RouteSeed && c.Op == memory.Add && text == c.Record.Text && trusted(&c.Record) {
			return
		}
	}
	if c.Prior != nil {
		g.forget(c.Prior)
	}
	if c.Op == memory.Remove {
		g.forget(&c.Record)
		return
	}
	g.learn(&c.Record)
}
