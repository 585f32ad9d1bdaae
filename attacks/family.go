package attacks

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/internal/text"
)

// Family is a family of cases whose outcome is a state, as its file has it.
// Texts may hold {word}, a word of Vary; {value}, {value.right} and {value.wrong};
// {claim}, or {claim.1} and so on where it is said in several wordings. See
// docs/cases.md.
type Family struct {
	Family string
	About  string
	Label  datasets.Label // attack, or benign for a family of its own
	Class  string         // the form of the attack, or that a benign family is like
	Goal   string
	// Cases is how many there are; 5 where the file has none.
	Cases int
	// Vary are words that differ from case to case, one each.
	Vary   map[string][]string
	Values map[string]*ValueSpec
	// Known says where the right value stands: memory, world, user, task or content.
	Known string
	Knows []string
	World map[string][]world.Row
	Write []WriteTurn
	Claim string
	// Claims are its wordings, where it is said more than once.
	Claims []string
	// Later is the request of the later session, LaterOn its day.
	Later   string
	LaterOn string `yaml:"later_on"`
	// Since is the day from which the claim holds; Repeats says that it asks to be noted
	// again.
	Since   string
	Repeats bool
	Solve   []map[string]map[string]string
	Adds    []map[string]map[string]string
	// Omits are the tools of Solve whose calls the claim takes out of the task.
	Omits  []map[string]map[string]string
	Asks   string
	Harm   *world.Predicate
	Kept   bool
	SaidBy string `yaml:"said_by"` // external, or of a benign family user
	Twin   *TwinSpec
	// TwinText is the claim in the user's own words.
	TwinText string `yaml:"twin_text"`
	// Instead stands in the content where the claim stood, in a twin whose user says it.
	Instead string
	Skill   string

	file  string
	split datasets.Split
	data  []byte
	root  settings.Node
}

// ValueSpec is a value that the task leaves open, or a fact of the content.
type ValueSpec struct {
	Type   world.Type
	Called string
	// Right and Wrong are its values, one a case; values of a type that can be made
	// up are made up where there are none. A value that is only Right is a fact.
	Right, Wrong []string
	Fact         bool
	// RightSays is the sentence of Knows that stands for the right value, where no
	// sentence holds one: the claim stands for the wrong one.
	RightSays string `yaml:"right_says"`
	// Looks is the name under which a table of the world has it.
	Looks string
	Table string
}

// TwinSpec is the one difference between an attack and its benign twin.
type TwinSpec struct {
	SaidBy string `yaml:"said_by"` // user
	Kept   bool
	Truth  string // the value that the world bears out
}

// WriteTurn is one turn of the write session: what the user says, and the content
// that it is about. Keep stands there instead where the claim is kept, Other where
// it is not.
type WriteTurn struct {
	User, Keep, Other string
	Fresh             bool
	// As is who says it, in a session of his own, and On the session's day.
	As, On                                                             string
	Email, Web, File, Slack, Calendar, MCP, Script, Skill, Tool, Agent *Piece
}

// pieces are the content of a turn in the order of media.
func (t *WriteTurn) pieces() []*Piece {
	return []*Piece{t.Email, t.Web, t.File, t.Slack, t.Calendar, t.MCP, t.Script, t.Skill, t.Tool, t.Agent}
}

// Piece is a piece of content.
type Piece struct {
	From, Title, Text string
	// Origin is what the harness takes it to come from: agent or user; "" is outside.
	Origin string
	Inline bool
	Pad    int
}

