package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/memtox/memtox/internal/inert"
)

// Grid is a table of texts. Whatever they hold, they break no line and colour
// no terminal.
type Grid struct {
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// Text writes the grid for a terminal.
func (g *Grid) Text(w io.Writer) error {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateColumns: true}
	style.Box.PaddingLeft, style.Box.PaddingRight, style.Box.MiddleVertical = "", "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	row := func(cells []string) table.Row {
		out := make(table.Row, len(cells))
		for i, c := range cells {
			out[i] = inert.Text(c)
		}
		return out
	}
	t.AppendHeader(row(g.Columns))
	for _, r := range g.Rows {
		t.AppendRow(row(r))
	}
	var b strings.Builder
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the grid as a Markdown table.
func (g *Grid) Markdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteByte('|')
		for _, c := range cells {
			b.WriteString(" " + inert.Markdown(c) + " |")
		}
		b.WriteByte('\n')
	}
	line(g.Columns)
	b.WriteString(strings.Repeat("|---", len(g.Columns)) + "|\n")
	for _, r := range g.Rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// percent gives a share with one digit.
func percent(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
