package results

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Transcript is what a trial leaves of its sessions. On disk it is one line of JSON,
// which [Transcript.Append] writes and [ParseTranscript] reads.
type Transcript struct {
	Memory   Memory    `json:"memory,omitzero"`
	Trial    string    `json:"trial"`
	Case     string    `json:"case"`
	Agent    string    `json:"agent"`
	Defense  string    `json:"defense"`
	Model    string    `json:"model"`
	Epoch    int32     `json:"epoch"`
	Error    string    `json:"error,omitzero"` // why the trial is not scored
	Sessions []Session `json:"sessions"`       // in the order in which they were held
	// Judge is what a language model answered that judged the trial.
	Judge []Answer `json:"judge,omitzero"`
}

// Memory is the records of a trial at three times. Between and After hold only what is
// new or differs from the time before.
type Memory struct {
	Before  []Record `json:"before"`
	Between []Record `json:"between"` // after the write session
	After   []Record `json:"after"`   // after the retrieval session
}

// Record is a record of the memory.
type Record struct {
	ID    string `json:"id"`
	Store string `json:"store"`
	Key   string `json:"key"`
	Text  string `json:"text"`
	State string `json:"state"`
	Origin
}

// Origin says where a text came from.
type Origin struct {
	Class  string `json:"class,omitzero"`
	Medium string `json:"medium,omitzero"`
	Source string `json:"source,omitzero"`
}

// Phase says which session of a trial it is.
type Phase string

// The sessions of a trial, in the order in which they are held.
const (
	PhaseWrite     Phase = "write"
	PhaseBetween   Phase = "between" // the ordinary sessions between the two others, as one
	PhaseRetrieval Phase = "retrieval"
)

// Title is what a person is told of a session.
func (p Phase) Title() string {
	switch p {
	case PhaseWrite:
		return "write session"
	case PhaseBetween:
		return "session between"
	case PhaseRetrieval:
		return "retrieval session"
	}
	return "session"
}

// PhaseOf is the phase of a [Decision] by the number of its session, empty for a
// number that no session has.
func PhaseOf(session int32) Phase {
	if session < 1 || session > SessionGap {
		return ""
	}
	return [...]Phase{PhaseWrite, PhaseRetrieval, PhaseBetween}[session-1]
}

// Session is one session turn by turn.
type Session struct {
	Phase    Phase     `json:"phase"`
	Messages []Message `json:"messages"`
	// Outside is what stands in none of the messages: memories in a prompt that an agent
	// with a loop of its own made, and what was read just when the trial ended.
	Outside []Part `json:"outside,omitzero"`
	// Decisions are those whose message never came, because the trial ended.
	Decisions []GateCall `json:"decisions,omitzero"`
}

// Message is one message of a session, with what was decided about it.
type Message struct {
	Role string `json:"role"`          // system, user, assistant or tool
	Name string `json:"name,omitzero"` // of the tool
	// Aside: nobody but the profile asked for it, in a flush, a compaction or a review.
	Aside bool `json:"aside,omitzero"`
	// Content is the whole of it, or Parts are, one behind the other, where some of it
	// has an origin of its own.
	Content   string     `json:"content,omitzero"`
	Parts     []Part     `json:"parts,omitzero"`
	Calls     []ToolCall `json:"calls,omitzero"`
	Decisions []GateCall `json:"decisions,omitzero"`
	// Exchanges are the requests behind a message of a model outside the process.
	Exchanges []Exchange `json:"exchanges,omitzero"`
}

// Exchange is one request to a model and its answer, as both went over the wire but for
// secrets, cut where they are very long. Requests counts those that were sent, retries
// included.
type Exchange struct {
	Requests   int    `json:"requests"`
	Prompt     int    `json:"prompt,omitzero"` // tokens
	Completion int    `json:"completion,omitzero"`
	Estimated  bool   `json:"estimated,omitzero"` // the tokens are memtox's estimate
	Micros     int    `json:"us,omitzero"`        // wall time
	Sent       string `json:"sent,omitzero"`
	Answered   string `json:"answered,omitzero"`
}

// Part is a stretch of a message. One that is neither a segment nor a record is the
// message's own.
type Part struct {
	Text string `json:"text"`
	Origin
	Segment    int    `json:"segment,omitzero"` // its number within the trial
	Record     string `json:"record,omitzero"`
	Route      string `json:"route,omitzero"`      // by which the record was recalled
	Attributed bool   `json:"attributed,omitzero"` // the record is shown as what its source says
}

