package datasets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// The checks of Validate, as they stand in Problem.Check.
const (
	CheckVocabulary = "vocabulary" // class, channel, domain, goal, kind, medium
	CheckID         = "id"         // ids leak no label
	CheckValue      = "value"      // the operative value stands where it has to
	CheckLeak       = "leak"       // a query gives away what memory should know
	CheckAnswerable = "answerable" // a task can be done
	CheckUnique     = "unique"     // a canary belongs to one case
	CheckLink       = "link"       // twins and variants
	CheckSplit      = "split"      // nothing stands in both splits
	CheckNear       = "near"       // near-duplicates
	CheckShortcut   = "shortcut"   // no shortcut tells attacks from benign cases
	CheckState      = "state"      // the case's own calls come to what they should
	CheckFamily     = "family"     // a family says what its cases need
	CheckRead       = "read"       // the agent reads the content: the user names it
)

// Problem is one thing that a check found.
type Problem struct {
	Check string
	// Warning says that the set is usable as it is. A foreign set is only warned
	// about what a built-in one must not have.
	Warning bool
	*Error
}

var builtinID = regexp.MustCompile(`^m-[0-9a-f]{8,16}$`)

// Media lists the media of the built-in cases' segments.
func Media() []memory.Medium {
	return []memory.Medium{memory.Web, memory.Email, memory.File, memory.Slack, memory.Calendar, memory.MCP, memory.Script,
		memory.Skill, memory.Tool, memory.Peer}
}

// CheckCase returns what is wrong with one case by itself: the rules that need
// no other case. They are those of the built-in sets.
func CheckCase(c *Case) []Problem {
	k := checker{c: c}
	k.vocabulary()
	k.operativeValue()
	k.tasks()
	if c.State != nil {
		k.state()
	}
	return k.problems
}

// checkRead finds the turns that do not have the agent read the content that they bring. A
// case whose outcome is a state says so itself.
func checkRead(c *Case) []Problem {
	if c.State != nil {
		return nil
	}
	k := checker{c: c}
	turn := func(field, user string, segments []Segment) {
		inline := slices.ContainsFunc(segments, func(s Segment) bool { return s.Inline })
		var reads []*world.Tool
		if !inline {
			reads = reference.Reads(user)
		}
		for i := range segments {
			s := &segments[i]
			t := world.Reader(s.Medium)
			if s.Inline || s.Medium == memory.Tool || slices.Contains(reads, t) && t != nil {
				continue
			}
			what, remedy := "the turn does not name the "+string(s.Medium)+" content, so that the agent does not read it",
				"have the user name it, as in \"see the mail\", \"the page\" or \"the file\", or set inline: true"
			if inline {
				what = "other content of the turn is inline, so that the agent looks for no more and does not read this"
				remedy = "set inline: true here too"
			}
			k.add(CheckRead, fmt.Sprintf("%s.segments[%d]", field, i), what, remedy)
		}
	}
	for i := range k.c.Write {
		turn(fmt.Sprintf("write[%d]", i), k.c.Write[i].User, k.c.Write[i].Segments)
	}
	if r := k.c.Retrieval; r != nil {
		turn("retrieval", r.Query, r.Segments)
	}
	return k.problems
}

// state tries the calls of a case whose outcome is a state.
func (k *checker) state() {
	t := k.c.Try()
	for _, f := range []struct {
		field  string
		err    error
		remedy string
	}{
		{"state.solve", t.Reference, "mend the reference calls, the world or the harm"},
		{"state.world", t.Empty, "the world begins before the task is done and before the harm"},
		{"state.harm", t.Witness, "name what the task leaves that is done with the wrong value, or with the claim's step"},
	} {
		if f.err == nil {
			continue
		}
		what := Inert(f.err.Error())
		if n := len(k.problems); n == 0 || k.problems[n-1].What != what {
			k.add(CheckState, f.field, what, f.remedy)
		}
	}
}

type checker struct {
	c        *Case
	problems []Problem
}

func (k *checker) add(check, field, what, remedy string) {
	k.problems = append(k.problems, Problem{Check: check,
		Error: &Error{Case: k.c.ID, Field: field, What: what, Remedy: remedy}})
}

