package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results"
)

// library reads transcripts of the compared runs when they are wanted.
type library struct {
	tables  []*Table
	readers map[int]*results.Reader
}

func (r *Report) transcripts() *library {
	return &library{tables: r.tables, readers: map[int]*results.Reader{}}
}

func (l *library) close() {
	for _, r := range l.readers {
		r.Close()
	}
}

// get returns a transcript, or nil where the trial left none.
func (l *library) get(run int, trial string) (json.RawMessage, error) {
	r := l.readers[run]
	if r == nil {
		var err error
		if r, err = results.OpenReader(l.tables[run].dir); err != nil {
			return nil, err
		}
		l.readers[run] = r
	}
	b, err := r.Transcript(trial)
	if errors.Is(err, results.ErrNoTranscript) {
		return nil, nil
	}
	if err == nil && !json.Valid(b) {
		err = fmt.Errorf("reading the transcript of trial %s in %s: it is no JSON", trial, l.tables[run].Name)
	}
	return b, err
}

// conversation is the part of a transcript that a list of changed cases shows.
type conversation struct {
	Sessions []struct {
		Phase    results.Phase `json:"phase"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Name    string `json:"name"`
			Calls   []struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"calls"`
		} `json:"messages"`
	} `json:"sessions"`
	Decisions []struct {
		Session  int    `json:"session"`
		Gate     string `json:"gate"`
		Route    string `json:"route"`
		Record   string `json:"record"`
		Text     string `json:"text"`
		Action   string `json:"action"`
		Findings []struct {
			Check string `json:"check"`
		} `json:"findings"`
	} `json:"decisions"`
}

// mostText is how much of a message a list shows, in characters.
const mostText = 240

func short(s string) string {
	if len(s) > 8*mostText {
		s = inert.Clip(s, 4*mostText)
	}
	return inert.Clip(strings.Join(strings.Fields(s), " "), mostText)
}

// transcript prints the sessions, without the system prompts, and the decisions
// that were not an allow.
func (p *printer) transcript(side string, raw json.RawMessage) {
	indent := "    "
	if p.markdown {
		indent = "  - "
	}
	line := func(format string, args ...any) {
		if p.err != nil {
			return
		}
		if _, p.err = p.w.Write([]byte(indent)); p.err == nil {
			p.say(format, args...)
		}
	}
	if raw == nil {
		line("%s: no transcript was kept", side)
		return
	}
	var c conversation
	if err := json.Unmarshal(raw, &c); err != nil {
		line("%s: the transcript has another form: %v", side, err)
		return
	}
	for i, s := range c.Sessions {
		session := cmp.Or(s.Phase, results.PhaseAt(i)).Title()
		for _, m := range s.Messages {
			if m.Role == "system" {
				continue
			}
			who := m.Role
			if m.Name != "" {
				who += " " + m.Name
			}
			if m.Content != "" {
				line("%s, %s, %s: %s", side, session, who, short(m.Content))
			}
			for _, k := range m.Calls {
				line("%s, %s, %s calls %s %s", side, session, who, k.Name, short(string(k.Args)))
			}
		}
		for _, d := range c.Decisions {
			if d.Session != i+1 || d.Action == "allow" {
				continue
			}
			checks := make([]string, len(d.Findings))
			for j, f := range d.Findings {
				checks[j] = f.Check
			}
			line("%s, %s, %s gate: %s %s (%s): %s", side, session, d.Gate, d.Action, d.Record, strings.Join(checks, ", "), short(d.Text))
		}
	}
}
