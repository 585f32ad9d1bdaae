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
	keys  []string // words that both have, as written, the longest first
}

// said are the words of a sentence with what each tells: a common word little.
type said struct {
	words   []uint64
	weights []float64
}

// claimOf reads what records say of a value that they would fill an argument with.
func claimOf(c *memory.Call, a *memory.Arg, from []memory.Record) *claim {
	out := &claim{of: world.Type(a.Type), value: a.Value}
	if e, ok := out.of.Element(); ok {
		out.of = e
	}
	ask := c.Query.Text
	for i := range c.Args {
		if o := &c.Args[i]; o.Name != a.Name {
			ask += "\n" + o.Value
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
	slices.SortFunc(out.keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	out.keys = slices.Compact(out.keys)
	return out
}

func (c *claim) add(sentence string) {
	c.kinds |= kindsIn(sentence)
	c.read(sentence)
	for part := range strings.FieldsFuncSeq(sentence, func(r rune) bool { return strings.ContainsRune(",;:", r) }) {
		if len(part) < len(sentence) && c.saidIn(part) {
			c.read(part)
		}
	}
}

func (c *claim) read(s string) {
	value := wordsOf(c.value)
	var out said
	for _, t := range text.Tokens(s) {
		if text.IsStopword(t.Text) {
			continue
		}
		w := text.Hash(text.Stem(t.Text))
		if has(value, w) || slices.Contains(out.words, w) {
			continue
		}
		out.words, out.weights = append(out.words, w), append(out.weights, float64(text.Weight(t.Text)))
		c.all = append(c.all, w)
		if has(c.asked, w) {
			c.keys = append(c.keys, t.Text)
		}
	}
	if len(out.words) > 1 {
		c.says = append(c.says, out)
	}
}

// saidIn reports whether a text says the value.
func (c *claim) saidIn(s string) bool { return text.Says(s, c.value) }

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

// look holds a claim against the user's tables, by the words that it shares with the
// request.
func (g *gate) look(ctx context.Context, c *claim) (evidence, error) {
	best, out := 0., noEvidence
	near := slices.Concat(c.all, c.asked)
	slices.Sort(near)
	for _, r := range g.view.Readers() {
		i := slices.Index(r.Finds, string(c.of))
		if i < 0 {
			continue
		}
		seen := map[string]bool{}
		for _, key := range c.keys[:min(len(c.keys), g.policy.Authority.Looks)] {
			rows, err := g.view.Look(ctx, r.Tool, key)
			if err != nil {
				return noEvidence, fmt.Errorf("looking %q up with %s: %w", key, r.Tool, err)
			}
			for _, row := range rows {
				if id := fmt.Sprintf("%q", row); seen[id] {
					continue
				} else {
					seen[id] = true
				}
				name := said{}
				for _, t := range text.Tokens(row.Name) {
					if !text.IsStopword(t.Text) {
						name.words = append(name.words, text.Hash(text.Stem(t.Text)))
						name.weights = append(name.weights, float64(text.Weight(t.Text)))
					}
				}
				n := name.share(near, nil)
				if n < sameRow || n < best || n == best && out == agrees {
					continue
				}
				for _, cell := range row.Cells {
					if world.Type(cell.Type) != c.of || cell.Value == "" {
						continue
					}
					if best, out = n, worldAgainst; c.of.Equal(cell.Value, c.value) {
						out = agrees
						break
					}
				}
			}
		}
	}
	return out, nil
}
