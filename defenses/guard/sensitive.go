package guard

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

//go:embed sensitive.yaml
var sensitiveYAML []byte

// The families of sensitive data.
const (
	SecretFamily   = "secret"        // what opens a door: keys, tokens, passwords
	PersonalFamily = "personal_data" // what belongs to a person: cards, accounts, numbers
)

// maxSensitive bounds the findings of one content. Beyond it the last finding is
// about all of it.
const maxSensitive = 64

// sensitiveData finds secrets and personal data, wherever they stand and however
// they are wrapped, and in the same pass decoys. Notes never hold what was found.
func sensitiveData(g *gate, s *subject) {
	if s.Op == memory.Remove {
		return
	}
	defer g.bracketed(s)
	n := len(s.findings)
	layers := s.layers()
	for i := range layers {
		l := &layers[i]
		g.secrets.find(l, func(k *sensitive, start, end int) bool {
			if len(s.findings)-n >= maxSensitive {
				s.add(k.finding(0, 0)) // too many to name: all of it
				return false
			}
			start, end = l.place(start, end)
			for _, f := range s.findings[n:] {
				if f.Start <= start && end <= f.End {
					return true
				}
			}
			s.add(k.finding(start, end))
			return true
		})
	}
}

// sensitive is one kind of sensitive data: an entry of sensitive.yaml, which describes
// the fields. Without a family and a severity it is a secret, and high.
type sensitive struct {
	ID, What string
	Family   string
	Severity Severity
	Near     []string
	Alone    bool
	Follows  string
	Within   int
	Soon     string // stands within the first soon bytes of what follows, or it is not looked at
	Check    string

	follows *regexp.Regexp
	check   func(found string, folded bool) bool
}

func (k *sensitive) finding(start, end int) Finding {
	if k == &decoy {
		return decoyFinding(start, end)
	}
	f := found(SensitiveDataCheck, k.Severity, k.ID, "the content holds "+k.What)
	f.Family, f.Start, f.End = k.Family, start, end
	return f
}

// checks are what a kind can ask of what was found besides its form.
var checks = map[string]func(found string, folded bool) bool{
	"":       func(string, bool) bool { return true },
	"digit":  func(s string, _ bool) bool { return strings.ContainsAny(s, "0123456789") },
	"varied": func(s string, _ bool) bool { return varied(s) },
	"value":  func(s string, _ bool) bool { return varied(s) && !strings.Contains(s, "://") },
	// Where the text was folded the first part can no longer be read.
	"header": func(s string, folded bool) bool { return folded || header(s) },
}

type sensitiveFile struct {
	Kinds []sensitive
	IBANs map[string]int
}

var sensitiveKinds = text.Lists[sensitiveFile]("guard: sensitive.yaml", sensitiveYAML)

// kind is the kind of an id.
func kind(id string) *sensitive {
	all := sensitiveKinds().Kinds
	return &all[slices.IndexFunc(all, func(k sensitive) bool { return k.ID == id })]
}

// UnmarshalYAML fills in what a kind leaves out.
func (k *sensitive) UnmarshalYAML(n *yaml.Node) error {
	type plain sensitive
	k.Family, k.Severity, k.Within = SecretFamily, High, 64<<10
	if err := n.Decode((*plain)(k)); err != nil {
		return err
	}
	if k.check = checks[k.Check]; k.check == nil {
		return fmt.Errorf("%s: there is no check %q", k.ID, k.Check)
	}
	var err error
	k.follows, err = regexp.Compile("^(?:" + k.Follows + ")")
	return err
}

// finder finds sensitive data and decoys. It never changes.
type finder struct {
	words *text.Phrases
	kinds []*sensitive // by phrase
}

// newFinder returns a finder that looks for decoys in the same pass.
func newFinder(decoys []string) *finder {
	f := new(finder)
	var phrases []text.Phrase
	add := func(k *sensitive, near []string) {
		for _, s := range near {
			phrases = append(phrases, text.Phrase{Text: s})
			f.kinds = append(f.kinds, k)
		}
	}
	all := sensitiveKinds().Kinds
	for i := range all {
		add(&all[i], all[i].Near)
	}
	add(&decoy, decoys)
	f.words = text.CompilePhrases(phrases)
	return f
}

// Hostile text repeats a word many times, and an expression that runs on from each of
// them takes for ever: soon bounds how far a search for Soon goes.
const (
	soon      = 4 << 10
	mostAgain = 16 // tries in one run of letters, digits, hyphens and underscores
)

func tokenRune(r rune) bool { return r == '-' || r == '_' || r < 0x80 && alnum(byte(r)) }

// find calls yield with each place of sensitive data in a layer until yield
// returns false.
func (f *finder) find(l *layer, yield func(k *sensitive, start, end int) bool) {
	s, mapped := l.Quick()
	on, until := true, 0
	give := func(k *sensitive, start, end int) bool {
		if start < until || !on {
			return on // within what was found before
		}
		until = end
		if !mapped {
			start, end = l.Back(start, end)
		}
		on = yield(k, start, end)
		return on
	}
	last, again := 0, 0 // where the expression was tried last, and how often in this run of token characters
	f.words.Find(s, func(id, start, end int) bool {
		k := f.kinds[id]
		switch {
		case k == &decoy:
			until = 0 // whatever else it is
			return give(k, start, end)
		// What is found begins with the word, unless the expression has a group.
		case start < until && (k.Alone || k.follows.NumSubexp() == 0), k.Alone && !begins(s, start),
			!strings.Contains(s[end:min(len(s), end+soon)], k.Soon):
			return on
		}
		if again++; strings.ContainsFunc(s[min(last, start):start], func(r rune) bool { return !tokenRune(r) }) {
			again = 0
		}
		if last = start; k.Alone && again > mostAgain {
			return on
		}
		m := k.follows.FindStringSubmatchIndex(s[end:min(len(s), end+k.Within)])
		if m == nil {
			return on
		}
		from, to := start, end+m[1]
		if len(m) > 2 {
			from, to = end+m[2], end+m[3]
		}
		if !k.check(s[from:to], !mapped) {
			return on
		}
		return give(k, from, to)
	})
	if on && (l.digits >= 9 || !mapped) { // folding brings digits of other scripts
		numbers(s, func(k *sensitive, start, end int) bool {
			until = 0
			return give(k, start, end)
		})
	}
}

func alnum(c byte) bool  { return digit(c) || letter(c) }
func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// begins reports whether a token can begin at s[i]: no letter or digit stands
// before it.
func begins(s string, i int) bool { return i == 0 || !alnum(s[i-1]) }

// varied reports whether a value looks made rather than written: letters beside
// digits, or beside signs within.
func varied(s string) bool {
	letters, digits := 0, 0
	for i := range len(s) {
		if digit(s[i]) {
			digits++
		} else if letter(s[i]) {
			letters++
		}
	}
	return letters > 0 && digits > 0 ||
		digits+letters > 0 && len(s)-digits-letters > 1 && strings.ContainsAny(s, "!@#$%^&*")
}

// header reports whether the first part of a web token says how it is signed.
func header(token string) bool {
	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	var fields map[string]any
	return err == nil && json.Unmarshal(raw, &fields) == nil && (fields["alg"] != nil || fields["enc"] != nil)
}
