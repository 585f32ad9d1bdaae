package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
)

// library reads transcripts of the compared runs when they are wanted.
type library struct {
	tables  []*Table
	readers map[int]*results.Reader
}

func (l *library) close() {
	for _, r := range l.readers {
		r.Close()
	}
}

// add puts the transcripts into the changed cases.
func (l *library) add(cs []Comparison) (err error) {
	for i := range cs {
		for j := range cs[i].Changed {
			k := &cs[i].Changed[j]
			if k.TranscriptA, _, err = l.get(cs[i].A.Run, k.TrialA); err == nil {
				k.TranscriptB, _, err = l.get(cs[i].B.Run, k.TrialB)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// get returns a transcript as it is written and as it is read, both nil where the trial
// left none.
func (l *library) get(run int, trial string) (json.RawMessage, *results.Transcript, error) {
	r := l.readers[run]
	if r == nil {
		var err error
		if r, err = results.OpenReader(l.tables[run].dir); err != nil {
			return nil, nil, err
		}
		l.readers[run] = r
	}
	b, err := r.Transcript(trial)
	if errors.Is(err, results.ErrNoTranscript) {
		return nil, nil, nil
	}
	var t *results.Transcript
	if err == nil {
		if t, err = results.ParseTranscript(b); err != nil {
			err = fmt.Errorf("reading the transcript of trial %s in %s: %w", trial, l.tables[run].Name, err)
		}
	}
	return b, t, err
}

// mostText is how much of a message a list shows, in characters.
const mostText = 240

func short(s string) string {
	if len(s) > 8*mostText {
		s = inert.Clip(s, 4*mostText)
	}
	return inert.Clip(strings.Join(strings.Fields(s), " "), mostText)
}

// sayTranscript prints the sessions, without the system prompts, and at each message the
// decisions about it that were not an allow.
func sayTranscript(p *render.Paper, side string, t *results.Transcript) {
	if t == nil {
		p.Under("%s: no transcript was kept", side)
		return
	}
	for _, s := range t.Sessions {
		session := s.Phase.Title()
		decided := func(calls []results.GateCall) {
			for _, d := range calls {
				if d.Action == "allow" {
					continue
				}
				checks := make([]string, len(d.Findings))
				for j, f := range d.Findings {
					checks[j] = f.Check
				}
				p.Under("%s, %s, %s gate: %s %s (%s): %s", side, session, d.Gate, d.Action, d.Record, strings.Join(checks, ", "),
					short(d.Text))
			}
		}
		for _, m := range s.Messages {
			who := m.Role
			if m.Name != "" {
				who += " " + m.Name
			}
			if text := m.Text(); text != "" && m.Role != "system" {
				p.Under("%s, %s, %s: %s", side, session, who, short(text))
			}
			for _, k := range m.Calls {
				p.Under("%s, %s, %s calls %s %s", side, session, who, k.Name, short(k.Args.String()))
			}
			decided(m.Decisions)
		}
		decided(s.Decisions)
	}
}
