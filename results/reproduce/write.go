package reproduce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
)

// Formats are the formats that a report can be written in.
func Formats() []string { return []string{"table", "json", "markdown"} }

// Write writes the report as table, json or markdown.
func (r *Report) Write(w io.Writer, format string) error {
	var b bytes.Buffer
	switch format {
	case "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("encoding the table: %w", err)
		}
	case "table", "markdown":
		markdown := format == "markdown"
		line := func(bullet bool, format string, args ...any) {
			s := fmt.Sprintf(format, args...)
			if !markdown {
				b.WriteString(inert.Text(s) + "\n")
				return
			}
			if bullet {
				b.WriteString("- ")
			}
			b.WriteString(inert.Markdown(s) + "\n")
		}
		if markdown {
			b.WriteString("### ")
		}
		line(false, "%s: %s", r.Table.Name, r.Table.Title)
		b.WriteByte('\n')
		line(false, "published: %s", r.Table.Source)
		b.WriteByte('\n')
		g := &render.Table{Header: []string{"figure", "published", "measured here", "by", "verdict", "reason"}}
		for _, x := range r.Rows {
			g.Add(x.Figure, x.Published, x.Measured, x.By, string(x.Verdict), x.Reason)
		}
		var err error
		if markdown {
			err = g.Markdown(&b)
		} else {
			err = g.Text(&b)
		}
		if err != nil {
			return err
		}
		b.WriteByte('\n')
		for _, f := range r.Table.Figures {
			if f.Note != "" {
				line(true, "%s: %s", f.ID, f.Note)
			}
		}
		for _, n := range r.Table.Notes {
			line(true, "known: %s", n)
		}
		for i, n := range r.Needs {
			if i == 0 {
				b.WriteByte('\n')
				line(false, "to measure what is missing:")
				if markdown {
					b.WriteByte('\n')
				}
			}
			line(true, "%s", n)
		}
		b.WriteByte('\n')
		line(false, "%s", r.Verdict())
	default:
		return usage(fmt.Sprintf("unknown format %q", format), "one of "+strings.Join(Formats(), ", "))
	}
	_, err := w.Write(inert.JSON(b.Bytes()))
	return err
}

// Verdict is the outcome in a line.
func (r *Report) Verdict() string {
	if len(r.Table.Figures) == 0 {
		return fmt.Sprintf("%d rows; the source gives no figures to hold them against", len(r.Rows))
	}
	return fmt.Sprintf("%d inside, %d outside, %d not comparable", r.Count(Inside), r.Count(Outside),
		r.Count(NotComparable))
}
