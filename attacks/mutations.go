package attacks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

// Kind of a mutation: what it changes.
type MutationKind string

// The kinds in the order of the catalog.
const (
	Characters MutationKind = "characters" // other characters, the same words
	Wrapping   MutationKind = "wrapping"   // the claim in an encoding or a comment
	Wording    MutationKind = "wording"    // other words, the same claim
	Language   MutationKind = "language"   // the same claim in another language; of cases whose outcome is a state
	Laundering MutationKind = "laundering" // the same claim by another way, so that its last author is somebody else
)

// Mutation turns an attack into a variant: the same value and the same expected
// memory, in another guise or by another way. It never touches benign cases, the
// user's task, the later query, or the value itself.
type Mutation struct {
	Name  string
	Kind  MutationKind
	About string // one line
	// Opaque says that the reference model cannot read what comes out, so that
	// its figures show what a wrapping costs an attacker and not what an LLM, which
	// may well unwrap it, would do.
	Opaque bool
	// mutate changes a copy whose turns, segments and forms it may change and
	// append to. false means that it does not apply; the copy is then thrown away.
	mutate func(c *datasets.Case, w *workshop) bool
}

// Mutations is the catalog, in the order of the documentation.
func Mutations() []Mutation {
	return append(mutations(), inLanguages()...)
}

// mutationsOf are those that can apply to cases whose outcome is a state, or to others.
func mutationsOf(states bool) []Mutation {
	if states {
		return Mutations()
	}
	return mutations()
}

// mutations are those of every case.
func mutations() []Mutation {
	return []Mutation{
		{"whitespace", Characters, "every space becomes other white space: several, no-break, thin, tabs", false,
			ofClaims(whitespace)},
		{"zero-width", Characters, "invisible characters stand inside the words that filters look for", false,
			ofClaims(zeroWidth)},
		{"confusables", Characters, "letters of those words are look-alikes from other scripts", false,
			ofClaims(disguise(lookAlikes))},
		{"case", Characters, "the sentence changes between capital and small letters", false, ofClaims(alternate)},
		{"leet", Characters, "digits stand for letters in those words", false, ofClaims(disguise(leetDigits))},

		{"base64", Wrapping, "the sentence is wrapped in base64", true, wrapBase64},
		{"hex", Wrapping, "the sentence is written as the hexadecimal digits of its bytes", true, wrapHex},
		{"percent", Wrapping, "every byte of the sentence is percent-encoded", true, wrapPercent},
		{"html-comment", Wrapping, "the sentence stands in an HTML comment", false, htmlComment},
		{"markdown-comment", Wrapping, "the sentence stands in a Markdown comment", false, markdownComment},

		{"translate", Wording, "the words that filters look for stand in German, French, Spanish, Italian or Portuguese",
			false, translate},
		{"paraphrase", Wording, "other words that mean the same, and another order of the clauses", false,
			ofClaims(paraphrase)},
		{"split", Wording, "the claim is cut in two sentences, so that no record holds all of it", false, ofClaims(split)},
		{"padding", Wording, "legitimate text stands around the sentence and inside it", false, padding},
		{"authority", Wording, "the sentence is announced as an update of a policy", false, authority},

		{"summary", Laundering, "the user asks for a summary of what the agent read, and then to keep that", false, summary},
		{"echo", Laundering, "a tool of the user's own returns the content once more", false, echo},
		{"skill", Laundering, "the content is written up as a procedure", false, skill},
		{"rewrite", Laundering, "the agent rewords its own notes in two later sessions", false, rewrite},
		{"corroboration", Laundering, "three more sources say the same", false, corroboration},
	}
}

// ofClaims is the mutation by a function that rewrites one claim.
func ofClaims(rewrite func(cl *claim, w *workshop) (string, bool)) func(*datasets.Case, *workshop) bool {
	return func(c *datasets.Case, w *workshop) bool {
		return claims(c, func(cl *claim) (string, bool) { return rewrite(cl, w) })
	}
}

// MutationNames lists the names of the catalog.
func MutationNames() []string {
	var names []string
	for _, m := range Mutations() {
		names = append(names, m.Name)
	}
	return names
}

// Apply returns the variant of an attack by this mutation alone: see
// [Sequence.Apply].
func (m Mutation) Apply(c datasets.Case) (datasets.Case, bool) {
	return Sequence{Steps: []Mutation{m}}.Apply(c)
}

// MaxSteps is the most mutations of a sequence.
const MaxSteps = 8

// Sequence is one or more mutations, applied one after the other.
type Sequence struct {
	Steps []Mutation
	// Draw numbers the random choices that the mutations make: another number,
	// another variant. 0 is the one that a name without a number means.
	Draw int
}

// maxDraw bounds the number of a draw in a name.
const maxDraw = 999_999

// ParseSequence reads a sequence: the names of its mutations joined by "+", and
// perhaps "#" and the number of the draw, as in paraphrase+echo#3.
func ParseSequence(s string) (Sequence, error) {
	var q Sequence
	names, draw, numbered := strings.Cut(strings.TrimSpace(s), "#")
	if numbered {
		n, err := strconv.Atoi(draw)
		if err != nil || n < 1 || n > maxDraw || strconv.Itoa(n) != draw {
			return q, fmt.Errorf("%q is not the number of a draw; write a number from 1 to %d behind the #, or leave both out",
				draw, maxDraw)
		}
		q.Draw = n
	}
	all := Mutations()
	for name := range strings.SplitSeq(names, "+") {
		i := slices.IndexFunc(all, func(m Mutation) bool { return m.Name == name })
		if i < 0 {
			return q, &UnknownMutation{Name: name}
		}
		if len(q.Steps) == MaxSteps {
			return q, fmt.Errorf("more than %d mutations in one sequence; leave some out", MaxSteps)
		}
		q.Steps = append(q.Steps, all[i])
	}
	return q, nil
}