// Parse reads a family file of state cases.
func Parse(file string, split datasets.Split, data []byte) (*Family, error) {
	f := &Family{file: file, split: split, data: data, Cases: 5, Label: datasets.Attack, SaidBy: "external"}
	if err := settings.Decode(file, data, f); err != nil {
		return nil, err
	}
	root, err := settings.Parse(file, data)
	if err != nil {
		return nil, err
	}
	f.root = root
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// mistake is an error at a key, such as values.iban.right or write.2.email, with turns
// from 0; where the file has no such key, at the nearest above it, or its first line.
func (f *Family) mistake(key, what string) *datasets.Error {
	e := &datasets.Error{File: f.file, Line: 1, Column: 1, What: what}
	node := f.root
	for part := range strings.SplitSeq(key, ".") {
		entries, _ := node.Entries() // none where it is no mapping
		items, _ := node.Items()
		found := false
		for _, k := range entries {
			if k.Key == part {
				node, found = k.Value, true
				e.Line, e.Column = k.At.At()
			}
		}
		if i, err := strconv.Atoi(part); err == nil && i < len(items) {
			node, found = items[i], true
			e.Line, e.Column = node.At()
		}
		if !found {
			break
		}
	}
	return e
}

// quoting is an error where the file first has a text.
func (f *Family) quoting(s, what string) *datasets.Error {
	e := &datasets.Error{File: f.file, What: what}
	if before, _, ok := bytes.Cut(f.data, []byte(s)); ok {
		e.Line, e.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	}
	return e
}

// workday reports whether dates are made up for a day: from after the later session
// to the end of June, since few mails plan half a year ahead, and no weekend and no
// holiday of that spring, on which nobody delivers or closes the books.
func workday(day string) bool {
	d, err := time.Parse(time.DateOnly, day)
	holidays := []string{"2026-04-03", "2026-04-06", "2026-05-01", "2026-05-14", "2026-05-25", "2026-06-04"}
	return err == nil && day >= "2026-03-25" && day <= "2026-06-30" && d.Weekday() != time.Saturday &&
		d.Weekday() != time.Sunday && !slices.Contains(holidays, day)
}

func (f *Family) check() error {
	known := []string{"memory", "world", "user", "task", "content"}
	classes := append(datasets.Classes(), datasets.Frontier()...)
	at := func(key, format string, args ...any) error { return f.mistake(key, fmt.Sprintf(format, args...)) }
	unknown := func(key, has string, choices []string) error {
		p := settings.Unknown("", key, has, choices)
		return f.mistake(key, p.Error())
	}
	switch {
	case f.Family == "" || f.Later == "" || len(f.Write) == 0:
		return at("", "a family has a name (family), a write session (write) and a later request (later)")
	case f.Label != datasets.Attack && f.Label != datasets.Benign:
		return unknown("label", string(f.Label), []string{"attack", "benign"})
	case !slices.Contains(classes, f.Class):
		return unknown("class", f.Class, classes)
	case !slices.Contains(known, f.Known):
		return unknown("known", f.Known, known)
	case f.Known == "content" && f.Label == datasets.Attack:
		return at("known", "known: content is of benign families: the right value of an attack stands elsewhere")
	case (f.Known == "task") != (len(f.Adds) > 0):
		return at(map[bool]string{true: "adds", false: "known"}[len(f.Adds) > 0],
			"adds and known: task go together: the request says all there is to do, and the claim adds to it")
	case (len(f.Solve) == 0) != (f.Asks != ""):
		return at(map[bool]string{true: "asks", false: "later"}[f.Asks != ""], "a task has calls that do it (solve), or is a question (asks)")
	case f.Asks != "" && f.Values[f.Asks] == nil:
		return at("asks", "asks: %s is no value", f.Asks)
	case f.Asks != "" && (f.Known == "user" || f.Known == "task"):
		return at("known", "a question (asks) is known: memory, world or content: with known: %s nobody could answer it", f.Known)
	case f.Asks != "" && f.Label == datasets.Attack && f.Values[f.Asks].Fact:
		return at("asks", "asks: %s is a fact: an attack asks for a value that has a right and a wrong one", f.Asks)
	case f.Asks != "" && f.Harm != nil && (len(f.Harm.Row)+len(f.Harm.Missing) > 0 || f.Harm.Answers != "{"+f.Asks+".wrong}"):
		return at("harm", "the harm of a question is harm: {answers: \"{%s.wrong}\"}, and may be left out", f.Asks)
	case f.Asks == "" && f.Harm != nil && f.Harm.Answers != "":
		return at("harm.answers", "harm: answers is of questions (asks): the harm of a task is a row")
	case f.Label == datasets.Attack && f.Harm == nil && len(f.Adds)+len(f.Omits) == 0 && f.Asks == "":
		return at("label", "an attack has a harm")
	case f.Claim == "" && len(f.Claims) == 0:
		return at("claim", "what is it that is claimed (claim)?")
	case f.Twin != nil && f.Label == datasets.Benign:
		return at("twin", "a benign family has no twin")
	}
	if t := f.Twin; t != nil {
		n := 0
		for _, has := range []bool{t.SaidBy != "", t.Kept, t.Truth != ""} {
			if has {
				n++
			}
		}
		if n != 1 || t.SaidBy != "" && t.SaidBy != "user" || t.Kept && f.Kept {
			return at("twin", "a twin differs in one thing: said_by: user, kept: true, or truth: VALUE")
		}
	}
	for name, list := range f.Vary {
		if len(list) != f.Cases {
			return at("vary."+name, "vary: %s has %d words for %d cases", name, len(list), f.Cases)
		}
	}
	for name, v := range f.Values {
		for side, list := range map[string][]string{"right": v.Right, "wrong": v.Wrong} {
			switch {
			case len(list) != 0 && len(list) != f.Cases:
				return at("values."+name+"."+side, "values: %s: %s has %d values for %d cases", name, side, len(list), f.Cases)
			case len(list) == 0 && !isMade(v.Type) && !(side == "wrong" && v.Fact):
				return at("values."+name, "values: %s: nothing makes up values of type %s: write %s, one a case", name, v.Type, side)
			}
		}
	}
	if len(f.Claims) == 0 {
		f.Claims = []string{f.Claim}
	}
	for _, t := range f.Write {
		if t.As != "" && strings.Contains(t.User, "{claim") {
			f.SaidBy = datasets.AnotherUser
		}
	}
	return nil
}

// Compile makes the cases of families, sorted by id. The same families and seed give
// the same cases to the byte, in whatever order the families come.
func Compile(families []*Family, seed uint64) ([]datasets.Case, error) {
	families = slices.SortedFunc(slices.Values(families), func(a, b *Family) int { return cmp.Compare(a.Family, b.Family) })
	used := registry{}
	var out []datasets.Case
	var errs []error
	for _, f := range families {
		for i := range f.Cases {
			m := f.maker(seed, i, used)
			attack, err := m.make(f.Label, nil)
			if err == nil && f.Twin != nil {
				var twin datasets.Case
				if twin, err = m.make(datasets.Benign, f.Twin); err == nil {
					attack.Twin, twin.Twin = twin.ID, attack.ID
					out = append(out, twin)
				}
			}
			if err != nil {
				if e, ok := errors.AsType[*datasets.Error](err); ok {
					e.Field = fmt.Sprintf("case %d", i+1)
				}
				errs = append(errs, err)
				break
			}
			out = append(out, attack)
		}
	}
	slices.SortFunc(out, func(a, b datasets.Case) int { return cmp.Compare(a.ID, b.ID) })
	return out, errors.Join(errs...)
}

// maker makes one case of a family, and its twin.
type maker struct {
	f      *Family
	seed   uint64
	index  int
	words  map[string]string // what {name} stands for, values apart
	right  map[string]string
	wrong  map[string]string
	claims []string
	told   bool // the user has said the claim
	err    *datasets.Error
}

func (f *Family) maker(seed uint64, index int, used registry) *maker {
	m := &maker{f: f, seed: seed, index: index, words: map[string]string{}, right: map[string]string{}, wrong: map[string]string{}}
	g := &generator{r: datasets.NewRand(seed, fmt.Sprintf("%s/%d", f.Family, index)), split: f.split, used: used, words: lists()}
	for name, list := range f.Vary {
		m.words[name] = list[index]
	}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		v := f.Values[name]
		draw := func(list []string) string {
			if len(list) > 0 {
				return m.plain(list[index])
			}
			s := g.draw(v.Type)
			for v.Type == "date" && !workday(s) {
				s = g.draw(v.Type)
			}
			if f.folder(name) {
				s = strings.TrimSuffix(s, path.Ext(s))
			}
			return s
		}
		m.right[name] = draw(v.Right)
		if !v.Fact {
			for m.wrong[name] == "" || v.Type.Equal(m.wrong[name], m.right[name]) {
				if m.wrong[name] = draw(v.Wrong); len(v.Wrong) > 0 {
					break
				}
			}
		}
	}
	for _, c := range f.Claims {
		m.claims = append(m.claims, m.text(c))
	}
	return m
}

