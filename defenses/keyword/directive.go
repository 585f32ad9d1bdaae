package keyword

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// A directive tells whoever reads a text to do something. It is read by its form and not by
// its wording: a verb in a mood that tells the reader to act, what the verb is done to, and
// whether it is to be done from now on or on a condition. A statement that somebody does or
// did the same is none, nor is a question, nor that something is not to be done.

// The directives that are read.
const (
	weakensControl    = iota // what protects is put out of force
	givesAway                // what is secret, or all there is, goes to somebody outside
	covertAct                // it is done so that nobody notices
	hostileAct               // what nobody asks for in good faith
	standingDirective        // a condition, an act, and a value that memory brings
	directiveKinds
)

var directiveThreats = [directiveKinds]Threat{
	weakensControl:    {"weakens_control", PromptInjection, Relaxed},
	givesAway:         {"gives_away", Exfiltration, Relaxed},
	covertAct:         {"covert_act", PromptInjection, Relaxed},
	hostileAct:        {"hostile_act", PromptInjection, Relaxed},
	standingDirective: {"standing_directive", PromptInjection, Strict},
}

//go:embed directive.yaml
var directiveYAML []byte

// list is words with commas between them.
type list []string

func (l *list) UnmarshalText(b []byte) error {
	for w := range strings.SplitSeq(string(b), ",") {
		var words []string
		for _, t := range text.Tokens(text.Fold(w)) {
			words = append(words, t.Text)
		}
		if n := len(words); n == 0 || n > 2 {
			return fmt.Errorf("%q: one word or two", w)
		}
		*l = append(*l, strings.Join(words, " "))
	}
	return nil
}

// What a word is. A verb in its plain form is base, in its past form done.
type role uint64

const (
	give role = 1 << iota
	weaken
	move
	act
	favour
	base
	done
	control
	secret
	bulk
	holding
	outside
	standing
	trigger
	covert
	lead
	obliged
	be
	modal
	deny
	gone
	power
	much
	empower
	unchecked
	person
	speaks
	without
	crime
	weapon
	joins
	reader
	except
	asks
	value // an address, an account, a name of a host or file
	verb  = give | weaken | move | act | favour | empower | crime
)

// roleOf has the lists of directive.yaml.
var roleOf = map[string]role{"give": give | base, "weaken": weaken | base, "move": move | base, "act": act | base,
	"favour": favour | base, "empower": empower | base, "crime": crime | base, "control": control, "secret": secret,
	"bulk": bulk, "holding": holding, "outside": outside, "standing": standing, "trigger": trigger, "covert": covert,
	"lead":    lead,
	"obliged": obliged, "modal": modal, "deny": deny, "gone": gone, "be": be, "power": power, "much": much,
	"unchecked": unchecked, "person": person, "speaks": speaks, "without": without, "weapon": weapon, "joins": joins,
	"reader": reader,
	"except": except, "asks": asks}

var directiveLists = text.Lists[map[string]list]("keyword: directive.yaml", directiveYAML)

// word is what a word is, alone and with a second one behind it.
type word struct {
	alone role
	with  map[string]role
}

var directiveRoles = sync.OnceValue(func() map[string]*word {
	r := map[string]*word{}
	add := func(words string, what role) {
		first, second, two := strings.Cut(words, " ")
		w := r[first]
		if w == nil {
			w = &word{with: map[string]role{}}
			r[first] = w
		}
		if two {
			w.with[second] |= what
		} else {
			w.alone |= what
		}
	}
	for name, words := range *directiveLists() {
		what := roleOf[name]
		if what == 0 {
			panic("keyword: directive.yaml: unknown list " + name) // it is part of the program
		}
		for _, w := range words {
			add(w, what)
			if what&base != 0 {
				first, rest, _ := strings.Cut(w, " ")
				for _, form := range pastForms(first) {
					add(strings.TrimSpace(form+" "+rest), what&^base|done)
				}
			}
		}
	}
	return r
})

// pastForms are the forms that a verb may have behind "be".
func pastForms(v string) []string {
	switch v {
	case "send":
		return []string{"sent"}
	case "pay":
		return []string{"paid"}
	case "steal":
		return []string{"stolen"}
	case "set", "run", "put":
		return nil
	case "show":
		return []string{"shown"}
	case "tell":
		return []string{"told"}
	}
	switch last := v[len(v)-1]; {
	case last == 'e':
		return []string{v + "d"}
	case last == 'y' && !strings.ContainsRune("aeiou", rune(v[len(v)-2])):
		return []string{v[:len(v)-1] + "ied"}
	default:
		return []string{v + "ed", v + string(last) + "ed"}
	}
}

// maxSentence bounds a sentence, in bytes. A longer one is read in parts.
const maxSentence = 4096

