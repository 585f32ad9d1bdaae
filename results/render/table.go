package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/summary"
)

// DefaultWidth is the width of a table, in columns, where none is given.
const DefaultWidth = 120

// minWidth is the least width that is tried: one label and one rate.
const minWidth = 60

// maxName is the length at which names from cases and configurations are cut.
const maxName = 28

// Options of Table.
type Options struct {
	// Width is the width of the terminal in columns; DefaultWidth if 0. Tables
	// that are wider are split.
	Width int
	// Terminal allows bold type. Without it nothing but text is written.
	Terminal bool
}

// Table prints a summary for a person.
func Table(w io.Writer, s *summary.Summary, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	o.Width = max(o.Width, minWidth)
	var b strings.Builder
	for _, line := range heading(s) {
		b.WriteString(wrap(inert.Text(line), o.Width))
	}
	for _, g := range grids(s) {
		for _, part := range split(clean(g, inert.Text), o.Width) {
			b.WriteString("\n" + bold(strings.TrimSuffix(wrap(part.title, o.Width), "\n"), o) + "\n")
			b.WriteString(draw(part, o) + "\n")
		}
	}
	b.WriteString("\n")
	for _, line := range footnotes(s) {
		b.WriteString(wrap(inert.Text(line), o.Width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON prints a summary as one object on one line.
func JSON(w io.Writer, s *summary.Summary) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	_, err = w.Write(append(inert.JSON(b), '\n'))
	return err
}

// Markdown prints a summary as Markdown, for a file, a wiki or a pull request.
func Markdown(w io.Writer, s *summary.Summary) error {
	var b strings.Builder
	for _, line := range heading(s) {
		b.WriteString(inert.Markdown(line) + "\n\n")
	}
	for _, g := range grids(s) {
		g = clean(g, inert.Markdown)
		b.WriteString("### " + g.title + "\n\n")
		b.WriteString("| " + strings.Join(g.header, " | ") + " |\n|")
		for i := range g.header {
			if i < g.labels {
				b.WriteString("---|")
			} else {
				b.WriteString("---:|")
			}
		}
		for _, row := range g.rows {
			b.WriteString("\n| " + strings.Join(row, " | ") + " |")
		}
		b.WriteString("\n\n")
	}
	for _, line := range footnotes(s) {
		b.WriteString("- " + inert.Markdown(line) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// clean clips and escapes every cell. Titles are our own.
func clean(g grid, escape func(string) string) grid {
	list := func(in []string, clip int) []string {
		out := make([]string, len(in))
		for i, s := range in {
			if i < clip {
				s = inert.Clip(s, maxName)
			}
			out[i] = escape(s)
		}
		return out
	}
	out := grid{title: g.title, labels: g.labels, header: list(g.header, len(g.header))}
	for _, row := range g.rows {
		out.rows = append(out.rows, list(row, g.labels))
	}
	return out
}

// gap is the width of the space between two columns.
const gap = 2

// split splits a table into several with as many columns each as fit. At least
// one does, however narrow it is.
func split(g grid, width int) []grid {
	widths := make([]int, len(g.header))
	for i, h := range g.header {
		widths[i] = text.StringWidthWithoutEscSequences(h)
		for _, row := range g.rows {
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	labels := 0
	for _, w := range widths[:g.labels] {
		labels += w + gap
	}
	var out []grid
	for from := g.labels; from < len(g.header); {
		to, used := from, labels
		for to < len(g.header) && (to == from || used+widths[to] <= width) {
			used += widths[to] + gap
			to++
		}
		part := grid{title: g.title, labels: g.labels, header: cut(g.header, g.labels, from, to)}
		if from > g.labels {
			part.title += " (continued)"
		}
		for _, row := range g.rows {
			part.rows = append(part.rows, cut(row, g.labels, from, to))
		}
		out = append(out, part)
		from = to
	}
	return out
}

func cut(row []string, labels, from, to int) []string {
	return append(append([]string(nil), row[:labels]...), row[from:to]...)
}

// style is plain text: columns apart by spaces, one rule under the header.
func style() table.Style {
	return table.Style{Name: "memtox", Box: table.BoxStyle{MiddleHorizontal: "─", MiddleVertical: "  ", MiddleSeparator: "──"},
		Format:  table.FormatOptions{Header: text.FormatDefault},
		Options: table.Options{SeparateColumns: true, SeparateHeader: true}}
}

func draw(g grid, o Options) string {
	t := table.NewWriter()
	t.SetStyle(style())
	t.AppendHeader(cells(g.header))
	var configs []table.ColumnConfig
	for i := range g.header {
		if i >= g.labels {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(configs)
	last := ""
	for i, row := range g.rows {
		r := cells(row)
		if i > 0 && row[0] == last {
			r[0] = "" // the same agent
		} else if i > 0 && g.labels > 1 {
			t.AppendSeparator()
		}
		last = row[0]
		t.AppendRow(r)
	}
	lines := strings.Split(t.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	lines[0] = bold(lines[0], o)
	return strings.Join(lines, "\n")
}

func cells(list []string) table.Row {
	row := make(table.Row, len(list))
	for i, s := range list {
		row[i] = s
	}
	return row
}

func bold(s string, o Options) string {
	if !o.Terminal {
		return s
	}
	return text.Bold.Sprint(s)
}

// wrap breaks a line between words and ends it.
func wrap(line string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(line) {
		n := text.StringWidthWithoutEscSequences(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n  ")
			at = 2
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
	return b.String()
}
