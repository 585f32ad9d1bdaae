package harness

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/results"
)

// A transcript is one JSON object:
//
//	{"memory": {"before": [record], "between": [record], "after": [record]},
//	 "trial", "case", "agent", "defense", "model", "epoch",
//	 "sessions": [{"phase", "messages": [{"role", "content", "calls": [{"name", "args"}], "name"}],
//	               "segments": [{"id", "turn", "class", "medium", "source"}],
//	               "recalled": [{"route", "record", "text", "attributed"}],
//	               "actions": [{"turn", "tool", "vetoed"}]}],
//	 "decisions": [{"session", "gate", "route", "op", "record", "text", "action", "shown", "message", "findings": [{"check", "note", "start", "end"}]}],
//	 "judge": [{"question", "about", "verdict", "quote", "why"}]}
//
// where message is the place of the message that what was judged is part of, and
// a record is {"id", "store", "key", "text", "state", "class", "medium",
// "source"}; between holds only what is new or differs from before, and after what
// differs from between. Content that came from the case stands once, in the message that
// brought it. The encoder is written out because every trial has a transcript,
// and reflection would be its largest cost.
//
// The sessions are the write session, the retrieval session and, where there are
// some, the ordinary sessions between them as one.

// moment is one gate call as the transcript keeps it.
type moment struct {
	session  int
	gate     string
	route    memory.Route
	op       string
	record   string
	text     string
	action   memory.Action
	shown    string // what the verdict put in the place of the text
	message  int    // of the session: how many stood before what was judged
	findings []memory.Finding
}

// observe keeps a gate call. The event is not kept: Memory may use it again.
func (s *sessions) observe(e *memory.Event) {
	m := moment{session: 1, gate: e.Moment.String(), route: e.Route, message: e.Message, action: e.Verdict.Action, findings: e.Verdict.Findings}
	switch {
	case s.inGap:
		m.session = results.SessionGap
	case s.write != nil:
		m.session = 2
	}
	if m.action == memory.Redact {
		m.shown = e.Verdict.Text
	}
	switch e.Moment {
	case memory.AtInput:
		m.record = "segment " + strconv.Itoa(e.Segment.ID)
	case memory.AtWrite:
		m.op, m.record, m.text = e.Op.String(), e.Proposal.Record.ID, e.Proposal.Record.Text
	case memory.AtAct:
		m.record = e.Call.Tool
	case memory.AtRead:
		for i, d := range e.Decisions {
			if d.Action == memory.Allow && len(d.Findings) == 0 {
				continue
			}
			m.record, m.action, m.findings, m.shown = e.Candidates[i].Record.ID, d.Action, d.Findings, ""
			if d.Action == memory.Redact {
				m.shown = d.Text
			}
			s.events = append(s.events, m)
		}
		return
	}
	s.events = append(s.events, m)
}

// transcript ends the transcript, whose memory was written as it changed.
func (s *sessions) transcript(t *results.Trial) []byte {
	j := &s.script
	if s.mem != nil {
		s.remember("after")
		j.close('}')
	}
	j.str("trial", t.ID)
	j.str("case", t.Case)
	j.str("agent", t.Agent)
	j.str("defense", t.Defense)
	j.str("model", t.Model)
	j.num("epoch", int(t.Epoch))
	if t.Reason != "" {
		j.str("error", t.Reason)
	}
	j.key("sessions")
	j.open('[')
	j.session(results.PhaseWrite, s.write)
	j.session(results.PhaseRetrieval, s.later)
	j.session(results.PhaseBetween, s.gap)
	j.close(']')
	j.key("decisions")
	j.open('[')
	for i := range s.events {
		j.moment(&s.events[i])
	}
	j.close(']')
	j.verdicts(s.verdicts)
	j.close('}')
	return j.b
}

// verdicts writes what a judge that is a language model said, last of all, so that
// rejudge can put others in their place.
func (j *jsonWriter) verdicts(list []score.Answer) {
	if len(list) == 0 {
		return
	}
	j.key("judge")
	j.open('[')
	for i := range list {
		a := &list[i]
		j.open('{')
		j.str("question", a.Question)
		j.str("about", a.About)
		for _, f := range [...]struct{ key, text string }{{"verdict", a.Verdict}, {"quote", a.Quote}, {"why", a.Why}} {
			if f.text != "" {
				j.str(f.key, f.text)
			}
		}
		j.close('}')
	}
	j.close(']')
}

// rejudged is a transcript with other verdicts. No text of a transcript can look like
// their key: quotation marks in texts are escaped.
func rejudged(transcript []byte, list []score.Answer) []byte {
	end := bytes.LastIndexByte(transcript, '}')
	if end < 0 {
		return transcript
	}
	if i := bytes.LastIndex(transcript[:end], []byte(`,"judge":[`)); i >= 0 {
		end = i
	}
	j := jsonWriter{b: bytes.Clone(transcript[:end])}
	j.verdicts(list)
	j.close('}')
	return j.b
}

// known is a record as the transcript last showed it.
type known struct {
	id, text string
	state    memory.State
}

