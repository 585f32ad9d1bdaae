package view

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/memtox/memtox/results"
)

// Page is one trial with everything that is known of it.
type Page struct {
	Trial    [][2]any  `json:"trial"` // names and values of its columns
	Sessions []Session `json:"sessions"`
	// Decisions are those that no session shows, where there is no transcript.
	Decisions []Decision      `json:"decisions,omitempty"`
	Memory    *results.Memory `json:"memory,omitempty"`
	// Poison and Legit are the records that hold what the attacker wants, or the
	// expected memory.
	Poison []string `json:"poison,omitempty"`
	Legit  []string `json:"legit,omitempty"`
	// Verdicts are what a language model answered where one judged the trial; its
	// columns are in Trial.
	Verdicts []results.Answer `json:"verdicts,omitempty"`
	// Problem says why there is no transcript.
	Problem string `json:"problem,omitempty"`
}

// Session is one session turn by turn.
type Session struct {
	Title string `json:"title"`
	Turns []Turn `json:"turns"`
	// Rest are decisions that its transcript puts beside no message.
	Rest []Decision `json:"rest,omitempty"`
}

// Turn is one message with the decisions about it.
type Turn struct {
	*results.Message
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is one gate call: the columns of its row, and what the transcript adds.
type Decision struct {
	Row  map[string]any    `json:"row"`
	Call *results.GateCall `json:"call,omitempty"`
}

var errNoTranscript = errors.New("the run kept no transcript of this trial, so only its rows are shown " +
	"(a trial that does not apply has none, nor has any where the setting transcripts is none)")

// page puts a trial together.
func (s *snapshot) page(id string) (*Page, error) {
	row, ok := s.table.row(id)
	if !ok {
		return nil, errNoTrial
	}
	e, err := s.entry(row)
	if err != nil {
		return nil, err
	}
	text, err := s.transcript(id)
	if errors.Is(err, errSuperseded) {
		return nil, err
	}
	return pageOf(e, text, err), nil
}

// pageOf puts a trial together, with the error where it has no transcript.
func pageOf(e *results.Entry, text []byte, err error) *Page {
	p, t := &Page{Trial: columnsOf(&e.Trial)}, new(results.Transcript)
	for _, d := range e.Decisions {
		if d.Poison {
			p.Poison = append(p.Poison, d.Record)
		}
		if d.Legit {
			p.Legit = append(p.Legit, d.Record)
		}
	}
	if err == nil {
		if t, err = results.ParseTranscript(text); err != nil {
			err = fmt.Errorf("reading the transcript of trial %s: %w", e.Trial.ID, err)
		}
	}
	if errors.Is(err, results.ErrNoTranscript) {
		err = errNoTranscript
	}
	if err != nil {
		p.Problem, t = err.Error(), new(results.Transcript)
	} else {
		p.Memory = &t.Memory
	}
	p.Verdicts = t.Judge
	p.sessions(t, e.Decisions)
	return p
}

// sessions shows every decision once: at the message where the transcript has it, else
// behind its session.
func (p *Page) sessions(t *results.Transcript, rows []results.Decision) {
	calls := make([]*results.GateCall, len(rows))
	shown := make([]bool, len(rows))
	p.Sessions = make([]Session, len(t.Sessions))
	for i := range t.Sessions {
		from, to := &t.Sessions[i], &p.Sessions[i]
		to.Title, to.Turns = from.Phase.Title(), make([]Turn, len(from.Messages))
		for k := range from.Messages {
			m := &from.Messages[k]
			to.Turns[k].Message = m
			for c := range m.Decisions {
				if n := int(m.Decisions[c].Seq); n >= 0 && n < len(rows) && !shown[n] {
					shown[n] = true
					to.Turns[k].Decisions = append(to.Turns[k].Decisions, decisionOf(&rows[n], &m.Decisions[c]))
				}
			}
		}
		for c := range from.Decisions {
			if n := rowOf(&from.Decisions[c], from.Phase, rows, calls); n >= 0 {
				calls[n] = &from.Decisions[c]
			}
		}
	}
	for i := range rows {
		if shown[i] {
			continue
		}
		d, phase := decisionOf(&rows[i], calls[i]), results.PhaseOf(rows[i].Session)
		if s := slices.IndexFunc(t.Sessions, func(s results.Session) bool { return s.Phase == phase }); s >= 0 {
			p.Sessions[s].Rest = append(p.Sessions[s].Rest, d)
		} else {
			p.Decisions = append(p.Decisions, d)
		}
	}
}

// rowOf is the place of the row of a gate call, or -1. Transcripts of older versions do
// not say it: there the row is the first that has no call and says the same.
func rowOf(c *results.GateCall, phase results.Phase, rows []results.Decision, calls []*results.GateCall) int {
	for i := range rows {
		r := &rows[i]
		if c.Seq == r.Seq {
			return i
		}
		if c.Seq < 0 && calls[i] == nil && results.PhaseOf(r.Session) == phase &&
			r.Gate == c.Gate && r.Route == c.Route && r.Op == c.Op && r.Action == c.Action &&
			(r.Record == c.Record || r.Gate == results.GateInput || r.Gate == results.GateAct) {
			return i
		}
	}
	return -1
}

func decisionOf(r *results.Decision, c *results.GateCall) Decision {
	d := Decision{Row: map[string]any{}, Call: c}
	for _, c := range columnsOf(r) {
		d.Row[c[0].(string)] = c[1]
	}
	return d
}

// columnsOf lists a row's columns in the order of the file. Numbers of 64 bits
// are texts: a script would lose their last digits.
func columnsOf(row any) (out [][2]any) {
	v := reflect.ValueOf(row).Elem()
	for i, name := range results.Columns(v.Type()) {
		x := plain(v.Field(i))
		if v.Field(i).Kind() == reflect.Int64 {
			x = fmt.Sprint(x)
		}
		out = append(out, [2]any{name, x})
	}
	return out
}
