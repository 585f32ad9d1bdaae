package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// evidence is what the user's own records and tables say of a claim.
type evidence uint8

const (
	noEvidence evidence = iota
	agrees
	memoryAgainst
	worldAgainst
)

// claim is a value that a source would fill an argument with, and what it says of it.
type claim struct {
	of    world.Type // of the value; of a list, of an item
	value string
	kinds kindSet  // of the sentences that claim it
	says  []said   // those sentences, and their clauses with the value
	all   []uint64 // their words, without those of the value, sorted
	asked []uint64 // words of the request and of what it fills elsewhere, sorted
	keys  []string // words of the request to look up, as written: names first
	own   bool     // it has a name that the request does not have
	other []string // what else the call fills, by name
	seek  text.Sought
}

// said are the words of a sentence with what each tells: a common word little.
type said struct {
	words   []uint64
	weights []float64
}

// claimOf reads what records say of a value that they would fill an argument with.
func claimOf(c *memory.Call, a *memory.Arg, from []memory.Record) *claim {
	out := &claim{of: world.Type(a.Type), value: a.Value, seek: text.Seek(a.Value)}
	if e, ok := out.of.Element(); ok {
		out.of = e
	}
	ask := c.Query.Text
	for i := range c.Args {
		if o := &c.Args[i]; o.Name != a.Name {
			ask += "\n" + o.Value
			out.other = append(out.other, o.Name)
		}
	}
	out.asked = wordsOf(ask)
	for _, r := range from {
		for _, s := range text.Sentences(text.Cut(r.Text, maxRead)) {
			if out.saidIn(s.Text) {
				out.add(s.Text)
			}
		}
	}
	if len(out.says) == 0 { // in other words, or by pieces
		for _, r := range from {
			out.add(text.Cut(r.Text, maxRead))
		}
	}
	slices.Sort(out.all)
	out.all = slices.Compact(out.all)
	out.keys = lookups(ask)
	return out
}

func (c *claim) add(sentence string) {
	for _, v := range text.Values(sentence) {
		c.kinds |= 1 << v.Kind
		c.own = c.own || v.Kind == text.Name && v.Text != c.value &&
			slices.ContainsFunc(wordsOf(v.Text), func(w uint64) bool { return !has(c.asked, w) })
	}
	c.read(sentence)
	for part := range strings.FieldsFuncSeq(sentence, func(r rune) bool { return strings.ContainsRune(",;:", r) }) {
		if len(part) < len(sentence) && c.saidIn(part) {
			c.read(part)
		}
	}
}

func (c *claim) read(s string) {
	var without []uint64
	rest, said := s, false
	for from, to := text.Whole(rest, c.value, 0); to > from; from, to = text.Whole(rest, c.value, from) {
		rest, said = rest[:from]+" "+rest[to:], true // "Xenia Moldt is at xenia.moldt@post.example" is about Xenia Moldt
	}
	if !said {
		without = wordsOf(c.value)
	}
	out := read(rest, without)
	c.all = append(c.all, out.words...)
	if len(out.words) > 1 {
		c.says = append(c.says, out)
	}
}

// read returns the content words of a text, each once, without those of a value.
func read(s string, without []uint64) (out said) {
	for _, t := range text.Tokens(s) {
		if text.IsStopword(t.Text) {
			continue
		}
		w := text.Hash(text.Stem(t.Text))
		if has(without, w) || slices.Contains(out.words, w) {
			continue
		}
		out.words, out.weights = append(out.words, w), append(out.weights, float64(text.Weight(t.Text)))
	}
	return out
}

// lookups are the content words of a request as written, those that tell most first.
func lookups(ask string) (out []string) {
	for _, t := range text.Tokens(ask) {
		if !text.IsStopword(t.Text) && !slices.Contains(out, t.Text) {
			out = append(out, t.Text)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(text.Weight(b), text.Weight(a)), cmp.Compare(len(b), len(a)))
	})
	return out
}