// reading reads one text after the other and keeps its buffers between them.
type reading struct {
	toks []text.Token
	is   []role
}

// directives finds the first place of each kind of directive in a text.
func (b *reading) directives(s string) (found [directiveKinds]span) {
	r := directiveRoles()
	for from := 0; from < len(s); {
		to := sentenceEnd(s, from)
		b.toks = text.AppendTokens(b.toks[:0], s[from:to])
		d := sentence{s: s[from:to], at: from, toks: b.toks, is: b.is[:0], found: &found}
		for i := range d.toks {
			t := &d.toks[i]
			var what role
			if w := r[t.Text]; w != nil {
				if what = w.alone; len(w.with) > 0 && i+1 < len(d.toks) {
					what |= w.with[d.toks[i+1].Text]
				}
			}
			if i > 0 && valueAt(d.s, d.toks, i) {
				what |= value
			}
			d.is = append(d.is, what)
			d.all |= what
		}
		if d.all&(verb|gone) != 0 {
			d.read()
		}
		b.is, from = d.is, to
		clear(b.toks) // keep no text alive
	}
	return found
}

// sentenceEnd is where the sentence ends that begins at from: behind a stop that is not
// part of an address or a number, or at the end of a line.
func sentenceEnd(s string, from int) int {
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n', c == ';':
			return i + 1
		case c == '.' || c == '!' || c == '?':
			if i+1 == len(s) || classOf(s[i+1]) == 0 {
				return i + 1
			}
		case i-from > maxSentence && classOf(c) == 0:
			return i + 1
		}
		if i-from > 2*maxSentence {
			return i + 1
		}
	}
	return len(s)
}

// classOf is 0 for what is part of no word.
func classOf(c byte) byte {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || c == '_' || c == '/' {
		return 1
	}
	return 0
}

// valueAt reports whether a word is part of what an attacker would have to change: an
// address, a host, a path, an account.
func valueAt(s string, toks []text.Token, i int) bool {
	t, p := &toks[i], &toks[i-1]
	switch n := t.End - t.Start; {
	case t.Kind == text.Mixed && n >= 6, t.Kind == text.Number && n >= 8:
		return true // an account, a wallet
	case t.Kind != text.Word || n < 2 || p.Kind == text.Number:
		return false
	}
	switch s[p.End:t.Start] {
	case "@", "://", ".":
		return true
	case " /", " ~/":
		return true
	}
	return false
}

// sentence is one that is being read.
type sentence struct {
	s     string
	at    int // where it begins
	toks  []text.Token
	is    []role
	all   role
	marks int  // conditions
	told  bool // by a verb before
	not   bool // to do it
	found *[directiveKinds]span
}

func (d *sentence) mark(kind, from, to int) {
	if d.found[kind].end == 0 {
		d.found[kind] = span{d.at + d.toks[from].Start, d.at + d.toks[min(to, len(d.toks)-1)].End}
	}
}

// within returns the first word after i, at most n on, that is one of what, or -1.
func (d *sentence) within(i, n int, what role) int {
	for j := i + 1; j < len(d.is) && j <= i+n; j++ {
		if d.is[j]&what != 0 {
			return j
		}
	}
	return -1
}

// clause reports whether a clause begins with word i. Within an address or a call none does.
func (d *sentence) clause(i int) bool {
	if end := d.toks[i].End; strings.HasPrefix(d.s[end:], "(") || strings.HasPrefix(d.s[end:], ".") && i+1 < len(d.toks) &&
		d.toks[i+1].Start == end+1 {
		return false
	}
	if i == 0 {
		return true
	}
	between := d.s[d.toks[i-1].End:d.toks[i].Start]
	return strings.ContainsAny(between, ",:;()[]{}\"“”—–>*#`|'") && !strings.HasSuffix(between, "/") &&
		!strings.HasSuffix(between, ".")
}

// tells reports whether the verb at i tells the reader to do it, and whether not to.
func (d *sentence) tells(i int) (tells, not bool) {
	if d.is[i]&base != 0 {
		switch {
		case d.clause(i):
			return true, false
		case i == 0:
		case d.is[i-1]&deny != 0:
			return true, true
		case i > 1 && d.toks[i-1].Text == "you" && d.is[i-2]&asks != 0: // "can you recommend"
		case d.is[i-1]&lead != 0:
			return true, i > 1 && d.is[i-2]&deny != 0
		case d.is[i-1]&joins != 0:
			return d.told, d.not
		case d.is[i-1]&modal != 0 && i > 1 && d.is[i-2]&reader != 0:
			return true, false
		case i > 1 && d.is[i-2]&standing != 0, i > 2 && d.is[i-3]&standing != 0 && d.toks[i-1].Text == "on":
			return true, false // "by default pay", "from now on pay"
		case d.toks[i-1].Text == "to" && i > 1 && d.is[i-2]&obliged != 0:
			return true, i > 2 && d.is[i-3]&deny != 0
		}
	}
	if d.is[i]&done != 0 && i > 1 { // "must be forwarded", "are to be always sent"
		j := i - 1
		if d.toks[j].Text != "be" && d.is[j]&(standing|covert|lead) != 0 {
			j--
		}
		if j > 0 && d.toks[j].Text == "be" {
			return d.is[j-1]&modal != 0, d.is[j-1]&deny != 0
		}
	}
	return false, false
}