// Text is the whole text of a message.
func (m *Message) Text() string {
	if len(m.Parts) == 0 {
		return m.Content
	}
	var b bytes.Buffer
	for i := range m.Parts {
		b.WriteString(m.Parts[i].Text)
	}
	return b.String()
}

// ToolCall is a tool call of the model.
type ToolCall struct {
	Name string `json:"name"`
	Args Args   `json:"args"`
	// Acts: it would have changed the world, which only notes it. Vetoed: the action
	// gate refused it.
	Acts   bool `json:"acts,omitzero"`
	Vetoed bool `json:"vetoed,omitzero"`
}

// Args are the arguments of a call in their order: in a transcript the members of an
// object.
type Args []Arg

// Arg is an argument of a tool call.
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String is the object.
func (a Args) String() string {
	b, err := json.Marshal(a, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return err.Error() // of texts there is none
	}
	return string(b)
}

// MarshalJSONTo writes an object.
func (a Args) MarshalJSONTo(e *jsontext.Encoder) error {
	err := e.WriteToken(jsontext.BeginObject)
	for i := range a {
		err = cmp.Or(err, e.WriteToken(jsontext.String(a[i].Name)), e.WriteToken(jsontext.String(a[i].Value)))
	}
	return cmp.Or(err, e.WriteToken(jsontext.EndObject))
}

// UnmarshalJSONFrom reads an object. Values that are no texts stay as they are written.
func (a *Args) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*a = nil
	if d.PeekKind() != '{' {
		return errors.New("the arguments of a call are no object")
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var x Arg
		var value jsontext.Value
		if err = json.UnmarshalDecode(d, &x.Name); err == nil {
			value, err = d.ReadValue()
		}
		if x.Value = string(value); err == nil && value.Kind() == '"' {
			err = json.Unmarshal(value, &x.Value, transcriptFormat)
		}
		*a = append(*a, x)
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return err
}

// GateCall is what a defense decided about one thing.
type GateCall struct {
	// Seq is that of its row, see [Decision], or -1 where there is none, as of a record
	// that a read allowed with findings, or none is known.
	Seq      int32     `json:"seq"`
	Gate     string    `json:"gate"`
	Route    string    `json:"route,omitzero"`
	Op       string    `json:"op,omitzero"`
	Record   string    `json:"record,omitzero"` // the record, segment or tool that was judged
	Text     string    `json:"text,omitzero"`   // that was to be written
	Action   string    `json:"action"`
	Shown    string    `json:"shown,omitzero"` // what it put in the place of the text
	Findings []Finding `json:"findings,omitzero"`
}

// Finding is what one check had to say. Start and End are bytes of the text that was
// judged, both 0 where it means the whole.
type Finding struct {
	Check    string `json:"check"`
	Note     string `json:"note,omitzero"`
	Start    int    `json:"start,omitzero"`
	End      int    `json:"end,omitzero"`
	Argument string `json:"argument,omitzero"`
	Value    string `json:"value,omitzero"`
}

// Answer is what a language model that judges answered to one question.
type Answer struct {
	Question string `json:"question"`
	About    string `json:"about"`            // the beginning of the text that was judged
	Verdict  string `json:"verdict,omitzero"` // yes or no; empty where there is none
	Quote    string `json:"quote,omitzero"`   // the passage that a yes rests on
	Why      string `json:"why,omitzero"`     // why there is no verdict
}

// A transcript is inert wherever it is shown, and it holds what models said as they
// said it: a name twice, and U+FFFD for what is no UTF-8.
var transcriptFormat = json.JoinOptions(jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true),
	jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// Append appends the transcript as a line of JSON without its end. The library takes
