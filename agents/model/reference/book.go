package reference

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// Phrases are what the sentences of one case mean: to this model what its
// language is to a real one. They hold no label, and nothing says which of a
// slot's values is right.
type Phrases struct {
	// Turns are what the user says before the task.
	Turns []Turn
	// Task asks for the task; its zero value is a case that has none.
	Task Turn
	// Calls do the task. {name} in an argument stands for the slot's value.
	Calls []model.Call
	// Asks is the slot that a question asks for; such a task has no calls.
	Asks  string
	Slots []Slot
	Steps []Step
	Rules []Rule
	// Skill is the name under which what is learned is kept as a procedure.
	Skill string
}

// Turn is what the user says, and what that asks the agent to read.
type Turn struct {
	Words string
	Reads []memory.Medium
	Keeps bool // asks to keep what the content says
}

// Slot is a value that a task leaves open.
type Slot struct {
	Name   string
	Type   world.Type
	Called string // what a person calls it
	// Values are all that a sentence of the case may offer for it.
	Values []string
	// Looks finds it in the world, if anything does.
	Looks *model.Call
	// Says are sentences that stand for a value without holding it. Where there are
	// any, no other sentence offers one.
	Says map[string]string

	bare map[string]string // Says, by their bare words
}

// Step is something that a sentence adds to the task, or takes out of it.
type Step struct {
	Says         []string // the sentence, in its wordings
	Calls, Drops []model.Call

	bare []string // of Says
}

// Rule is when a sentence holds, and what it asks of whoever meets it.
type Rule struct {
	Says  []string // the sentence, in its wordings
	Since string   // the day from which it holds; "" is at once
	// Repeats asks that the sentence be noted again.
	Repeats bool

	bare []string // of Says
}

// Book is a phrase book: the phrases of all cases of a data set. It is immutable
// once it is used.
type Book struct {
	turns map[string][]*Phrases
	tasks map[string]*Phrases
	under *Book              // that knows what this one does not; may be nil
	known *text.Memo[*lines] // what phrases know of texts; nil reads anew
	seen  *text.Memo[*sight] // what stands in a message
	// replies are those of every model that reads by the book.
	replies *replies
}

// NewBook returns a book of the given phrases. Cases with one request share their
// phrases: what a sentence means does not hang on which of them it stands in.
func NewBook(all []*Phrases) *Book {
	b := &Book{turns: map[string][]*Phrases{}, tasks: map[string]*Phrases{}, known: text.New[*lines](memoBytes),
		seen: text.New[*sight](memoBytes), replies: newReplies()}
	for _, p := range all {
		b.add(p)
	}
	return b
}

// with returns a book that knows the phrases of one more case. It costs little.
func (b *Book) with(p *Phrases) *Book {
	over := &Book{turns: map[string][]*Phrases{}, tasks: map[string]*Phrases{}, under: b, seen: b.seen}
	was := b.task(spoken(p.Task.Words))
	if was == nil {
		over.add(p)
		return over
	}
	q := *was
	q.Slots, q.Steps, q.Rules = slices.Clone(q.Slots), slices.Clone(q.Steps), slices.Clone(q.Rules)
	over.tasks[spoken(q.Task.Words)] = &q
	q.hear(p.Turns)
	q.learn(p)
	for _, t := range q.Turns {
		all := slices.Clone(b.spokenIn(t.Words))
		if i := slices.Index(all, was); i >= 0 {
			all[i] = &q
		} else if !slices.Contains(all, &q) {
			all = append(all, &q)
		}
		over.turns[t.Words] = all
	}
	return over
}

// task are the phrases of a request, or nil.
func (b *Book) task(words string) *Phrases {
	for ; b != nil; b = b.under {
		if p := b.tasks[words]; p != nil {
			return p
		}
	}
	return nil
}

// spokenIn are the phrases in whose write session a turn stands.
func (b *Book) spokenIn(words string) []*Phrases {
	for ; b != nil; b = b.under {
		if all := b.turns[words]; all != nil {
			return all
		}
	}
	return nil
}

// add takes in a case.
func (b *Book) add(p *Phrases) {
	q := b.tasks[spoken(p.Task.Words)]
	if q == nil {
		c := *p
		c.Turns, c.Slots, c.Steps, c.Rules = nil, nil, nil, nil
		q = &c
		if key := spoken(p.Task.Words); key != "" {
			b.tasks[key] = q
		}
	}
	q.hear(p.Turns)
	q.learn(p)
	for _, t := range p.Turns {
		if key := spoken(t.Words); !slices.Contains(b.turns[key], q) {
			b.turns[key] = append(b.turns[key], q)
		}
	}
}

// learn takes in another's slots and steps.
func (p *Phrases) learn(o *Phrases) {
	for _, s := range o.Slots {
		i := slices.IndexFunc(p.Slots, func(t Slot) bool { return t.Name == s.Name })
		if i < 0 {
			i = len(p.Slots)
			p.Slots = append(p.Slots, s)
		}
		t := &p.Slots[i]
		t.Values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Values, s.Values))))
		if len(s.Says) > 0 {
			t.bare = maps.Clone(t.bare)
			if t.bare == nil {
				t.bare = map[string]string{}
			}
			for says, v := range s.Says {
				t.bare[bareWords(says)] = v
			}
		}
	}
	for i, r := range o.Rules {
		if i == len(p.Rules) {
			p.Rules = append(p.Rules, Rule{Since: r.Since, Repeats: r.Repeats})
		}
		t := &p.Rules[i]
		t.Says = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Says, r.Says))))
		t.bare = bareAll(t.Says)
	}
	for i, s := range o.Steps {
		if i == len(p.Steps) {
			p.Steps = append(p.Steps, Step{Calls: s.Calls, Drops: s.Drops})
		}
		t := &p.Steps[i]
		t.Says = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Says, s.Says))))
		t.bare = bareAll(t.Says)
	}
}