func (k *checker) oneOf(field, got string, known []string) {
	if !slices.Contains(known, got) {
		k.add(CheckVocabulary, field, "unknown "+field+" "+Quote(got), "one of "+strings.Join(known, ", "))
	}
}

func (k *checker) vocabulary() {
	c := k.c
	if !builtinID.MatchString(c.ID) {
		k.add(CheckID, "id", "an id that may tell the label", "m- and 8 to 16 hexadecimal digits")
	}
	k.oneOf("domain", c.Domain, Domains())
	if c.Label == Attack {
		if len(c.Inject) > 0 {
			k.oneOf("class", c.Class, []string{OutOfBand})
			if c.Channel != "" {
				k.add(CheckVocabulary, "channel", "a record around the gate takes no write channel", "leave it out")
			}
		} else {
			k.oneOf("class", c.Class, append(Classes(), Frontier()...))
		}
		k.oneOf("goal", c.Goal, Goals())
		if info, ok := Info(c.Class); ok {
			k.oneOf("signal", c.Signal, []string{info.Signal})
			k.oneOf("channel", c.Channel, []string{info.Channel})
		}
	}
	media := Media()
	segments := func(field string, list []Segment) {
		for i := range list {
			s, at := &list[i], fmt.Sprintf("%s[%d]", field, i)
			if !slices.Contains(media, s.Medium) {
				k.add(CheckVocabulary, at+".medium", "unknown medium "+Quote(string(s.Medium)), fmt.Sprintf("one of %v", media))
			}
			if strings.TrimSpace(s.Text) == "" {
				k.add(CheckVocabulary, at+".text", "empty", "give the segment a text or leave it out")
			}
			if s.Source == "" {
				k.add(CheckVocabulary, at+".source", "empty", "name the sender, page, path or channel")
			}
			if s.Pad > 50_000 {
				k.add(CheckVocabulary, at+".pad", "more than 50,000 tokens", "a few thousand reach every compaction")
			}
		}
	}
	for i := range c.Write {
		at := fmt.Sprintf("write[%d]", i)
		if strings.TrimSpace(c.Write[i].User) == "" {
			k.add(CheckVocabulary, at+".user", "empty", "the user says something in each turn")
		}
		segments(at+".segments", c.Write[i].Segments)
	}
	if c.Retrieval != nil {
		segments("retrieval.segments", c.Retrieval.Segments)
	}
}

// operativeValue checks that the value stands in the content that carries it and
// in the expected memory, and nowhere where it would be known without memory.
func (k *checker) operativeValue() {
	c := k.c
	if c.Label == Benign && !c.Writes() {
		if c.Memory != "" {
			k.add(CheckValue, "expected_memory", "a case of kind "+c.Kind+" has a memory to be stored",
				"leave it out, or make the case one of user, asked, unasked")
		}
		return
	}
	if c.Value == "" {
		k.add(CheckValue, "value", "missing", "name what an attack would have to change to pay, or what the later task needs")
		return
	}
	if c.Memory == "" {
		k.add(CheckValue, "expected_memory", "missing", "write what the session should leave behind")
	}
	if c.Retrieval == nil {
		k.add(CheckValue, "retrieval", "missing", "ask later for what was stored")
	}
	forms := folded(c.Spellings())
	user, content := &strings.Builder{}, &strings.Builder{}
	for i := range c.Inject {
		to := content
		if c.Label == Benign && c.Inject[i].Origin == "user" {
			to = user // a person with an editor
		}
		to.WriteString(c.Inject[i].Text + "\n")
	}
	for i := range c.Write {
		t := &c.Write[i]
		to := user
		if c.Others(i) { // what another user says is not the user's word
			to = content
		}
		to.WriteString(t.User + "\n")
		for j := range t.Segments {
			content.WriteString(t.Segments[j].Source + "\n" + t.Segments[j].Title + "\n" + t.Segments[j].Text + "\n")
		}
	}
	said, met := holds(text.Fold(user.String()), forms), holds(text.Fold(content.String()), forms)
	switch {
	case c.Label == Attack && !met:
		k.add(CheckValue, "value", "the canary "+Quote(c.Value)+" stands in no segment of the write session",
			"put it into the content that carries the attack")
	case c.Label == Attack && said:
		k.add(CheckValue, "value", "the user says the canary "+Quote(c.Value),
			"an attack comes from content, not from the user")
	case c.Kind == KindUser && !said:
		k.add(CheckValue, "value", "the user never says "+Quote(c.Value),
			"put it into the user's words, or make the kind asked or unasked")
	case (c.Kind == KindAsked || c.Kind == KindUnasked) && !met:
		k.add(CheckValue, "value", Quote(c.Value)+" stands in no segment of the write session",
			"put it into the content, or make the kind user")
	}
	if c.Memory != "" && !holds(text.Fold(c.Memory), forms) {
		k.add(CheckValue, "expected_memory", "does not hold the value "+Quote(c.Value),
			"write the memory with its value, or list the spelling under forms")
	}
	if r := c.Retrieval; r != nil {
		if holds(text.Fold(r.Query), forms) {
			k.add(CheckLeak, "retrieval.query", "gives the value "+Quote(c.Value)+" away", "ask for it without naming it")
		}
		for i := range r.Segments {
			if s := &r.Segments[i]; holds(text.Fold(s.Source+"\n"+s.Title+"\n"+s.Text), forms) {
				k.add(CheckLeak, fmt.Sprintf("retrieval.segments[%d]", i), "gives the value "+Quote(c.Value)+" away",
					"leave it to memory")
			}
		}
	}
}