func (d *sentence) read() {
	for i, what := range d.is {
		if what&(standing|trigger) != 0 && (i == 0 || d.is[i-1]&(standing|trigger) == 0) {
			d.marks++
		}
	}
	valued, armed := d.all&value != 0, -1
	if d.all&trigger != 0 && d.all&person != 0 && d.all&speaks != 0 {
		armed = d.armed()
	}
	for i := range d.is {
		what := d.is[i]
		if what&control != 0 {
			if j := d.within(i, 4, gone); j > 0 && d.within(i, j-i, be) > 0 {
				d.mark(weakensControl, i, j)
			}
		}
		if what&verb == 0 {
			continue
		}
		tells, not := d.tells(i)
		if tells {
			not = not && d.within(i, 20, except) < 0 // "send it to nobody but box@x.example"
			d.told, d.not = true, not
		}
		if !tells || not {
			continue
		}
		if j := d.within(i, 5, control); what&weaken != 0 && j > 0 {
			d.mark(weakensControl, i, j)
		}
		if j := d.within(i, 3, much); what&empower != 0 && j > 0 {
			if k := d.within(j, 2, power); k > 0 {
				d.mark(weakensControl, i, k)
			}
		}
		if j := d.within(i, 12, without); j > 0 && d.within(j, 2, control|unchecked) > 0 {
			d.mark(weakensControl, i, j+1)
		}
		if what&crime != 0 || what&act != 0 && d.within(i, 3, weapon) > 0 {
			d.mark(hostileAct, i, i+2)
		}
		if what&favour != 0 && (d.within(i, 14, standing) > 0 || i > 0 && d.is[i-1]&standing != 0) {
			d.mark(standingDirective, i, i+1)
		}
		if i > 0 && d.is[i-1]&standing != 0 && d.marks > 1 {
			d.mark(standingDirective, i-1, i)
		}
		if what&(give|act) != 0 {
			j := d.within(i, 8, secret)
			k := d.within(i, 6, holding)
			if k > 0 && d.within(i, k-i, bulk) < 0 {
				k = -1
			}
			to := d.within(i, 20, outside|value)
			switch {
			case what&give != 0 && j > 0 && (to > 0 || d.within(i, j-i, bulk) > 0):
				d.mark(givesAway, i, max(j, to))
			case what&give != 0 && k > 0 && to > k:
				d.mark(givesAway, i, to)
			}
		}
		if d.all&covert != 0 && what&(give|move|act) != 0 {
			for j := max(0, i-2); j < min(len(d.is), i+10); j++ {
				if d.is[j]&covert != 0 {
					d.mark(covertAct, min(i, j), max(i, j))
					break
				}
			}
		}
		if d.all&(standing|trigger) != 0 && valued && what&(give|move|act|favour) != 0 {
			if j := d.within(i, 24, value); j > 0 {
				d.mark(standingDirective, i, j)
			}
		}
		if armed > 0 && i > armed {
			d.mark(standingDirective, armed, i)
		}
	}
}

// armed returns where a condition ends that somebody comes to the agent with something,
// or -1: "when I ask about hotels".
func (d *sentence) armed() int {
	for i := range d.is {
		if d.is[i]&trigger != 0 {
			if j := d.within(i, 4, person); j > 0 {
				if k := d.within(j, 3, speaks); k > 0 {
					return k
				}
			}
		}
	}
	return -1
}

// warns reports whether a text says that what was found in it is not to be done: "do not
// send your password to", but not "to nobody but".
func warns(s string, m text.Match) bool {
	r := directiveRoles()
	is := func(t text.Token, what role) bool { return r[t.Text] != nil && r[t.Text].alone&what != 0 }
	var room [32]text.Token
	before := text.AppendTokens(room[:0], text.Fold(s[max(0, m.Start-24):m.Start]))
	if n := len(before); n == 0 || !is(before[n-1], deny) {
		return false
	}
	for _, t := range text.AppendTokens(room[:0], text.Fold(s[m.Start:min(len(s), m.End+160)])) {
		if is(t, except) {
			return false
		}
	}
	return true
}