// five times as long, a tenth of a run; a test holds the two against each other.
func (t *Transcript) Append(b []byte) []byte {
	b = append(b, '{')
	if m := &t.Memory; m.Before != nil || m.Between != nil || m.After != nil {
		b = append(key(b, "memory"), '{')
		b = list(key(b, "before"), m.Before, (*Record).append)
		b = list(key(b, "between"), m.Between, (*Record).append)
		b = append(list(key(b, "after"), m.After, (*Record).append), '}')
	}
	b = said(said(said(said(said(b, "trial", t.Trial), "case", t.Case), "agent", t.Agent), "defense", t.Defense), "model", t.Model)
	b = strconv.AppendInt(key(b, "epoch"), int64(t.Epoch), 10)
	b = some(b, "error", t.Error)
	b = list(key(b, "sessions"), t.Sessions, (*Session).append)
	return append(someOf(b, "judge", t.Judge, (*Answer).append), '}')
}

func (r *Record) append(b []byte) []byte {
	b = said(said(said(said(said(append(b, '{'), "id", r.ID), "store", r.Store), "key", r.Key), "text", r.Text), "state", r.State)
	return append(r.Origin.append(b), '}')
}

func (o *Origin) append(b []byte) []byte {
	return some(some(some(b, "class", o.Class), "medium", o.Medium), "source", o.Source)
}

func (s *Session) append(b []byte) []byte {
	b = said(append(b, '{'), "phase", string(s.Phase))
	b = list(key(b, "messages"), s.Messages, (*Message).append)
	b = someOf(b, "outside", s.Outside, (*Part).append)
	return append(someOf(b, "decisions", s.Decisions, (*GateCall).append), '}')
}

func (m *Message) append(b []byte) []byte {
	b = some(said(append(b, '{'), "role", m.Role), "name", m.Name)
	b = some(ticked(b, "aside", m.Aside), "content", m.Content)
	b = someOf(b, "parts", m.Parts, (*Part).append)
	b = someOf(b, "calls", m.Calls, (*ToolCall).append)
	b = someOf(b, "decisions", m.Decisions, (*GateCall).append)
	return append(someOf(b, "exchanges", m.Exchanges, (*Exchange).append), '}')
}

func (x *Exchange) append(b []byte) []byte {
	b = strconv.AppendInt(key(append(b, '{'), "requests"), int64(x.Requests), 10)
	b = ticked(number(number(b, "prompt", x.Prompt), "completion", x.Completion), "estimated", x.Estimated)
	return append(some(some(number(b, "us", x.Micros), "sent", x.Sent), "answered", x.Answered), '}')
}

func (p *Part) append(b []byte) []byte {
	b = p.Origin.append(said(append(b, '{'), "text", p.Text))
	b = some(some(number(b, "segment", p.Segment), "record", p.Record), "route", p.Route)
	return append(ticked(b, "attributed", p.Attributed), '}')
}

func (c *ToolCall) append(b []byte) []byte {
	b = append(key(said(append(b, '{'), "name", c.Name), "args"), '{')
	for i := range c.Args {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(appendQuoted(b, c.Args[i].Name), ':'), c.Args[i].Value)
	}
	return append(ticked(ticked(append(b, '}'), "acts", c.Acts), "vetoed", c.Vetoed), '}')
}

func (g *GateCall) append(b []byte) []byte {
	b = said(strconv.AppendInt(key(append(b, '{'), "seq"), int64(g.Seq), 10), "gate", g.Gate)
	b = some(some(some(some(b, "route", g.Route), "op", g.Op), "record", g.Record), "text", g.Text)
	b = some(said(b, "action", g.Action), "shown", g.Shown)
	return append(someOf(b, "findings", g.Findings, (*Finding).append), '}')
}

func (f *Finding) append(b []byte) []byte {
	b = some(said(append(b, '{'), "check", f.Check), "note", f.Note)
	b = number(number(b, "start", f.Start), "end", f.End)
	return append(some(some(b, "argument", f.Argument), "value", f.Value), '}')
}

func (a *Answer) append(b []byte) []byte {
	b = said(said(append(b, '{'), "question", a.Question), "about", a.About)
	return append(some(some(some(b, "verdict", a.Verdict), "quote", a.Quote), "why", a.Why), '}')
}

// key appends the name of a member, behind a comma where it is not the first.
func key(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), `":`...)
}

func said(b []byte, name, s string) []byte { return appendQuoted(key(b, name), s) }

// The members that are left out where they are zero.

func some(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return said(b, name, s)
}

func number(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(key(b, name), int64(n), 10)
}

func ticked(b []byte, name string, is bool) []byte {
	if !is {
		return b
	}
	return append(key(b, name), "true"...)
}