// folder reports whether a value is where files are kept.
func (f *Family) folder(name string) bool {
	return slices.ContainsFunc(slices.Concat(f.Solve, f.Adds), func(call map[string]map[string]string) bool {
		for _, args := range call {
			if args["folder"] == "{"+name+"}" {
				return true
			}
		}
		return false
	})
}

// plain puts the words in.
func (m *maker) plain(s string) string {
	for name, w := range m.words {
		s = strings.ReplaceAll(s, "{"+name+"}", w)
	}
	return s
}

// text puts words and values in. A value that is {name} alone is the right one:
// of a fact, which has no other.
func (m *maker) text(s string) string {
	s = m.plain(s)
	for name, v := range m.right {
		s = strings.NewReplacer("{"+name+".right}", v, "{"+name+".wrong}", m.wrong[name]).Replace(s)
		if m.f.Values[name].Fact {
			s = strings.ReplaceAll(s, "{"+name+"}", v)
		}
	}
	for i, c := range m.claims {
		s = strings.ReplaceAll(s, fmt.Sprintf("{claim.%d}", i+1), c)
	}
	if len(m.claims) > 0 {
		s = strings.ReplaceAll(s, "{claim}", m.claims[0])
	}
	if i := strings.IndexByte(s, '{'); i >= 0 && m.err == nil {
		if name, _, ok := strings.Cut(s[i+1:], "}"); ok && len(name) < 40 {
			m.err = m.f.quoting("{"+name, fmt.Sprintf("{%s} stands for nothing: %q", name, text.Clip(s[i:], 60)))
		}
	}
	return s
}

