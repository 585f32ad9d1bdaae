package harness

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/results"
)

// script notes what the transcript of a trial is made of. A worker uses its lists for
// one trial after another.
type script struct {
	memory results.Memory
	known  []known
	gates  []results.GateCall
	at     []spot // of each gate call
	placed int    // how many of them stand in a session
	parts  []results.Part
	marks  []mark
	said   []results.Message
	shown  []results.Record
}

// again returns an empty script over the lists of one that is done with.
func (s script) again() script {
	const most = 1 << 12 // one huge trial should not be remembered
	if max(cap(s.known), cap(s.gates), cap(s.parts), cap(s.marks), cap(s.said), cap(s.shown)) > most {
		return script{}
	}
	return script{known: s.known[:0], gates: s.gates[:0], at: s.at[:0], parts: s.parts[:0], marks: s.marks[:0],
		said: s.said[:0], shown: s.shown[:0]}
}

// spot is where a gate was called: the place of the message that it is about.
type spot struct {
	phase   results.Phase
	message int
}

// observe keeps a gate call, whose rows are there already. The event is not kept:
// Memory may use it again.
func (s *script) observe(e *memory.Event, rows []results.Decision) {
	add := func(seq int32, row *results.Decision, record, text string, v memory.Verdict) {
		c := results.GateCall{Seq: seq, Gate: row.Gate, Route: row.Route, Op: row.Op, Action: row.Action,
			Record: record, Text: text}
		if v.Action == memory.Redact {
			c.Shown = v.Text
		}
		for _, f := range v.Findings {
			c.Findings = append(c.Findings, results.Finding(f))
		}
		s.gates = append(s.gates, c)
		s.at = append(s.at, spot{results.PhaseOf(row.Session), e.Message})
	}
	row := &rows[0]
	switch e.Moment {
	case memory.AtInput:
		add(row.Seq, row, "segment "+strconv.Itoa(e.Segment.ID), "", e.Verdict)
	case memory.AtWrite:
		add(row.Seq, row, row.Record, e.Proposal.Record.Text, e.Verdict)
	case memory.AtAct:
		add(row.Seq, row, e.Call.Tool, "", e.Verdict)
	case memory.AtRead:
		add(row.Seq, row, "", "", memory.Verdict{})
		rows = rows[1:]
		for i, d := range e.Decisions {
			id := e.Candidates[i].Record.ID
			switch {
			case len(rows) > 0 && rows[0].Record == id:
				add(rows[0].Seq, &rows[0], id, "", d.Verdict)
				rows = rows[1:]
			case len(d.Findings) > 0:
				one := *row
				one.Action = d.Action.String()
				add(-1, &one, id, "", d.Verdict)
			}
		}
	}
}

// transcript is that of a trial, whose memory was noted as it changed.
func (s *sessions) transcript(t *results.Trial) results.Transcript {
	if s.mem != nil {
		s.memory.After = s.changed(s.mem)
	}
	out := results.Transcript{Memory: s.memory,
		Trial: t.ID, Case: t.Case, Agent: t.Agent, Defense: t.Defense, Model: t.Model, Epoch: t.Epoch,
		Error: t.Reason, Sessions: make([]results.Session, 0, 3)}
	s.session(&out, results.PhaseWrite, s.write)
	s.session(&out, results.PhaseBetween, s.gap)
	s.session(&out, results.PhaseRetrieval, s.later)
	return out
}

// known is a record as the transcript last showed it.
type known struct {
	id, text string
	state    memory.State
}

// changed are the records that are new or have changed since the last time.
func (s *script) changed(mem *memory.Memory) []results.Record {
	i, before := 0, len(s.shown)
	for r := range mem.Each {
		// The order of commits never changes: an older record has the same place.
		now := known{r.ID, r.Text, r.State}
		if i == len(s.known) {
			s.known = append(s.known, known{})
		}
		if s.known[i] != now {
			s.known[i] = now
			s.shown = append(s.shown, results.Record{ID: r.ID, Store: r.Store, Key: r.Key, Text: r.Text,
				State: r.State.String(), Origin: originOf(r.Origin)})
		}
		i++
	}
	return s.shown[before:len(s.shown):len(s.shown)]
}

