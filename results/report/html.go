package report

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
)

var (
	//go:embed page.html
	pageText string
	//go:embed style.css
	styleText string
)

// Compiled once and never changed.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"shown": inert.Text,
	"isNumber": func(i int, t render.Table) bool {
		return i >= t.Labels
	},
}).Parse(pageText))

// HTML writes the page. It needs nothing else: no script, no font, no request.
func (r *Report) HTML(w io.Writer) error {
	lead, sections := r.sections()
	style := "\n" + styleText
	hash := sha256.Sum256([]byte(style))
	out := bufio.NewWriterSize(w, 1<<16)
	err := page.Execute(out, map[string]any{
		"Title":    "memtox report " + r.run.ID,
		"Run":      r.run,
		"Status":   lead.Title,
		"Banners":  lead.Notes,
		"Sections": sections,
		"Warnings": r.warnings(),
		"Style":    template.CSS(style), // a file of this package
		// The hash allows this style sheet and no other; there is no script at all.
		"Policy": "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'",
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing the report of run %s: %w", r.run.ID, err)
	}
	return nil
}
