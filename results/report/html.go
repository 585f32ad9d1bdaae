package report

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

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
	"wide": wideness,
	// headOf is what a cell says of itself where its row is a card.
	"headOf": func(i int, t render.Table) string {
		if wideness(t) == "" {
			return ""
		}
		return t.Header[i]
	},
}).Parse(pageText))

// wideness is the class of a table whose rows become cards where there is little room, by
// the longest word of each column: what a phone cannot show, and what a tablet cannot.
func wideness(t render.Table) string {
	phone, tablet := 0., 0.
	for i := range t.Header {
		longest := 0
		for _, row := range slices.Concat([][]string{t.Header}, t.Rows) {
			for _, word := range strings.FieldsFunc(row[i], func(r rune) bool { return r == ' ' || r == '-' }) {
				longest = max(longest, len([]rune(word)))
			}
		}
		phone += 6.6*float64(longest) + 5
		tablet += 8*float64(longest) + 15
	}
	switch {
	case tablet > 640:
		return "wide"
	case phone > 320:
		return "mid"
	}
	return ""
}

// HTML writes the page. It needs nothing else: no script, no font, no request.
func (r *Report) HTML(w io.Writer) error {
	lead, sections := r.sections()
	style := "\n" + render.HeatStyle + styleText
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