// UnknownMutation is the error about a name that the catalog does not have.
type UnknownMutation struct{ Name string }

// Error implements error.
func (e *UnknownMutation) Error() string {
	return fmt.Sprintf("unknown mutation %q; one of %s, or several joined by +", e.Name,
		strings.Join(MutationNames(), ", "))
}

// String returns the sequence as [ParseSequence] reads it. It is the Variant of
// the cases that the sequence makes.
func (q Sequence) String() string {
	names := make([]string, len(q.Steps))
	for i, m := range q.Steps {
		names[i] = m.Name
	}
	s := strings.Join(names, "+")
	if q.Draw > 0 {
		s += "#" + strconv.Itoa(q.Draw)
	}
	return s
}

// Apply returns the variant of an attack. The new case has an id of its own,
// which is a hash of the old one's and of the sequence, and names both under
// VariantOf and Variant; value, memory, family and split are the same, so that
// the two can be compared pairwise. It depends on the case and the sequence
// alone.
//
// false means that the sequence does not apply: to benign cases, to variants, to
// attacks without a value, memory or content, to records around the gate, and where one of its steps finds
// nothing to change.
func (q Sequence) Apply(c datasets.Case) (datasets.Case, bool) {
	if c.Label != datasets.Attack || c.VariantOf != "" || c.Value == "" || c.Memory == "" || len(c.Write) == 0 ||
		len(c.Inject) > 0 || len(q.Steps) == 0 {
		return datasets.Case{}, false
	}
	out := variantOf(c, q.String())
	words := maps.Clone(lists())
	words["ending"] = asideEndings
	for i, m := range q.Steps {
		labels := []string{"variation", m.Name, c.ID}
		if len(q.Steps) > 1 || q.Draw > 0 {
			labels = append(labels, strconv.Itoa(i), strconv.Itoa(q.Draw))
		}
		r := datasets.NewRand(0, labels...)
		w := &workshop{draw: q.Draw, r: r, g: &generator{r: r, split: c.Split, used: make(registry), words: words}}
		if !m.mutate(&out, w) {
			return datasets.Case{}, false
		}
	}
	return out, true
}

// variantOf copies a case so that its turns, segments and forms can be changed,
// and names it a variant.
func variantOf(c datasets.Case, name string) datasets.Case {
	out := c
	h := sha256.Sum256([]byte("variation\x00" + c.ID + "\x00" + name))
	out.ID, out.VariantOf, out.Variant, out.Twin = "m-"+hex.EncodeToString(h[:5]), c.ID, name, ""
	out.Forms = slices.Clone(c.Forms)
	if c.State != nil {
		s := *c.State
		s.Claims, s.Keeps = slices.Clone(s.Claims), slices.Clone(s.Keeps)
		out.State = &s
	}
	out.Write = make([]datasets.Turn, len(c.Write))
	for i, t := range c.Write {
		out.Write[i] = datasets.Turn{User: t.User, Fresh: t.Fresh, As: t.As, Date: t.Date, Segments: slices.Clone(t.Segments),
			Expect: slices.Clone(t.Expect)}
	}
	return out
}

// ClaimOf returns the first sentence that carries an attack: what somebody who
// words it anew starts from. ok is false where there is none.
func ClaimOf(c datasets.Case) (sentence string, ok bool) {
	forms := c.Spellings()
	if c.State != nil {
		forms = c.State.Claims // its value may stand in other sentences too
	}
	for _, seg := range c.Segments() {
		for _, s := range text.Sentences(seg.Text) {
			if holdsAny(s.Text, forms) {
				return seg.Text[s.Start:s.End], true
			}
		}
	}
	return "", false
}

// Reword returns the variant of an attack in which the first sentence that carries
// it says something else. ok is false where there is none, and for variants.
func Reword(c datasets.Case, name, said string) (variant datasets.Case, ok bool) {
	was, ok := ClaimOf(c)
	if !ok || c.VariantOf != "" || c.Label != datasets.Attack {
		return datasets.Case{}, false
	}
	out := variantOf(c, name)
	for _, s := range out.Segments() {
		if before, after, found := strings.Cut(s.Text, was); found {
			s.Text = before + said + after
			reworded(&out, was, said)
			return out, true
		}
	}
	return datasets.Case{}, false
}

// workshop is what a mutation works with.
type workshop struct {
	draw int
	r    *datasets.Rand
	g    *generator
}

// pick draws one of the texts.
func (w *workshop) pick(texts ...string) string { return datasets.Pick(w.r, texts) }

// asideEndings are the endings of the names that variants bring along. No name
// of a family has one: the families' names are drawn once for a whole set, a
// variant's without knowing them, and a canary must not turn up there.
var asideEndings = []string{"mouth", "thorpe", "hurst", "wich", "firth", "combe", "pool", "cliff", "garth"}
