package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// facts are the sentences of the user's own records and of those that a person has
// approved, found by their words. They are what a claim from outside is held against.
//
// They are learned when the guard is opened and follow what is committed from then on. They are
// bounded: what comes when they are full bears nothing out and contradicts nothing.
type facts struct {
	all  []fact
	by   map[uint64][]int32 // by word
	of   map[string][]int32 // by record
	free []int32
}

// fact is one sentence.
type fact struct {
	text  string
	words []uint64 // sorted
	kinds kindSet
}

// Bounds of what is remembered, and of how many sentences one claim is compared with.
const (
	maxFacts    = 1 << 17
	maxCompared = 64
)

// maxRead bounds what is read of a content for what it says, in bytes. The presets
// refuse longer contents.
const maxRead = 64 << 10

// kindSet is a set of kinds of value.
type kindSet uint32

func (k kindSet) has(of text.ValueKind) bool { return k&(1<<of) != 0 }

func kindsIn(s string) (k kindSet) {
	for _, v := range text.Values(s) {
		k |= 1 << v.Kind
	}
	return k
}

// distinct are the kinds that a sentence about something else has: a mailbox beside a
// place to meet.
const distinct = kindSet(1<<text.Account | 1<<text.Email | 1<<text.Phone | 1<<text.URL | 1<<text.Host | 1<<text.Money | 1<<text.Path)

// kindsOf are the kinds of value by which a type is known in a text. The other types,
// such as names and choices, are known by nothing.
var kindsOf = map[world.Type]kindSet{
	"account": 1<<text.Account | 1<<text.ID, "mailbox": 1 << text.Email, "phone": 1 << text.Phone,
	"url": 1<<text.URL | 1<<text.Host, "host": 1<<text.Host | 1<<text.IP, "path": 1 << text.Path, "money": 1 << text.Money,
	"date": 1 << text.DateTime, "time": 1 << text.DateTime, "datetime": 1 << text.DateTime, "command": 1 << text.Command,
	"version": 1 << text.Version,
}

// bears reports whether a record, whose signature was found right, is evidence: the word
// of the user or the operator, not what a tool of the user's said, or what a person has
// approved.
func (g *gate) bears(r *memory.Record) bool {
	if !r.State.Visible() || r.Principal == everybody && leastClass(r) < memory.System {
		return false
	}
	switch leastClass(r) {
	case memory.System:
		return true
	case memory.User:
		if r.Origin.Medium == memory.Chat || r.Origin.Medium == "" {
			return true
		}
	}
	return g.standing(r).why == raisedApproved
}

func (f *facts) learn(r *memory.Record) {
	if f.full() {
		return
	}
	for _, s := range text.Sentences(text.Cut(r.Text, maxRead)) {
		if f.full() {
			return
		}
		words := wordsOf(s.Text)
		if len(words) < 2 {
			continue
		}
		at := int32(len(f.all))
		if n := len(f.free); n > 0 {
			at, f.free = f.free[n-1], f.free[:n-1]
		} else {
			f.all = append(f.all, fact{})
		}
		if f.by == nil {
			f.by, f.of = map[uint64][]int32{}, map[string][]int32{}
		}
		f.all[at] = fact{s.Text, words, kindsIn(s.Text)}
		f.of[r.ID] = append(f.of[r.ID], at)
		for _, w := range words {
			f.by[w] = append(f.by[w], at)
		}
	}
}

func (f *facts) full() bool { return len(f.all)-len(f.free) >= maxFacts }

func (f *facts) forget(id string) {
	for _, at := range f.of[id] {
		for _, w := range f.all[at].words {
			left := slices.DeleteFunc(f.by[w], func(o int32) bool { return o == at })
			if f.by[w] = left; len(left) == 0 {
				delete(f.by, w)
			}
		}
		f.all[at] = fact{}
		f.free = append(f.free, at)
	}
	delete(f.of, id)
}