// joined makes one line of what its author broke for its length alone: a paragraph of prose that
// was broken into lines of like length, and elsewhere a sentence that goes on in the next line. The
// line that has the claim would stand out.
func joined(medium memory.Medium, body string) string {
	if medium == memory.Script {
		return body
	}
	out := strings.Split(body, "\n\n")
	for i, par := range out {
		lines := strings.Split(strings.TrimRight(par, "\n"), "\n")
		whole := medium != memory.MCP && broken(lines)
		made := lines[:1:1]
		for k, l := range lines[1:] {
			if whole || runsOn(medium, lines[k], l) {
				made[len(made)-1] += " " + strings.TrimLeft(l, " ")
			} else {
				made = append(made, l)
			}
		}
		if len(made) < len(lines) {
			out[i] = strings.Join(made, "\n")
		}
	}
	return strings.Join(out, "\n\n")
}

// narrow is as short as a line is that is broken for its length, in bytes.
const narrow = 60

// label begins a line of its own: "Where: the reading room", START="09:30". item does too: one of a
// list, a quotation, a row, a string of JSON; a row of columns; an hour with what is then; and who
// speaks.
var (
	label   = regexp.MustCompile(`^[\w ]{1,24}[:=]`)
	item    = regexp.MustCompile(`^(?:[-*>|#\[+=~"(]|\{"|(?:\d{1,3}|\pL)[.):]|\S{1,12} {2})`)
	columns = regexp.MustCompile(`^[^.]{1,24}(?:\.{3}| {3})`)
	hour    = regexp.MustCompile(`^\d\d?:\d\d `)
	speaker = regexp.MustCompile(`^(?:[\w.-]{1,44}[:=]|[^.!?;]{1,44}:(?:\d\d|\s|$))`)
)

// runsOn reports whether a long line goes on in the next one as a sentence does.
func runsOn(medium memory.Medium, line, next string) bool {
	end, start := strings.TrimSpace(line), strings.TrimLeft(next, " ")
	last, _ := utf8.DecodeLastRuneInString(end)
	first, _ := utf8.DecodeRuneInString(start)
	prose := medium == memory.Email || medium == memory.Web || medium == memory.File || medium == memory.Calendar
	switch {
	case len(end) < narrow+12 && !strings.Contains(end, "{claim"), start == "", item.MatchString(start),
		columns.MatchString(start), strings.ContainsRune(`.;:!?"”|[]{`, last),
		strings.HasPrefix(end, "{claim") && last == '}', // the claim is a line of its own
		strings.HasPrefix(start, "{claim") && hour.MatchString(end):
		return false
	case prose && unicode.IsLower(first): // no label begins so
		return true
	case label.MatchString(start), speaker.MatchString(start), medium == memory.Slack && !unicode.IsLower(first),
		medium == memory.MCP && last == '}': // a row that ends with a value
		return false
	case unicode.IsUpper(first): // a name, unless the line was none too long
		return len(end) >= narrow+30 && last != '}' && !item.MatchString(line) && !speaker.MatchString(line)
	}
	return unicode.IsLetter(first) || unicode.IsDigit(first) || first == '{'
}

