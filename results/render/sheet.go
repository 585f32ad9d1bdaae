package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/stats"
)

// Sheet is a table of somebody else's figures, printed as those of a run are: cells
// are made inert, long names clipped, and columns that do not fit go to a table
// below.
type Sheet struct {
	Title  string
	Labels int // leading columns that say what a row is
	Header []string
	Rows   [][]string
}

// Rate is "1234/1620 76.2% [70.1, 81.0]", or "not measured".
func Rate(r stats.Rate) string { return rate(r) }

// Latency is "1.2/3.4/9.8/20 µs" of quantiles in microseconds, in milliseconds where
// the one before the last has ten or more; "not measured" where one is nil.
func Latency(us ...*float64) string {
	unit, by := "µs", 1.0
	for i, v := range us {
		if v == nil {
			return notMeasured
		}
		if i == max(0, len(us)-2) && *v >= 10_000 {
			unit, by = "ms", 1000
		}
	}
	parts := make([]string, len(us))
	for i, v := range us {
		parts[i] = short(*v / by)
	}
	return strings.Join(parts, "/") + " " + unit
}

// Sheets prints lines, tables and closing lines for a person.
func Sheets(w io.Writer, heading []string, sheets []Sheet, notes []string, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	o.Width = max(o.Width, minWidth)
	var b strings.Builder
	for _, line := range heading {
		b.WriteString(wrap(inert.Text(line), o.Width))
	}
	for _, s := range sheets {
		g := grid{title: s.Title, labels: s.Labels, header: s.Header, rows: s.Rows}
		for _, part := range split(clean(g, inert.Text), o.Width) {
			b.WriteString("\n" + bold(strings.TrimSuffix(wrap(part.title, o.Width), "\n"), o) + "\n")
			b.WriteString(draw(part, o) + "\n")
		}
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, line := range notes {
		b.WriteString(wrap(inert.Text(line), o.Width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SheetsMarkdown prints the same as Markdown.
func SheetsMarkdown(w io.Writer, heading []string, sheets []Sheet, notes []string) error {
	var b strings.Builder
	for _, line := range heading {
		b.WriteString(inert.Markdown(line) + "\n\n")
	}
	for _, s := range sheets {
		g := clean(grid{title: s.Title, labels: s.Labels, header: s.Header, rows: s.Rows}, inert.Markdown)
		fmt.Fprintf(&b, "### %s\n\n", g.title)
		b.WriteString("| " + strings.Join(g.header, " | ") + " |\n|" + strings.Repeat("---|", g.labels) + strings.Repeat("---:|", len(g.header)-g.labels) + "\n")
		for _, row := range g.rows {
			b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
		b.WriteByte('\n')
	}
	for _, line := range notes {
		b.WriteString("- " + inert.Markdown(line) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