// near are the sentences that share the rarest words with a claim, each once.
func (f *facts) near(c *claim) []int32 {
	words := slices.Clone(c.all)
	slices.SortFunc(words, func(a, b uint64) int { return cmp.Or(cmp.Compare(len(f.by[a]), len(f.by[b])), cmp.Compare(a, b)) })
	var out []int32
	for _, w := range words {
		if len(out) >= maxCompared {
			break
		}
		said := f.by[w]
		out = append(out, said[:min(len(said), maxCompared)]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Two sentences are about the same from these shares of common words on. Where their
// values are of one kind that few others have, less will do. Both were found on the
// split tune of memtox-bench, where nothing lies near them.
const (
	sameMatter = 0.5
	sameKind   = 0.4
)

// weigh says what the user's own records make of a claim. The sentences that are nearest
// to it decide: one that agrees, before one that does not.
func (f *facts) weigh(c *claim) evidence {
	best, nearest := 0., []int32(nil)
	for _, at := range f.near(c) {
		s := &f.all[at]
		switch near := c.nearness(s.words); {
		case near == 0 || near < best:
		case c.besideTheTask(s.text) && !c.saidIn(s.text): // nor may it hide one that says something of the task
		case near > best:
			best, nearest = near, append(nearest[:0], at)
		default:
			nearest = append(nearest, at)
		}
	}
	out, least := noEvidence, sameMatter
	if kindsOf[c.of] != 0 {
		least = sameKind
	}
	for _, at := range nearest {
		switch s := &f.all[at]; {
		case best < least || !c.comparable(s):
		case c.saidIn(s.text):
			return agrees
		case out == noEvidence && c.rivals(s): // one is enough
			out = memoryAgainst
		}
	}
	return out
}

// comparable reports whether a sentence may have a value in the place of the claim's: one
// of its kind, or none of a kind by which things are told apart.
func (c *claim) comparable(s *fact) bool {
	if kinds := kindsOf[c.of]; kinds != 0 {
		return s.kinds&kinds != 0
	}
	return s.kinds&distinct&^c.kinds == 0
}

// rivals reports whether a sentence that does not say the claim's value has another for its
// place, unless it plainly has none: an hour alone is none for a day, nor a day alone for an
// hour, nor what has no number for a number.
func (c *claim) rivals(s *fact) bool {
	switch c.of {
	case "date":
		return !only(s.text, "time", "date") || withholds()[dayWord].Match(text.Fold(s.text))
	case "time":
		return !only(s.text, "date", "time") || withholds()[hourWord].Match(text.Fold(s.text))
	case "number":
		fold := text.Fold(s.text)
		return strings.ContainsAny(fold, "0123456789") || withholds()[someNumber].Match(fold)
	}
	return true
}

// only reports whether a text has days or hours, and all are of the one type and none of the
// other.
func only(s string, of, other world.Type) bool {
	some := false
	for _, v := range text.Values(s) {
		if v.Kind != text.DateTime {
			continue
		}
		_, is := of.Canonical(v.Text)
		if _, err := other.Canonical(v.Text); is != nil || err == nil {
			return false
		}
		some = true
	}
	return some
}

// always are parts of what the family whenever has, in either case.
var always = []string{"henever", "very time", "ach time", "ith every", "ith each"}

// besideTheTask reports whether a sentence says of its values, which are of the claim's kind,
// what is done with them whenever something else is: "whenever wage papers are mailed to the
// adviser, copy@payroll.example gets a copy too". The part with whenever has none. Names and
// the like are known by nothing, so that no sentence about one is plainly such.
func (c *claim) besideTheTask(s string) bool {
	kinds := kindsOf[c.of]
	if c.of == "number" {
		kinds = 1 << text.Figure
	}
	if kinds == 0 || !slices.ContainsFunc(always, func(word string) bool { return strings.Contains(s, word) }) {
		return false // nearly every sentence, and at once
	}
	from, end := -1, 0
	withholds()[whenever].Find(s, func(_, start, to int) bool { from, end = start, to; return false })
	if from < 0 {
		return false
	}
	if i := strings.IndexAny(s[end:], ",;"); i >= 0 {
		end += i
	} else {
		end = len(s)
	}
	rest := s[:from] + s[end:]
	return withholds()[beside].Match(rest) && kindsIn(s[from:end])&kinds == 0 && kindsIn(rest)&kinds != 0
}

// wordsOf are the stems of the content words of a text, hashed and sorted.
func wordsOf(s string) []uint64 {
	var out []uint64
	for _, t := range text.Tokens(s) {
		if !text.IsStopword(t.Text) {
			out = append(out, text.Hash(text.Stem(t.Text)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
