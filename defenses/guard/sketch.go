package guard

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// sketch is what a content is about, small enough to keep: its content words, cut
// to what inflection leaves alone, and its values (addresses, accounts, paths,
// codes), as hashes.
type sketch struct {
	words   []uint64 // sorted, each once
	values  []uint64 // of them, those that a statement can hardly share by accident
	numbers []uint64 // of them, those with digits
}

// Bounds of a sketch. Of a long content the words with the least hashes are kept,
// which are the same in every text that holds them.
const (
	maxSketch  = 128
	maxNumbers = 32
	stemBytes  = 5
)

// read sketches a folded content into buffers of its own.
func (k *sketch) read(s string) {
	k.words, k.values, k.numbers = k.words[:0], k.values[:0], k.numbers[:0]
	for w := range strings.SplitSeq(s, " ") {
		w = strings.TrimFunc(w, isSign)
		if w == "" {
			continue
		}
		digits, letters := 0, 0
		for i := range len(w) {
			switch c := classes[w[i]]; {
			case c&isDigit != 0:
				digits++
			case c&isLetter != 0:
				letters++
			}
		}
		signs := len(w) - digits - letters
		switch {
		case digits == 0 && signs == 0:
			k.word(w)
		case distinctive(w, letters, digits, signs):
			k.value(hash(w), true)
		case digits > 0:
			k.value(hash(w), false)
			if letters > 0 {
				k.parts(w)
			}
		default:
			k.parts(w)
		}
		if len(k.words) > 4*maxSketch {
			k.cut()
		}
	}
	k.cut()
	slices.Sort(k.values)
	k.values = slices.Compact(k.values)
	slices.Sort(k.numbers)
	k.numbers = slices.Compact(k.numbers)
}

// cut keeps the least words.
func (k *sketch) cut() {
	slices.Sort(k.words)
	k.words = slices.Compact(k.words)
	k.words = k.words[:min(len(k.words), maxSketch)]
}

// parts takes a compound apart: cross-site, he'll, and/or.
func (k *sketch) parts(w string) {
	for part := range strings.FieldsFuncSeq(w, isSign) {
		k.word(part)
	}
}

// isSign reports whether r is neither letter nor digit.
func isSign(r rune) bool { return r < utf8.RuneSelf && classes[r]&(isLetter|isDigit) == 0 }

func (k *sketch) word(w string) {
	if len(w) < 2 || text.IsStopword(w) {
		return
	}
	k.words = append(k.words, hash(w[:min(len(w), stemBytes)]))
}

func (k *sketch) value(h uint64, distinct bool) {
	k.words = append(k.words, h)
	if len(k.numbers) < maxNumbers {
		k.numbers = append(k.numbers, h)
	}
	if distinct && len(k.values) < maxNumbers {
		k.values = append(k.values, h)
	}
}

// distinctive reports whether a word is a value that two statements share only
// if they are about the same thing: an address, a host, a path, a code, a long
// number. Times, dates and amounts are none.
func distinctive(w string, letters, digits, signs int) bool {
	at, slash, dot, hyphen := 0, 0, 0, 0
	for i := 1; i+1 < len(w); i++ {
		switch w[i] {
		case '@':
			at++
		case '/', '\\':
			slash++
		case '.':
			if classes[w[i-1]]&(isLetter|isDigit) != 0 && classes[w[i+1]]&isLetter != 0 {
				dot++
			}
		case '-', '_':
			hyphen++
		}
	}
	switch {
	case at > 0 || dot > 0 && letters > 3:
		return true
	case slash > 0:
		return slash > 1 || dot > 0 || digits > 0 && letters > 2
	case letters == 0:
		return digits >= 7 || digits >= 5 && signs == 0
	}
	return digits >= 2 && letters+digits >= 6 || digits >= 1 && hyphen > 0 && letters >= 2 && letters+digits >= 5
}

// hash is FNV-1a, mixed so that its low bits are as good as its high ones.
func hash(s string) uint64 {
	h := text.Hash(s)
	h ^= h >> 32
	h *= 0x9E3779B97F4A7C15
	return h ^ h>>29
}

// like is the Jaccard similarity of the words of two sketches, 0 to 1; 0 also
// where it cannot reach least.
func (k *sketch) like(o *sketch, least float64) float64 {
	small, large := len(k.words), len(o.words)
	if small > large {
		small, large = large, small
	}
	if small == 0 || float64(small) < least*float64(large) {
		return 0
	}
	both := text.Shared(k.words, o.words)
	return float64(both) / float64(small+large-both)
}

// revises reports whether each of two contents has a number that the other has
// not: what changed is a value, and the later one is an update.
func (k *sketch) revises(o *sketch) bool {
	both := text.Shared(k.numbers, o.numbers)
	return both < len(k.numbers) && both < len(o.numbers)
}

// repeats reports whether k says again what o said: nearly the same words, or the
// same value about the same thing in other words.
func (k *sketch) repeats(o *sketch, least float64) bool {
	if shared := text.Shared(k.values, o.values); shared > 0 {
		// Two words beside the value say what it is about.
		return text.Shared(k.words, o.words)-shared >= 2 || k.like(o, least) >= least
	}
	return !k.revises(o) && k.like(o, least) >= least
}

// recent is a commit that later ones are held against.
type recent struct {
	at    time.Time
	id    string
	store string
	class memory.Class
	sketch
}

// maxRecent bounds how many commits are remembered.
const maxRecent = 256

// remember keeps a commit for the similarity checks. The oldest goes first.
func (t *trial) remember(r *memory.Record, now time.Time) {
	var e recent
	if len(t.recent) < maxRecent {
		t.recent = append(t.recent, e)
	} else {
		t.oldest++
	}
	at := &t.recent[(t.oldest+len(t.recent)-1)%len(t.recent)]
	at.at, at.id, at.store, at.class = now, r.ID, r.Store, leastClass(r)
	at.read(text.Fold(r.Text))
}

// since visits the commits within a window, the newest first, until yield returns
// false.
func (t *trial) since(now time.Time, window time.Duration, yield func(*recent) bool) {
	for i := len(t.recent) - 1; i >= 0; i-- {
		e := &t.recent[(t.oldest+i)%len(t.recent)]
		if now.Sub(e.at) >= window || !yield(e) {
			return
		}
	}
}