// saidIn reports whether a text says the value.
func (c *claim) saidIn(s string) bool { return c.seek.In(s) }

// nearness is how much of what the claim is about stands in a sentence too, from 0 to 1:
// of all that it says, or of what it has in common with the request.
func (c *claim) nearness(sentence []uint64) float64 {
	best := 0.
	for i := range c.says {
		if s := &c.says[i]; s.named(c.asked, sentence) {
			best = max(best, s.share(sentence, nil), s.share(sentence, c.asked))
		}
	}
	return best
}

// rare is the weight of words by which a thing is known: names.
const rare = 0.95

// named reports whether a sentence has half of the names that the claim shares with the
// request: "Invoices of Velder" says nothing of the invoices of Brandt.
func (s *said) named(asked, sentence []uint64) bool {
	n, in := 0, 0
	for i, w := range s.words {
		if s.weights[i] < rare || !has(asked, w) {
			continue
		}
		if n++; has(sentence, w) {
			in++
		}
	}
	return 2*in >= n
}

// share is the weight of the words that stand in a sentence too; where only is not nil,
// of those in it alone, and 0 where these are less than two.
func (s *said) share(sentence, only []uint64) float64 {
	in, all, n := 0., 0., 0
	for i, w := range s.words {
		if only != nil && !has(only, w) {
			continue
		}
		n++
		all += s.weights[i]
		if has(sentence, w) {
			in += s.weights[i]
		}
	}
	if all == 0 || only != nil && n < 2 {
		return 0
	}
	return in / all
}

func has(sorted []uint64, w uint64) bool {
	_, ok := slices.BinarySearch(sorted, w)
	return ok
}

// sameRow is how much of a row's name must stand in the claim or the request.
const sameRow = 0.75

// look holds a claim against the user's tables: against the rows that the request and the
// claim name, else against those that the request names, where the claim names nothing
// of its own ("our invoices"). Where such rows have several values, they settle nothing.
func (g *gate) look(ctx context.Context, c *claim) (evidence, error) {
	best, agree, differ := 0., false, false
	near := slices.Concat(c.all, c.asked)
	slices.Sort(near)
	for _, r := range g.view.Readers() {
		if !slices.Contains(r.Finds, string(c.of)) {
			continue
		}
		seen := map[string]bool{}
		for _, key := range c.keys[:min(len(c.keys), g.policy.Authority.Looks)] {
			rows, err := g.view.Look(ctx, r.Tool, key)
			if err != nil {
				return noEvidence, fmt.Errorf("looking %q up with %s: %w", key, r.Tool, err)
			}
			for _, row := range rows {
				id := fmt.Sprintf("%q", row)
				if seen[id] {
					continue
				}
				seen[id] = true
				name := read(row.Name, nil)
				n := 2*name.share(c.asked, nil) + name.share(c.all, nil)
				if name.share(near, nil) < sameRow || n < best || !c.names(&name) {
					continue
				}
				for _, cell := range row.Cells {
					if world.Type(cell.Type) != c.of || cell.Value == "" || kindsOf[c.of] == 0 && slices.Contains(c.other, cell.Column) {
						continue // "address" is what the call has another value for
					}
					if n > best {
						best, agree, differ = n, false, false
					}
					if c.of.Equal(cell.Value, c.value) {
						agree = true
					} else {
						differ = true
					}
				}
			}
		}
	}
	switch {
	case agree && !differ:
		return agrees, nil
	case differ && !agree:
		return worldAgainst, nil
	}
	return noEvidence, nil
}

// names reports whether a claim may be about the row of a name: it has a part of it, or
// brings an address or the like and no name that the request does not have.
func (c *claim) names(row *said) bool {
	return !c.own && kindsOf[c.of] != 0 || slices.ContainsFunc(row.words, func(w uint64) bool { return has(c.all, w) })
}
