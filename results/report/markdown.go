package report

import (
	"fmt"
	"io"

	"github.com/memtox/memtox/results/render"
)

// Markdown writes the page without its plots, in GitHub's dialect.
func (r *Report) Markdown(w io.Writer) error {
	if err := render.Write(w, "markdown", nil, r.say); err != nil {
		return fmt.Errorf("writing the report of run %s: %w", r.run.ID, err)
	}
	return nil
}

func (r *Report) say(p *render.Paper) error {
	lead, sections := r.sections()
	p.Heading(1, "memtox report")
	p.Say("Run %s, memtox %s, started %s", r.run.ID, r.run.Version, r.run.Started.UTC().Format("2006-01-02 15:04 UTC"))
	p.Say("%s", lead.Title)
	for _, text := range lead.Notes {
		p.Note("%s", text)
	}
	for _, s := range sections {
		p.Heading(2, "%s", s.Title)
		for _, n := range s.Notes {
			p.Say("%s", n)
		}
		for _, f := range s.Figures {
			p.Say("%s", f.Caption)
			p.Table(&f.Table)
		}
	}
	if ws := r.warnings(); len(ws) > 0 {
		p.Heading(2, "Warnings")
		for _, text := range ws {
			p.Item("%s", text)
		}
	}
	return nil
}
