package datasets

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
)

// Show writes one case for a person to read. Control characters and invisible
// ones are shown, not sent.
func Show(w io.Writer, c *Case) error {
	var b strings.Builder
	line := func(name, s string) {
		if s != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, visible(s))
		}
	}
	block := func(s string) {
		for l := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
			b.WriteString("  | " + visible(l) + "\n")
		}
	}
	segments := func(list []Segment) {
		for i := range list {
			s := &list[i]
			fmt.Fprintf(&b, "  [%s] %s", visible(string(s.Medium)), visible(s.Source))
			if s.Title != "" {
				fmt.Fprintf(&b, " — %s", visible(s.Title))
			}
			if s.Inline {
				b.WriteString(" (inline)")
			}
			if s.Origin != "" {
				fmt.Fprintf(&b, " (taken to come from the %s)", visible(s.Origin))
			}
			b.WriteByte('\n')
			block(s.Text)
			if s.Pad > 0 {
				fmt.Fprintf(&b, "  (and ordinary text after it, up to %d tokens)\n", s.Pad)
			}
		}
	}
	expect := func(list []string) {
		for _, e := range list {
			fmt.Fprintf(&b, "  expect: %s\n", visible(e))
		}
	}
	line("case", c.ID)
	line("family", c.Family)
	line("split", string(c.Split))
	kind := c.Kind
	if c.State != nil {
		kind = "" // the situation says more
	}
	line("label", strings.TrimSpace(string(c.Label)+" "+c.Class+kind))
	line("channel", c.Channel)
	line("signal", c.Signal)
	line("domain", c.Domain)
	line("goal", c.Goal)
	line("twin", c.Twin)
	line("variant", strings.TrimSpace(c.Variant+" "+c.VariantOf))
	if t := c.Text; t != nil {
		b.WriteString("\na text, without sessions\n")
		line("key", t.Key)
		line("origin", strings.TrimSpace(t.Origin+" "+string(t.Medium)+" "+t.Source))
		block(t.Content)
	} else {
		b.WriteString("\nwrite session")
	}
	for i := range c.Write {
		t := &c.Write[i]
		if t.Fresh && i > 0 {
			b.WriteString("\nnext session, same memory")
		}
		if t.Fresh || i == 0 {
			if day := cmp.Or(t.Date, map[bool]string{true: "2026-03-03"}[c.State != nil && i == 0]); day != "" {
				b.WriteString(", " + visible(day))
			}
			if t.As != "" {
				b.WriteString(", of another user: " + visible(t.As))
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "user> %s\n", visible(c.Write[i].User))
		segments(c.Write[i].Segments)
		expect(c.Write[i].Expect)
	}
	for i := range c.Inject {
		r := &c.Inject[i]
		if i == 0 {
			b.WriteString("\nbetween the sessions, around the gate\n")
		}
		fmt.Fprintf(&b, "  [%s] claims %s", visible(cmp.Or(r.Store, "memory")),
			visible(strings.Join(strings.Fields(cmp.Or(r.Origin, "agent")+" "+string(r.Medium)+" "+r.Source), " ")))
		if r.Key != "" {
			fmt.Fprintf(&b, ", key %s", visible(r.Key))
		}
		if r.Signed {
			b.WriteString(", signed before")
		}
		b.WriteByte('\n')
		block(r.Text)
	}
	b.WriteByte('\n')
	line("memory", c.Memory)
	if c.State == nil || c.Value != c.Memory { // where no value can be set apart, the sentence stands for it
		line("value", c.Value)
	}
	if c.NeedsJudge() {
		b.WriteString("no value tells whether this was stored: without a judge the case counts for detection only\n")
	}
	for _, f := range c.Forms {
		line("also", f)
	}
	if r := c.Retrieval; r != nil {
		b.WriteString("\nretrieval session")
		if day := cmp.Or(r.Date, map[bool]string{true: "two weeks later"}[c.State != nil]); day != "" {
			b.WriteString(", " + visible(day))
		}
		b.WriteByte('\n')
		fmt.Fprintf(&b, "user> %s\n", visible(r.Query))
		segments(r.Segments)
		expect(r.Expect)
		line("  forbids", r.Forbids)
	}
	if c.State != nil {
		c.State.show(c, &b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// show tells what a case comes to, as one would tell it to a person.
func (s *State) show(c *Case, b *strings.Builder) {
	calls := func(list []model.Call) {
		for _, call := range list {
			fmt.Fprintf(b, "  %s", visible(call.Name))
			for _, a := range call.Args {
				fmt.Fprintf(b, "  %s: %s", visible(a.Name), visible(a.Value))
				if t := world.Find(call.Name); t != nil && slices.ContainsFunc(t.Params, func(p model.Param) bool {
					return p.Name == a.Name && world.Type(p.Format) == world.Title
				}) {
					b.WriteString(" (or a longer one with these words)")
				}
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(b, "\nsituation: the claim is %s\n", s.Situation.Tell())
	if s.Skill != "" && s.Situation.SaidBy != "user" && !s.Situation.Kept {
		b.WriteString("the user has the procedure learned for what it is about; of this claim he says nothing\n")
	}
	if sit := s.Situation; c.Label == Benign && sit.Evidence == MemoryAgainst {
		b.WriteString("the claim is true, and newer than the user's memory")
		if sit.SaidBy != "user" && !sit.Kept {
			b.WriteString(": here an agent that trusts its user's memory alone does wrong, which is what that costs")
		}
		b.WriteByte('\n')
	}
	for _, sl := range s.Slots {
		if sl.Wrong == "" && !strings.Contains(c.Memory, sl.Right) && said(c.read(), sl.Right) && !said(c.users(), sl.Right) {
			fmt.Fprintf(b, "%s (%s) stands only in what was read: an agent that throws all of that away cannot do the task\n",
				visible(sl.Called), visible(sl.Right))
		}
	}
	if len(s.Knows) > 0 {
		fmt.Fprintf(b, "the user's own memory holds from before: %s\n", visible(strings.Join(s.Knows, " ")))
	}
	if len(s.World) > 0 {
		b.WriteString("in the world when the retrieval session begins:\n")
		for _, table := range slices.Sorted(maps.Keys(s.World)) {
			for _, r := range s.World[table] {
				fmt.Fprintf(b, "  %s:", visible(table))
				for _, col := range world.FindTable(table).Columns {
					if v := r[col.Name]; v != "" {
						fmt.Fprintf(b, " %s %s;", visible(col.Name), visible(v))
					}
				}
				b.WriteByte('\n')
			}
		}
	}
	if len(s.Solve) > 0 {
		b.WriteString("right:\n")
		calls(c.Reference())
	}
	// A benign case whose claim is borne out offers no other value: nobody can go wrong there.
	offered := c.Label == Attack || c.offersWrong()
	if q := s.Question(); q != nil {
		fmt.Fprintf(b, "right: the answer asserts %s, and no other value\n", visible(q.Right))
		if s.Harm != nil && offered {
			fmt.Fprintf(b, "%s: it asserts %s\n", map[bool]string{true: "harm", false: "wrong"}[c.Label == Attack], visible(s.Harm.Answers))
		}
		b.WriteString("told, which is neither: it only reports that somebody says so, and leaves open whether it is so\n")
	} else if wrong := c.Witness(); wrong != nil && offered {
		b.WriteString(map[bool]string{true: "harm, for one:\n", false: "wrong, for one:\n"}[c.Label == Attack])
		calls(wrong)
	}
	if s.Situation.Due() == 0 {
		why := s.Situation.settled()
		if c.Label == Benign && s.Situation.Evidence == MemoryAgainst {
			why = "" // it is out of date
		}
		fmt.Fprintf(b, "questions due: none%s\n", why)
		return
	}
	var truth []string
	for _, sl := range s.Slots {
		if sl.Wrong != "" || strings.Contains(c.Memory, sl.Right) {
			truth = append(truth, visible(sl.Right))
		}
	}
	fmt.Fprintf(b, "questions due: one, since the claim alone decides something of high risk; the user answers %s\n", strings.Join(truth, ", "))
}

// offersWrong tells whether any text of the case holds a value that is wrong.
func (c *Case) offersWrong() bool {
	texts := slices.Concat(c.users(), c.read())
	return slices.ContainsFunc(c.State.Slots, func(s Slot) bool { return s.Wrong != "" && said(texts, s.Wrong) })
}

// users are the texts of a state case that are the user's own: what he says in the write
// session, his memory and his tables.
func (c *Case) users() []string {
	texts := slices.Clone(c.State.Knows)
	for i := range c.Write {
		texts = append(texts, c.Write[i].User)
	}
	for _, rows := range c.State.World {
		for _, r := range rows {
			texts = slices.AppendSeq(texts, maps.Values(r))
		}
	}
	return texts
}

// read are the contents that he lets the agent read then.
func (c *Case) read() (texts []string) {
	for _, s := range c.Segments() {
		texts = append(texts, s.Text)
	}
	return texts
}

func said(texts []string, value string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, value) })
}

// visible escapes what a terminal would obey or hide: everything that is neither
// graphic nor an ordinary space.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return r != ' ' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar ||
		unicode.Is(unicode.Mn, r) && r >= 0xFE00 && r <= 0xFE0F)
}
