package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/memtox/memtox/internal/inert"
)

// Markdown writes the page without its plots, in GitHub's dialect.
func (r *Report) Markdown(w io.Writer) error {
	var b bytes.Buffer
	status, banners := r.lead()
	fmt.Fprintf(&b, "# memtox report\n\nRun %s, memtox %s, started %s\n\n%s\n", inert.Markdown(r.run.ID),
		inert.Markdown(r.run.Version),
		r.run.Started.UTC().Format("2006-01-02 15:04 UTC"), inert.Markdown(status))
	for _, text := range banners {
		fmt.Fprintf(&b, "\n> %s\n", inert.Markdown(text))
	}
	for _, s := range r.sections() {
		fmt.Fprintf(&b, "\n## %s\n", s.Title)
		for _, n := range s.Notes {
			fmt.Fprintf(&b, "\n%s\n", inert.Markdown(n))
		}
		for _, f := range s.Figures {
			fmt.Fprintf(&b, "\n%s\n\n", inert.Markdown(f.Caption))
			if err := f.Table.Markdown(&b); err != nil {
				return err
			}
		}
	}
	if ws := r.warnings(); len(ws) > 0 {
		fmt.Fprint(&b, "\n## Warnings\n\n")
		for _, text := range ws {
			fmt.Fprintf(&b, "- %s\n", inert.Markdown(text))
		}
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("writing the report of run %s: %w", r.run.ID, err)
	}
	return nil
}