func someOf[T any](b []byte, name string, all []T, one func(*T, []byte) []byte) []byte {
	if all == nil {
		return b
	}
	return list(key(b, name), all, one)
}

func list[T any](b []byte, all []T, one func(*T, []byte) []byte) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(&all[i], b)
	}
	return append(b, ']')
}

// AppendTranscriptOf appends a line that [Transcript.Append] wrote of a trial as that of
// another, which differs in its id and its model alone.
func AppendTranscriptOf(b, line []byte, was, is *Trial) []byte {
	for _, m := range [...]struct{ key, was, is string }{{`"trial":`, was.ID, is.ID}, {`"model":`, was.Model, is.Model}} {
		// In a text the quotes would be escaped, and calls with their arguments come later.
		old := appendQuoted([]byte(m.key), m.was)
		before, after, _ := bytes.Cut(line, old)
		b, line = appendQuoted(append(append(b, before...), m.key...), m.is), after
	}
	return append(b, line...)
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (p [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		p[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return p
}()

// plainFrom is how far bytes stand for themselves from i on, eight at once: a multiple of eight
// behind i. It may stop early, never late: see "Bit Twiddling Hacks", haszero and hasless.
func plainFrom(s string, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		t := s[i : i+8]
		x := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		quote, slash, less, more, and := x^'"'*ones, x^'\\'*ones, x^'<'*ones, x^'>'*ones, x^'&'*ones
		if (x|(x-0x20*ones)|(x+ones)|(quote-ones)&^quote|(slash-ones)&^slash|(less-ones)&^less|
			(more-ones)&^more|(and-ones)&^and)&high != 0 {
			break
		}
	}
	return i
}

// appendQuoted appends a string. Control characters, <, > and & are escaped, so that a transcript
// is inert wherever it is shown; bytes that are no UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; ; {
		for i = plainFrom(s, i); i < len(s) && plain[s[i]]; {
			i++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= 0xa0 && r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		switch {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case r == utf8.RuneError:
			b = utf8.AppendRune(b, r)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += n
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// ParseTranscript reads a transcript. What it does not know it passes over. Of one that
// an earlier memtox wrote, the decisions stand behind the messages of their session.
func ParseTranscript(b []byte) (*Transcript, error) {
	t := new(Transcript)
	if err := json.Unmarshal(b, t, transcriptFormat); err != nil {
		return nil, err
	}
	if len(t.Sessions) > 0 && t.Sessions[0].Phase == "" {
		return t, t.upgrade(b)
	}
	return t, nil
}

// upgrade reads what stood elsewhere before sessions had a phase: they stood in the
// order of their numbers; segments, records, actions and decisions in lists of their own.
func (t *Transcript) upgrade(b []byte) error {
	var old struct {
		Sessions []struct {
			Segments []struct {
				ID int `json:"id"`
				Origin
			} `json:"segments"`
			Recalled []Part `json:"recalled"`
			Actions  []struct {
				Tool   string `json:"tool"`
				Vetoed bool   `json:"vetoed"`
			} `json:"actions"`
		} `json:"sessions"`
		Decisions []struct {
			Session int32 `json:"session"`
			GateCall
		} `json:"decisions"`
	}
	if err := json.Unmarshal(b, &old, transcriptFormat); err != nil {
		return err
	}
	for i := range t.Sessions {
		s := &t.Sessions[i]
		s.Phase, s.Outside = PhaseOf(int32(i+1)), old.Sessions[i].Recalled
		for _, x := range old.Sessions[i].Segments {
			s.Outside = append(s.Outside, Part{Segment: x.ID, Origin: x.Origin})
		}
		actions := old.Sessions[i].Actions // in the order of their calls
		for k := range s.Messages {
			for c := range s.Messages[k].Calls {
				if call := &s.Messages[k].Calls[c]; len(actions) > 0 && actions[0].Tool == call.Name {
					call.Acts, call.Vetoed, actions = true, actions[0].Vetoed, actions[1:]
				}
			}
		}
	}
	for _, d := range old.Decisions {
		d.Seq = -1
		if d.Session >= 1 && int(d.Session) <= len(t.Sessions) {
			s := &t.Sessions[d.Session-1]
			s.Decisions = append(s.Decisions, d.GateCall)
		}
	}
	return nil
}