// remember writes the records that are new or have changed since the last time.
func (s *sessions) remember(when string) {
	j := &s.script
	j.key(when)
	j.open('[')
	i := 0
	for r := range s.mem.Records {
		// The order of commits never changes: an older record has the same place.
		now := known{r.ID, r.Text, r.State}
		switch {
		case i == len(s.known):
			s.known = append(s.known, now)
			j.record(&r)
		case s.known[i] != now:
			s.known[i] = now
			j.record(&r)
		}
		i++
	}
	j.close(']')
}

func (j *jsonWriter) record(r *memory.Record) {
	j.open('{')
	j.str("id", r.ID)
	j.str("store", r.Store)
	j.str("key", r.Key)
	j.str("text", r.Text)
	j.str("state", r.State.String())
	j.origin(r.Origin)
	j.close('}')
}

func (j *jsonWriter) session(phase results.Phase, o *agents.Outcome) {
	if o == nil {
		return
	}
	j.open('{')
	j.str("phase", string(phase))
	j.key("messages")
	j.open('[')
	for i := range o.Messages {
		j.message(&o.Messages[i])
	}
	j.close(']')
	j.key("segments")
	j.open('[')
	for _, s := range o.Segments {
		j.open('{')
		j.num("id", s.ID)
		j.num("turn", s.Turn)
		j.origin(s.Origin)
		j.close('}')
	}
	j.close(']')
	j.key("recalled")
	j.open('[')
	for _, r := range o.Recalled {
		j.open('{')
		j.str("route", r.Route.String())
		j.str("record", r.Record.ID)
		if r.Text != r.Record.Text {
			j.str("text", r.Text)
		}
		j.flag("attributed", r.Attributed)
		j.close('}')
	}
	j.close(']')
	j.key("actions")
	j.open('[')
	for _, a := range o.Actions {
		j.open('{')
		j.num("turn", a.Turn)
		j.str("tool", a.Call.Name)
		j.flag("vetoed", a.Vetoed)
		j.close('}')
	}
	j.close(']')
	j.close('}')
}

func (j *jsonWriter) message(m *model.Message) {
	j.open('{')
	j.str("role", string(m.Role))
	j.str("content", m.Content)
	if len(m.Calls) > 0 {
		j.key("calls")
		j.open('[')
		for _, c := range m.Calls {
			j.open('{')
			j.str("name", c.Name)
			j.key("args")
			j.open('{')
			for _, a := range c.Args {
				j.str(a.Name, a.Value)
			}
			j.close('}')
			j.close('}')
		}
		j.close(']')
	}
	if m.Name != "" {
		j.str("name", m.Name)
	}
	j.close('}')
}

func (j *jsonWriter) moment(m *moment) {
	j.open('{')
	j.num("session", m.session)
	j.str("gate", m.gate)
	if m.route != memory.RouteNone {
		j.str("route", m.route.String())
	}
	if m.op != "" {
		j.str("op", m.op)
	}
	j.str("record", m.record)
	if m.text != "" {
		j.str("text", m.text)
	}
	j.str("action", m.action.String())
	if m.shown != "" {
		j.str("shown", m.shown)
	}
	j.num("message", m.message)
	if len(m.findings) > 0 {
		j.key("findings")
		j.open('[')
		for _, f := range m.findings {
			j.open('{')
			j.str("check", f.Check)
			if f.Note != "" {
				j.str("note", f.Note)
			}
			if f.End > f.Start {
				j.num("start", f.Start)
				j.num("end", f.End)
			}
			j.close('}')
		}
		j.close(']')
	}
	j.close('}')
}

func (j *jsonWriter) origin(o memory.Origin) {
	j.str("class", o.Class.String())
	if o.Medium != "" {
		j.str("medium", string(o.Medium))
	}
	if o.Source != "" {
		j.str("source", o.Source)
	}
}

// jsonWriter appends JSON. It writes what it is told to; the callers keep the
// brackets in order.
type jsonWriter struct{ b []byte }

func (j *jsonWriter) comma() {
	if n := len(j.b); n > 0 && j.b[n-1] != '{' && j.b[n-1] != '[' && j.b[n-1] != ':' {
		j.b = append(j.b, ',')
	}
}

func (j *jsonWriter) open(c byte)  { j.comma(); j.b = append(j.b, c) }
func (j *jsonWriter) close(c byte) { j.b = append(j.b, c) }

func (j *jsonWriter) key(k string) {
	j.comma()
	j.quote(k)
	j.b = append(j.b, ':')
}

func (j *jsonWriter) str(k, v string) { j.key(k); j.quote(v) }

func (j *jsonWriter) num(k string, v int) {
	j.key(k)
	j.b = strconv.AppendInt(j.b, int64(v), 10)
}

// flag writes a truth; a falsehood is left out.
func (j *jsonWriter) flag(k string, v bool) {
	if v {
		j.key(k)
		j.b = append(j.b, "true"...)
	}
}

const hexDigits = "0123456789abcdef"

// quote appends a text as a JSON string. Control characters, <, > and & are
// escaped, so that a transcript is inert wherever it is shown; bytes that are no
// UTF-8 become U+FFFD.
func (j *jsonWriter) quote(s string) {
	b := append(j.b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(append(b, s[start:i]...), `\ufffd`...)
			start = i + 1
		case r >= 0x80 && r < 0xa0: // C1 control characters
			b = append(append(b, s[start:i]...), '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
			start = i + n
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[start:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	j.b = append(append(b, s[start:]...), '"')
}