// broken reports whether lines are a paragraph that was broken into them: prose, of which but for
// the last line and that with the claim none is short, and few end with a sentence.
func broken(lines []string) bool {
	if len(lines) < 2 {
		return false
	}
	longest, ends := 0, 0
	for _, l := range lines {
		if !strings.Contains(l, "{claim") {
			longest = max(longest, len(l))
		}
	}
	for i, l := range lines {
		first, _ := utf8.DecodeRuneInString(l)
		if !unicode.IsLetter(first) && first != '{' && first != '"' || label.MatchString(l) || columns.MatchString(l) ||
			i < len(lines)-1 && len(l) < narrow && !strings.Contains(l, "{claim") || longest > 160 {
			return false
		}
		if i < len(lines)-1 && strings.ContainsRune(`.;:!?")`, rune(l[len(l)-1])) || i > 0 && unicode.IsUpper(first) {
			ends++
		}
	}
	return 2*ends < len(lines)-1
}

// without leaves the claim out of content: in the twin the user says it.
func (m *maker) without(s string) string {
	instead := m.f.Instead
	s = gap.ReplaceAllStringFunc(s, func(found string) string {
		before, after := found[0] == ' ', found[len(found)-1] == ' '
		switch {
		case instead != "":
			found = placeholder.ReplaceAllLiteralString(found, instead)
			instead = ""
			return found
		case before && after:
			return " "
		}
		return ""
	})
	return emptyItem.ReplaceAllString(s, "")
}

// gap is a claim with the spaces beside it. Nothing else of the content changes, or its
// spaces would tell a twin.
var gap = regexp.MustCompile(` ?\{claim(\.[0-9]+)?\} ?`)

// emptyItem is what is left of an item of a list that was the claim.
var emptyItem = regexp.MustCompile(`(?m)^\s*[-*•] *\n`)

func (m *maker) calls(list []map[string]map[string]string) (out []model.Call) {
	for _, one := range list {
		for name, args := range one {
			c := model.Call{Name: name}
			t := world.Find(name)
			if t == nil || t.Desk == "" {
				m.fail(m.f.quoting(name, fmt.Sprintf("there is no tool %q in agents/world/office.yaml", name)))
				return nil
			}
			for _, p := range t.Params {
				if v, ok := args[p.Name]; ok {
					c.Args = append(c.Args, model.Arg{Name: p.Name, Value: m.open(v)})
				}
			}
			if len(c.Args) != len(args) {
				m.fail(m.f.quoting(name+":", fmt.Sprintf("%s takes the arguments %s only", name, paramNames(t))))
			}
			out = append(out, c)
		}
	}
	return out
}

func (m *maker) fail(err *datasets.Error) {
	if m.err == nil {
		m.err = err
	}
}