func bareAll(says []string) (out []string) {
	for _, w := range says {
		out = append(out, bareWords(w))
	}
	return out
}

// spoken is how a turn is looked up: white space makes no difference.
func spoken(words string) string { return oneLine(words) }

func (p *Phrases) slot(name string) *Slot {
	for i := range p.Slots {
		if p.Slots[i].Name == name {
			return &p.Slots[i]
		}
	}
	return &Slot{Name: name}
}

// hear takes in another's turns, as they are looked up.
func (p *Phrases) hear(turns []Turn) {
	p.Turns = slices.Clip(p.Turns) // others may share it
	for _, t := range turns {
		t.Words = spoken(t.Words)
		p.Turns = append(p.Turns, t)
	}
}

func (p *Phrases) has(words string) bool {
	return slices.ContainsFunc(p.Turns, func(t Turn) bool { return t.Words == words })
}

func (p *Phrases) turn(words string) *Turn {
	for i := range p.Turns {
		if p.Turns[i].Words == words {
			return &p.Turns[i]
		}
	}
	return &p.Task
}

// knows reports whether a sentence means anything to the phrases: it holds the
// value of a slot or adds a step.
func (p *Phrases) knows(sentence string) bool {
	for i := range p.Slots {
		if p.Slots[i].offered(sentence) != "" {
			return true
		}
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.said(sentence) })
}

// offered is the slot's value that a text holds whole; the last one where it
// holds several.
func (s *Slot) offered(in string) string {
	best, at := "", -1
	if len(s.bare) > 0 {
		in = bareWords(in)
		for says, v := range s.bare {
			if i := strings.LastIndex(in, says); i > at {
				best, at = v, i
			}
		}
		return best
	}
	for _, v := range s.Values {
		if i := text.LastWhole(in, v); i > at {
			best, at = v, i
		}
	}
	return best
}

// said reports whether a text says the step in one of its wordings, whatever the
// marks between the words.
func (s *Step) said(in string) bool { return oneOf(s.bare, in) }

func oneOf(bare []string, in string) bool {
	in = bareWords(in)
	return slices.ContainsFunc(bare, func(w string) bool { return strings.Contains(in, w) })
}

// early reports whether a text says what does not hold yet on a day.
func (p *Phrases) early(in, day string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return day < r.Since && oneOf(r.bare, in) })
}

// repeats reports whether a text asks to be noted again.
func (p *Phrases) repeats(in string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Repeats && oneOf(r.bare, in) })
}

func bareWords(s string) string {
	return " " + strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ") + " "
}

// filled is a call with the slots' values in it; ok is false where one is missing.
func filled(c model.Call, values map[string]string) (model.Call, bool) {
	out := model.Call{Name: c.Name}
	ok := true
	for _, a := range c.Args {
		for rest := a.Value; ; {
			before, after, open := strings.Cut(rest, "{")
			name, tail, shut := strings.Cut(after, "}")
			if !open || !shut {
				break
			}
			v, known := values[name]
			ok = ok && known && v != ""
			a.Value = strings.ReplaceAll(a.Value, "{"+name+"}", v)
			_, rest = before, tail
		}
		out.Args = append(out.Args, a)
	}
	return out, ok
}

// slotsOf are the names of the slots that a call leaves open.
func slotsOf(c model.Call) []string {
	var out []string
	for _, a := range c.Args {
		for rest := a.Value; ; {
			_, after, open := strings.Cut(rest, "{")
			name, tail, shut := strings.Cut(after, "}")
			if !open || !shut {
				break
			}
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
			rest = tail
		}
	}
	return out
}

// Fill puts values into the calls that do a task.
func Fill(calls []model.Call, values map[string]string) []model.Call {
	var out []model.Call
	for _, c := range calls {
		c, _ = filled(c, values)
		out = append(out, c)
	}
	return out
}

// Merge adds the steps' calls to those of a task: to the call of the same tool, where
// there is one that leaves their arguments open, else as calls of their own. A list
// takes more items.
func Merge(calls, steps []model.Call) []model.Call {
	out := slices.Clone(calls)
	for _, s := range steps {
		i := slices.IndexFunc(out, func(c model.Call) bool { return c.Name == s.Name && joins(c, s) })
		if i < 0 {
			out = append(out, s)
			continue
		}
		c := model.Call{Name: out[i].Name, Args: slices.Clone(out[i].Args)}
		for _, a := range s.Args {
			j := slices.IndexFunc(c.Args, func(b model.Arg) bool { return b.Name == a.Name })
			switch {
			case j < 0:
				c.Args = append(c.Args, a)
			case c.Args[j].Value != a.Value:
				c.Args[j].Value += ", " + a.Value
			}
		}
		out[i] = c
	}
	return out
}

// Drop takes calls out of those of a task.
func Drop(calls, omits []model.Call) []model.Call {
	if len(omits) == 0 {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c model.Call) bool {
		return slices.ContainsFunc(omits, func(o model.Call) bool { return o.Name == c.Name && slices.Equal(o.Args, c.Args) })
	})
}

// joins reports whether a step's arguments can be put into a call.
func joins(c, step model.Call) bool {
	return !slices.ContainsFunc(step.Args, func(a model.Arg) bool {
		had := c.Get(a.Name)
		return had != "" && had != a.Value && !listed(c.Name, a.Name)
	})
}

// listed reports whether an argument of a tool is a list.
func listed(tool, arg string) bool {
	t := world.Find(tool)
	return t != nil && slices.ContainsFunc(t.Params, func(p model.Param) bool {
		_, list := world.Type(p.Format).Element()
		return p.Name == arg && list
	})
}
