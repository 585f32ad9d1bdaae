package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Phrase is one entry of a phrase list.
type Phrase struct {
	Text string
	// Whole asks that the phrase neither begin nor end inside a word: "ssh"
	// then does not match in "hashsha".
	Whole bool
}

// Phrases finds every occurrence of every phrase of a list in one pass over a
// text, whatever the number of phrases: the automaton of Aho and Corasick
// (1975) with all its transitions worked out, over classes of bytes that no
// phrase tells apart. ASCII letters match either case, and a run of white
// space matches as one space. Phrases are folded when the automaton is built;
// for look-alikes, invisible characters and the like give it Fold(s).
//
// Building takes some 0.2 ms for 150 phrases (BenchmarkPhrases): build once,
// lazily.
// A Phrases never changes; any number of goroutines may use it.
type Phrases struct {
	list  []Phrase // as given, folded
	class [256]uint8
	width uint32   // number of classes
	next  []uint32 // state*width + class → next state, already times width; the top bit marks a state with output
	out   []int32  // state → first entry of outs, or -1
	outs  []phraseOut
}

type phraseOut struct {
	id   int32
	next int32 // index of the next output of the same state, or -1
}

const phraseHit = 1 << 31

// NewPhrases builds the automaton of phrases that may match anywhere, inside
// words too. The id of a phrase is its index. Empty phrases never match.
func NewPhrases(texts []string) *Phrases {
	list := make([]Phrase, len(texts))
	for i, t := range texts {
		list[i].Text = t
	}
	return CompilePhrases(list)
}

// CompilePhrases builds the automaton of a phrase list.
func CompilePhrases(list []Phrase) *Phrases {
	p := &Phrases{list: make([]Phrase, len(list))}
	// Class 0 is every byte that stands in no phrase, class 1 white space.
	for _, c := range []byte(" \t\n\v\f\r") {
		p.class[c] = 1
	}
	classes := 2
	nodes := 1
	for i, ph := range list {
		ph.Text = Fold(ph.Text)
		p.list[i] = ph
		nodes += len(ph.Text)
		for j := 0; j < len(ph.Text); j++ {
			if c := ph.Text[j]; p.class[c] == 0 {
				p.class[c] = uint8(classes)
				classes++
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		p.class[c-'a'+'A'] = p.class[c]
	}
	p.width = uint32(classes)
	if uint64(nodes)*uint64(classes) >= phraseHit {
		panic(fmt.Sprintf("text: %d phrases of %d bytes are too many for one automaton: split the list", len(list), nodes-1))
	}

	// The trie.
	w := classes
	next := make([]uint32, w, nodes*w)
	p.out = append(p.out, -1)
	spaceState := []bool{false}
	for id, ph := range p.list {
		if ph.Text == "" {
			continue
		}
		state := 0
		for j := 0; j < len(ph.Text); j++ {
			at := state*w + int(p.class[ph.Text[j]])
			if next[at] == 0 {
				next[at] = uint32(len(p.out))
				p.out = append(p.out, -1)
				spaceState = append(spaceState, p.class[ph.Text[j]] == 1)
				next = next[:len(next)+w]
			}
			state = int(next[at])
		}
		p.outs = append(p.outs, phraseOut{id: int32(id), next: p.out[state]})
		p.out[state] = int32(len(p.outs) - 1)
	}

	// Breadth first: failure links turn the trie into the automaton. A state
	// is complete before its children are visited.
	fail := make([]uint32, len(p.out))
	queue := make([]uint32, 0, len(p.out))
	for c := range w {
		if t := next[c]; t != 0 {
			queue = append(queue, t)
		}
	}
	for head := 0; head < len(queue); head++ {
		state := queue[head]
		back := fail[state]
		// Outputs of the failure state follow the state's own.
		if p.out[back] >= 0 {
			tail := p.out[state]
			if tail < 0 {
				p.out[state] = p.out[back]
			} else {
				for p.outs[tail].next >= 0 {
					tail = p.outs[tail].next
				}
				p.outs[tail].next = p.out[back]
			}
		}
		for c := range w {
			at := int(state)*w + c
			onBack := next[int(back)*w+c]
			if t := next[at]; t != 0 {
				fail[t] = onBack
				queue = append(queue, t)
			} else {
				next[at] = onBack
			}
		}
	}
	// After a space, more white space changes nothing.
	for state, sp := range spaceState {
		if sp {
			next[state*w+1] = uint32(state)
		}
	}
	for i, t := range next {
		v := t * p.width
		if p.out[t] >= 0 {
			v |= phraseHit
		}
		next[i] = v
	}
	p.next = next
	return p
}

// Len is the number of phrases.
func (p *Phrases) Len() int { return len(p.list) }

// Find calls f with the id and the span in s of each occurrence, in the order
// in which they end; of those that end together, the longest first. It stops
// when f returns false. Occurrences may overlap.
func (p *Phrases) Find(s string, f func(id, start, end int) bool) {
	next, width := p.next, p.width
	state := uint32(0)
	for i := 0; i < len(s); i++ {
		state = next[state+uint32(p.class[s[i]])]
		if state&phraseHit == 0 {
			continue
		}
		state &^= phraseHit
		for o := p.out[state/width]; o >= 0; o = p.outs[o].next {
			id := int(p.outs[o].id)
			start := p.startOf(s, i+1, len(p.list[id].Text))
			if p.list[id].Whole && !(boundary(s, start) && boundary(s, i+1)) {
				continue
			}
			if !f(id, start, i+1) {
				return
			}
		}
	}
}

// Match reports whether any phrase occurs in s.
func (p *Phrases) Match(s string) bool {
	found := false
	p.Find(s, func(int, int, int) bool {
		found = true
		return false
	})
	return found
}

// startOf walks n bytes of a phrase back from end, a run of white space as one.
func (p *Phrases) startOf(s string, end, n int) int {
	i := end
	for ; n > 0; n-- {
		i--
		if p.class[s[i]] == 1 && n > 1 {
			for i > 0 && p.class[s[i-1]] == 1 {
				i--
			}
		}
	}
	return i
}

// boundary reports whether a word begins or ends at s[i], or none is there.
func boundary(s string, i int) bool {
	return i <= 0 || i >= len(s) || !wordByte(s[i-1]) || !wordByte(s[i])
}

func wordByte(c byte) bool { return byteClass[c]&(cLetter|cDigit|cHigh) != 0 || c == '_' }

// HoldsWhole reports whether a text holds a value, not as a part of a longer word
// or number.
func HoldsWhole(s, value string) bool {
	wordy := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	for from := 0; ; {
		i := strings.Index(s[from:], value)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+len(value):])
		if !(wordy(before) && wordy(first)) && !(wordy(after) && wordy(last)) {
			return true
		}
		from = i + 1
	}
}