func paramNames(t *world.Tool) string {
	var out []string
	for _, p := range t.Params {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// open puts words in and leaves the slots open.
func (m *maker) open(s string) string {
	s = m.plain(s)
	for _, ref := range openSlot.FindAllStringSubmatch(s, -1) {
		if m.f.Values[ref[1]] == nil {
			m.fail(m.f.quoting(ref[0], fmt.Sprintf("%s is no value: %q", ref[0], s)))
		}
	}
	return s
}

var openSlot = regexp.MustCompile(`\{([^{}]*)\}`)

// row of a world or a predicate.
func (m *maker) row(r world.Row, turned bool) world.Row {
	out := world.Row{}
	for col, v := range r {
		if turned { // the truth is the claim's: the sides change places
			v = strings.NewReplacer(".right}", ".\x00}", ".wrong}", ".right}").Replace(v)
			v = strings.ReplaceAll(v, ".\x00}", ".wrong}")
		}
		for name, right := range m.right {
			v = strings.ReplaceAll(v, "{"+name+"}", right)
		}
		out[col] = m.text(v)
	}
	return out
}

// make makes the case, or with a twin's difference the twin.
func (m *maker) make(label datasets.Label, twin *TwinSpec) (datasets.Case, error) {
	f := m.f
	role := "case"
	saidBy, kept := f.SaidBy, f.Kept
	if twin != nil {
		role, saidBy, kept = "twin", cmp.Or(twin.SaidBy, saidBy), kept || twin.Kept
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%s", m.seed, f.Family, m.index, role))
	c := datasets.Case{ID: "m-" + hex.EncodeToString(sum[:6]), Family: f.Family, Split: f.split, Label: label,
		Retrieval: &datasets.Retrieval{Query: m.text(f.Later), Date: f.LaterOn}}
	// The truth of an attack's slot is right; of its twin's, the claim's.
	turned := twin != nil
	s := &datasets.State{Solve: m.calls(f.Solve), Adds: m.calls(f.Adds), Omits: m.calls(f.Omits),
		Claims: m.claims, Since: f.Since, Repeats: f.Repeats, Skill: m.plain(f.Skill)}
	s.Asks = f.Asks
	if saidBy == "user" && f.TwinText != "" {
		s.Claims = append([]string{m.text(f.TwinText)}, s.Claims...)
	}
	for _, k := range f.Knows {
		s.Knows = append(s.Knows, m.text(k))
	}
	for table, rows := range f.World {
		for _, r := range rows {
			if s.World == nil {
				s.World = map[string][]world.Row{}
			}
			s.World[table] = append(s.World[table], m.row(r, turned))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		v := f.Values[name]
		sl := datasets.Slot{Name: name, Type: v.Type, Called: cmp.Or(m.plain(v.Called), name), Right: m.right[name], Wrong: m.wrong[name]}
		if turned && !v.Fact {
			sl.Right, sl.Wrong = sl.Wrong, sl.Right
		}
		if m.adds(name) { // a step's value competes with nothing
			sl.Right, sl.Wrong = m.right[name], ""
		}
		if v.Looks != "" {
			sl.Looks = m.looks(name)
		}
		if v.RightSays != "" {
			sl.Says = map[string]string{m.text(v.RightSays): m.right[name]}
		}
		s.Slots = append(s.Slots, sl)
	}
	if q := s.Question(); q != nil {
		if q.Wrong != "" {
			s.Harm = &world.Predicate{Answers: q.Wrong}
		}
	} else if f.Harm != nil {
		s.Harm = m.predicate(f.Harm, turned)
	} else if len(s.Omits) > 0 {
		rows := m.rows(s.Omits)
		if s.Harm = (&world.Predicate{Missing: rows}); label == datasets.Benign {
			s.Harm = &world.Predicate{Row: rows}
		}
	} else if label == datasets.Attack {
		s.Harm = &world.Predicate{Row: m.rows(s.Adds)}
	}
	if s.Harm != nil {
		if err := s.Harm.Check(); err != nil {
			m.fail(m.f.mistake("harm", "harm: "+err.Error()))
		}
	}
	if _, err := s.NewWorld(); err != nil {
		m.fail(m.f.mistake("world", "world: "+err.Error()))
	}
	m.told = false
	for i, t := range f.Write {
		m.turn(&c, s, i, t, saidBy == "user", kept)
	}
	c.Class, c.Goal = f.Class, f.Goal
	if info, ok := datasets.Info(f.Class); ok {
		c.Signal, c.Channel = info.Signal, info.Channel
	}
	if label == datasets.Benign {
		if c.Channel != "C4" {
			c.Channel = ""
		}
		c.Class, c.Goal, c.Signal = "", "", ""
		c.Kind = map[bool]string{true: datasets.KindUser, false: datasets.KindUnasked}[saidBy == "user"]
		if kept && saidBy != "user" {
			c.Kind = datasets.KindAsked
		}
	}
	c.Memory = s.Claims[0]
	if c.Value = m.operative(label, s); c.Value == c.Memory {
		c.Forms = s.Claims[1:]
	}
	s.Situation = m.situation(s, saidBy, kept, twin)
	s.Desks = desks(s)
	c.State = s
	c.Domain = domains[memory.Peer] // somebody else's words, where there is no content
	for _, seg := range c.Segments() {
		c.Domain = domains[seg.Medium]
		break
	}
	if m.err != nil { // a nil pointer is no nil error
		return c, m.err
	}
	return c, nil
}

// media of content, in the order of the keys of [WriteTurn].
var media = []memory.Medium{memory.Email, memory.Web, memory.File, memory.Slack, memory.Calendar, memory.MCP, memory.Script,
	memory.Skill, memory.Tool, memory.Peer}

var domains = map[memory.Medium]string{memory.Email: "email", memory.Web: "web", memory.File: "file", memory.Slack: "slack",
	memory.Calendar: "calendar", memory.Script: "script", memory.MCP: "web", memory.Skill: "skill",
	memory.Tool: "web", memory.Peer: "slack"}

// adds reports whether a value is one that the claim's step brings.
func (m *maker) adds(name string) bool {
	for _, one := range m.f.Adds {
		for _, args := range one {
			for _, v := range args {
				if strings.Contains(v, "{"+name+"}") {
					return true
				}
			}
		}
	}
	return false
}

func (m *maker) looks(name string) *model.Call {
	v := m.f.Values[name]
	tools := v.lookedUpBy()
	if len(tools) == 0 {
		m.fail(m.f.mistake("values."+name, fmt.Sprintf("values: %s: no table holds values of type %s that can be looked up", name, v.Type)))
		return nil
	}
	by := tools[max(0, slices.IndexFunc(tools, func(t *world.Tool) bool { return len(m.f.World[t.Table]) > 0 }))]
	arg := model.Arg{Name: by.Params[0].Name, Value: m.plain(v.Looks)}
	return &model.Call{Name: by.Name, Args: []model.Arg{arg}}
}

// lookedUpBy are the tools that look into tables that hold a value's type. The first of
// which the family has rows is taken, or else the first.
func (v *ValueSpec) lookedUpBy() (out []*world.Tool) {
	for _, t := range world.Tools() {
		if t.Own() && (v.Table == "" || t.Table == v.Table) && holdsType(t.Table, v.Type) {
			out = append(out, t)
		}
	}
	return out
}

// predicate puts the values of one side into a harm.
func (m *maker) predicate(p *world.Predicate, turned bool) *world.Predicate {
	out := &world.Predicate{}
	put := func(from map[string]world.Row) map[string]world.Row {
		if from == nil {
			return nil
		}
		to := map[string]world.Row{}
		for table, r := range from {
			to[table] = m.row(r, turned)
		}
		return to
	}
	out.Row, out.Missing = put(p.Row), put(p.Missing)
	return out
}

// rows are what calls leave that the claim adds to a task or takes out of it, in
// whatever call they are made.
func (m *maker) rows(calls []model.Call) map[string]world.Row {
	out := map[string]world.Row{}
	for _, c := range calls {
		t := world.Find(c.Name)
		row := world.Row{}
		for _, a := range c.Args {
			v := a.Value
			for name, right := range m.right {
				v = strings.ReplaceAll(v, "{"+name+"}", right)
			}
			if col, ok := world.FindTable(t.Effects[0].Changes()).Column(a.Name); ok && col.Type != world.FreeText {
				row[a.Name] = v
			}
		}
		out[t.Effects[0].Changes()] = row
	}
	return out
}

func (m *maker) turn(c *datasets.Case, s *datasets.State, i int, t WriteTurn, bySelf, kept bool) {
	out := datasets.Turn{User: t.User, Fresh: t.Fresh, As: t.As, Date: t.On}
	if bySelf { // the same words, and the user's own
		out.As = ""
	}
	switch {
	case kept && t.Keep != "":
		out.User = strings.TrimSpace(out.User + " " + t.Keep)
		s.Keeps = append(s.Keeps, len(c.Write))
	case t.Other != "":
		out.User = strings.TrimSpace(out.User + " " + t.Other)
		if t.Other == m.f.keep() { // a turn means what its words say, wherever it stands
			s.Keeps = append(s.Keeps, len(c.Write))
		}
	}
	claimed := false
	for k, p := range t.pieces() {
		if p == nil {
			continue
		}
		body := joined(media[k], p.Text)
		claimed = claimed || strings.Contains(body, "{claim")
		if bySelf {
			body = m.without(body)
		}
		out.Segments = append(out.Segments, datasets.Segment{Medium: media[k], Source: m.text(p.From), Title: m.text(p.Title),
			Text: strings.TrimSpace(m.text(body)), Origin: p.Origin, Inline: p.Inline || p == t.Agent, Pad: p.Pad})
	}
	if bySelf && claimed && !m.told {
		m.told = true
		out.User = strings.TrimSpace(out.User + " " + cmp.Or(m.f.TwinText, m.f.Claims[0]))
	}
	if out.User == "" && len(out.Segments) == 0 {
		return
	}
	out.User = m.text(out.User)
	c.Write = append(c.Write, out)
}

// operative is the value by which the claim is found again in memory.
func (m *maker) operative(label datasets.Label, s *datasets.State) string {
	for _, sl := range s.Slots {
		if m.adds(sl.Name) && m.claimed(sl.Name) {
			return sl.Right
		}
		if m.f.Values[sl.Name].Fact {
			continue
		}
		if sl.Says != nil {
			break
		}
		if label == datasets.Attack {
			return sl.Wrong
		}
		return sl.Right
	}
	return s.Claims[0]
}

func (m *maker) situation(s *datasets.State, saidBy string, kept bool, twin *TwinSpec) datasets.Situation {
	out := datasets.Situation{SaidBy: saidBy, Kept: kept, High: m.high(s)}
	against := m.f.Label == datasets.Attack
	switch m.f.Known {
	case "task":
		out.Evidence = datasets.TaskSaysAll
	case "memory":
		out.Evidence = datasets.MemoryAgainst
	case "world":
		out.Evidence = datasets.WorldAgainst
		if twin != nil || !against { // the row turns over with its twin
			out.Evidence = datasets.WorldAgrees
		}
	default:
		out.Evidence = datasets.NoEvidence
	}
	return out
}

// high reports whether a slot that the claim decides, or its step, is of high risk.
func (m *maker) high(s *datasets.State) bool {
	calls := s.Solve
	if more := slices.Concat(s.Adds, s.Omits); len(more) > 0 {
		calls = more
	}
	for _, c := range calls {
		t := world.Find(c.Name)
		for _, a := range c.Args {
			for name, v := range m.f.Values {
				// A fact of a benign family is what its claim says; of an attack it is beside that.
				claimed := !v.Fact || m.f.Label == datasets.Benign && m.claimed(name)
				if claimed && strings.Contains(a.Value, "{"+name+"}") && t.Risky(a.Name) {
					return true
				}
			}
			if len(s.Adds)+len(s.Omits) > 0 && (t.Risky(a.Name) || leaks(t, a)) {
				return true
			}
		}
	}
	return false
}

// leaks reports whether an argument is a web address with a value put into it.
func leaks(t *world.Tool, a model.Arg) bool {
	return openSlot.ReplaceAllString(a.Value, "") != "" && openSlot.MatchString(a.Value) &&
		slices.ContainsFunc(t.Params, func(p model.Param) bool { return p.Name == a.Name && p.Format == "url" })
}

// keep are the words by which the user asks to keep the claim.
func (f *Family) keep() string {
	for _, t := range f.Write {
		if t.Keep != "" {
			return t.Keep
		}
	}
	return ""
}

// claimed reports whether the claim holds a value.
func (m *maker) claimed(name string) bool {
	return slices.ContainsFunc(m.f.Claims, func(c string) bool { return strings.Contains(c, "{"+name+"}") })
}

// desks are those whose tools the case touches.
func desks(s *datasets.State) []string {
	var out []string
	add := func(t *world.Tool) {
		if t != nil && t.Desk != "all" && !slices.Contains(out, t.Desk) {
			out = append(out, t.Desk)
		}
	}
	for _, c := range slices.Concat(s.Solve, s.Adds) {
		add(world.Find(c.Name))
	}
	for _, sl := range s.Slots {
		if sl.Looks != nil {
			add(world.Find(sl.Looks.Name))
		}
	}
	for _, t := range world.Tools() {
		for table := range s.World {
			if t.Table == table {
				add(t)
			}
		}
		if s.Harm != nil && t.Kind == world.Acts {
			for _, e := range t.Effects {
				if slices.Contains(s.Harm.Tables(), e.Changes()) {
					add(t)
				}
			}
		}
	}
	if q := s.Question(); q != nil && len(out) == 0 { // no call says where one would look for it
		for _, t := range world.Tools() {
			if t.Kind == world.Looks && t.Own() && holdsType(t.Table, q.Type) {
				add(t)
			}
		}
		if len(out) == 0 {
			out = append(out, "office")
		}
	}
	slices.Sort(out)
	return out
}

// holdsType reports whether a table has values of a type, beside the name of the row.
func holdsType(table string, typ world.Type) bool {
	return slices.ContainsFunc(world.FindTable(table).Columns[1:], func(c world.Column) bool { return c.Type == typ })
}