func originOf(o memory.Origin) results.Origin {
	return results.Origin{Class: o.Class.String(), Medium: string(o.Medium), Source: o.Source}
}

// session adds a session, if it was held: its messages, with the decisions about each
// beside it.
func (s *script) session(t *results.Transcript, phase results.Phase, o *agents.Outcome) {
	if o == nil {
		return
	}
	out, first := results.Session{Phase: phase}, len(s.said)
	actions, asides, marks, asked := o.Actions, o.Asides, s.marksOf(o), o.Asked
	for i := range o.Messages {
		from := &o.Messages[i]
		to := results.Message{Role: string(from.Role), Name: from.Name, Content: from.Content}
		for len(asides) > 0 && asides[0][1] <= i {
			asides = asides[1:]
		}
		to.Aside = len(asides) > 0 && asides[0][0] <= i
		before, at := len(s.parts), 0
		for ; len(marks) > 0 && marks[0].Message == i; marks = marks[1:] {
			m := marks[0]
			if m.From > at {
				s.parts = append(s.parts, results.Part{Text: from.Content[at:m.From]})
			}
			m.Text, at = from.Content[m.From:m.To], m.To
			s.parts = append(s.parts, m.Part)
		}
		if at > 0 {
			if at < len(from.Content) {
				s.parts = append(s.parts, results.Part{Text: from.Content[at:]})
			}
			to.Content, to.Parts = "", s.parts[before:len(s.parts):len(s.parts)]
		}
		if len(from.Calls) > 0 {
			to.Calls = make([]results.ToolCall, len(from.Calls))
		}
		for k, c := range from.Calls {
			call := &to.Calls[k]
			call.Name, call.Args = c.Name, make([]results.Arg, len(c.Args))
			if len(actions) > 0 && actions[0].Result == i+1+k {
				call.Acts, call.Vetoed, actions = true, actions[0].Vetoed, actions[1:]
			}
			for n, a := range c.Args {
				call.Args[n] = results.Arg(a)
			}
		}
		for ; len(asked) > 0 && asked[0].Message <= i; asked = asked[1:] {
			for _, x := range asked[0].Exchanges {
				to.Exchanges = append(to.Exchanges, results.Exchange{Prompt: x.Prompt, Completion: x.Completion,
					Estimated: x.Estimated, Requests: x.Calls, Micros: int(x.Took.Microseconds()), Sent: x.Sent,
					Answered: x.Answered})
			}
		}
		to.Decisions = s.about(phase, i)
		s.said = append(s.said, to)
	}
	out.Messages = s.said[first:len(s.said):len(s.said)]
	out.Decisions = s.about(phase, math.MaxInt)
	for _, m := range marks {
		out.Outside = append(out.Outside, m.Part)
	}
	t.Sessions = append(t.Sessions, out)
}

// about are the gate calls about a message, which follow those before it.
func (s *script) about(phase results.Phase, message int) []results.GateCall {
	first := s.placed
	for s.placed < len(s.at) && s.at[s.placed].phase == phase && s.at[s.placed].message <= message {
		s.placed++
	}
	return s.gates[first:s.placed]
}

// mark is a stretch of a message that has an origin of its own.
type mark struct {
	agents.Place
	results.Part
}

// marksOf are the segments and records of a session in the order of its messages. Behind
// them are those that stand in none of them.
func (s *script) marksOf(o *agents.Outcome) []mark {
	marks := s.marks[:0]
	for i := range o.Segments {
		t := &o.Segments[i]
		marks = append(marks, mark{t.Place, results.Part{Text: t.Text, Origin: originOf(t.Origin), Segment: t.ID}})
	}
	for i := range o.Recalled {
		r := &o.Recalled[i]
		marks = append(marks, mark{r.Place, results.Part{Text: r.Text, Origin: originOf(r.Origin),
			Record: r.Record, Route: r.Route.String(), Attributed: r.Attributed}})
	}
	for i := range marks {
		if m := &marks[i]; m.From == m.To {
			m.Message = len(o.Messages)
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.Message, b.Message), cmp.Compare(a.From, b.From))
	})
	s.marks = marks
	return marks
}
