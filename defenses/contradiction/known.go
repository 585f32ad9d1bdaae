package contradiction

import (
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
)

// How much of two topics must be the same for their values to compete: of the shorter
// one, and of both together.
const (
	strongShorter, strongBoth = 0.6, 0.3
	weakShorter, weakBoth     = 0.75, 0.5
	weakEach                  = 0.61 // where each has a word that the other has not: it may make it another thing
	phraseBoth                = 0.6
)

// maxPosts bounds how many facts are found by one word. A word that so many have
// says little; each is still found by its others.
const maxPosts = 16

// base is what is known: facts by the words of their topics. A look-up costs the
// same at any number of facts.
type base map[uint32][]*known

// known is a fact and whose it is.
type known struct {
	fact
	record string
	class  memory.Class
}

// near yields the facts that share a word with another, some more than once.
func (b base) near(f *fact) iter.Seq[*known] {
	return func(yield func(*known) bool) {
		for _, s := range f.topic {
			for _, k := range b[s.hash] {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// conflict returns the known fact that another contradicts, or nil. One that names
// nobody contradicts what is known of one only.
func (b base) conflict(f *fact) (best *known) {
	var most float64
	owner, several, own := uint32(0), false, f.owner()
	for k := range b.near(f) {
		score := k.meets(f)
		if score == 0 {
			continue
		}
		same := k.value.same(&f.value)
		if same && k.negated == f.negated {
			return nil
		}
		if same != (k.negated != f.negated) || k.negated && f.negated {
			continue // both may be true
		}
		if o := k.owner(); own == 0 && o != 0 {
			several = several || owner != 0 && owner != o
			owner = o
		}
		if score > most {
			best, most = k, score
		}
	}
	if several {
		return nil
	}
	return best
}

// meets reports how far two facts speak of the same thing by a value of the same
// kind, in 0 to 1.
func (f *fact) meets(g *fact) float64 {
	differ := func(a, b string) bool { return a != b && a != "" && b != "" }
	strong := f.value.strong
	if f.value.kind != g.value.kind || differ(f.value.unit, g.value.unit) || !strong && differ(f.lead, g.lead) {
		return 0
	}
	// Where a noun leads to both values, it says what they are, and not the verb.
	loose := strong || f.lead == g.lead && strings.HasPrefix(f.lead, "-")
	words := 0 // that both have, outside of names
	var inF, inG tally
	for i, j := 0, 0; i < len(f.topic) || j < len(g.topic); {
		switch {
		case j == len(g.topic) || i < len(f.topic) && f.topic[i].hash < g.topic[j].hash:
			inF.alone(f.topic[i], loose)
			i++
		case i == len(f.topic) || g.topic[j].hash < f.topic[i].hash:
			inG.alone(g.topic[j], loose)
			j++
		default:
			if f.topic[i].unit == 0 && g.topic[j].unit == 0 {
				words++
			}
			inF.met |= 1 << f.topic[i].unit
			inG.met |= 1 << g.topic[j].unit
			i++
			j++
		}
	}
	shared := words + max(inF.shared(), inG.shared())
	moreF, moreG := inF.words+bits.OnesCount32(inF.missing), inG.words+bits.OnesCount32(inG.missing)
	if shared == 0 || inF.missing != 0 && inG.missing != 0 || shared == 1 && moreF+moreG > 0 {
		return 0
	}
	shorter := float64(shared) / float64(shared+min(moreF, moreG))
	both := float64(shared) / float64(shared+moreF+moreG)
	ok := shorter >= weakShorter && both >= weakBoth && (min(moreF, moreG) == 0 || both >= weakEach)
	switch {
	case strong:
		ok = shorter >= strongShorter && both >= strongBoth
	case f.value.kind == phrase:
		ok = shorter == 1 && both >= phraseBoth
	}
	if !ok {
		return 0
	}
	return both
}

// tally counts what a topic has of another. A name counts once, however many words
// it has; sets of names have a bit for each, and bit 0 for none.
type tally struct {
	words        int // that the other does not have
	met, missing uint32
}

// alone counts a word that the other topic does not have.
func (t *tally) alone(s stem, loose bool) {
	switch {
	case s.context || s.light && (loose || s.unit == 0):
	case s.unit != 0:
		t.missing |= 1 << s.unit
	default:
		t.words++
	}
}

// shared is the number of names that the other topic has whole.
func (t *tally) shared() int { return bits.OnesCount32(t.met &^ t.missing &^ 1) }

// owner tells what a fact names from what another does; 0 is nothing.
func (f *fact) owner() (sum uint32) {
	for _, s := range f.topic {
		if s.unit != 0 && !s.context {
			sum += s.hash
		}
	}
	return sum
}

// learn adds what a record claims. A value that contradicts what was known takes
// its place, unless a more trusted record says the other thing.
func (b base) learn(f *fact, r *memory.Record) {
	for k := b.conflict(f); k != nil; k = b.conflict(f) {
		if k.class > r.Origin.Class {
			return
		}
		b.drop(k)
	}
	k := &known{*f, r.ID, r.Origin.Class}
	for _, s := range f.topic {
		if len(b[s.hash]) < maxPosts {
			b[s.hash] = append(b[s.hash], k)
		}
	}
}

// forget drops what a record said about a topic.
func (b base) forget(f *fact, record string) {
	for k := range b.near(f) {
		if k.record == record {
			b.drop(k)
		}
	}
}

func (b base) drop(k *known) {
	for _, s := range k.topic {
		// A copy, for somebody may be going through them.
		rest := slices.DeleteFunc(slices.Clone(b[s.hash]), func(o *known) bool { return o == k })
		if b[s.hash] = rest; len(rest) == 0 {
			delete(b, s.hash)
		}
	}
}
