package reproduce

import (
	"fmt"
	"io"

	"github.com/memtox/memtox/results/render"
)

// Write writes the report as table, json or markdown.
func (r *Report) Write(w io.Writer, format string) error { return render.Write(w, format, r, r.say) }

func (r *Report) say(p *render.Paper) error {
	p.Heading(3, "%s: %s", r.Table.Name, r.Table.Title)
	p.Say("published: %s", r.Table.Source)
	p.Gap()
	t := &render.Table{Header: []string{"figure", "published", "measured here", "by", "verdict", "reason"}}
	for _, x := range r.Rows {
		t.Add(x.Figure, x.Published, x.Measured, x.By, string(x.Verdict), x.Reason)
	}
	p.Table(t)
	for _, f := range r.Table.Figures {
		if f.Note != "" {
			p.Item("%s: %s", f.ID, f.Note)
		}
	}
	for _, n := range r.Table.Notes {
		p.Item("known: %s", n)
	}
	p.Gap()
	if len(r.Needs) > 0 {
		p.Say("to measure what is missing:")
		for _, n := range r.Needs {
			p.Item("%s", n)
		}
		p.Gap()
	}
	p.Say("%s", r.Verdict())
	return nil
}

// Verdict is the outcome in a line.
func (r *Report) Verdict() string {
	if len(r.Table.Figures) == 0 {
		return fmt.Sprintf("%d rows; the source gives no figures to hold them against", len(r.Rows))
	}
	return fmt.Sprintf("%d inside, %d outside, %d not comparable", r.Count(Inside), r.Count(Outside),
		r.Count(NotComparable))
}