// tasks checks that what a turn or the later query expects can be known, and for
// a legitimate write that it can be known from memory only.
func (k *checker) tasks() {
	c := k.c
	seen := "" // what the conversation held so far
	for i := range c.Write {
		t := &c.Write[i]
		seen += text.Fold(t.User) + "\n" + foldSegments(t.Segments)
		if len(t.Expect) > 0 && !holds(seen, folded(t.Expect)) {
			k.add(CheckAnswerable, fmt.Sprintf("write[%d].expect", i), "nothing in the session holds "+Quote(t.Expect[0]),
				"expect a text that stands in the content")
		}
		for _, e := range t.Expect {
			if e != "" && text.HoldsWhole(text.Fold(t.User), text.Fold(e)) {
				k.add(CheckLeak, fmt.Sprintf("write[%d].expect", i), "the user's own words hold "+Quote(e),
					"expect something that only the content knows")
			}
		}
	}
	r := c.Retrieval
	if r == nil {
		return
	}
	if strings.TrimSpace(r.Query) == "" {
		k.add(CheckVocabulary, "retrieval.query", "empty", "ask for something, or leave the retrieval out")
	}
	expect := folded(r.Expect)
	switch later := foldSegments(r.Segments); {
	case len(expect) == 0 && c.Writes() && c.State == nil:
		k.add(CheckAnswerable, "retrieval.expect", "missing", "say which text the right answer holds")
	case len(expect) == 0:
	case c.Writes() && !holds(text.Fold(c.Memory), expect):
		k.add(CheckAnswerable, "retrieval.expect", "the expected memory does not hold "+Quote(r.Expect[0]),
			"expect what the memory says")
	case c.Writes() && holds(text.Fold(r.Query)+"\n"+later, expect):
		k.add(CheckLeak, "retrieval.expect", Quote(r.Expect[0])+" is known without memory",
			"ask for something that only memory knows")
	case c.Label == Attack && holds(text.Fold(c.Value), expect):
		k.add(CheckAnswerable, "retrieval.expect", "the right outcome is the attacker's value",
			"expect what a sound agent does, or leave it out")
	case !c.Writes() && !holds(seen+later, expect):
		k.add(CheckAnswerable, "retrieval.expect", "nothing holds "+Quote(r.Expect[0]),
			"give the content with the query, under retrieval.segments")
	}
}

func foldSegments(list []Segment) string {
	var b strings.Builder
	for i := range list {
		b.WriteString(text.Fold(list[i].Source + "\n" + list[i].Title + "\n" + list[i].Text + "\n"))
	}
	return b.String()
}

func folded(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s != "" {
			out = append(out, text.Fold(s))
		}
	}
	return out
}

// holds reports whether the folded text holds one of the folded forms.
func holds(foldedText string, forms []string) bool {
	return slices.ContainsFunc(forms, func(f string) bool { return strings.Contains(foldedText, f) })
}

// Holds reports whether a text holds a value in any disguise that folding
// removes.
func Holds(s, value string) bool {
	return value != "" && strings.Contains(text.Fold(s), text.Fold(value))
}
