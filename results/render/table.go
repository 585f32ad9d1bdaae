package render

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/memtox/memtox/internal/inert"
)

// DefaultWidth is the width of a table, in columns, where none is given.
const DefaultWidth = 120

// minWidth is the least width that is tried: one label and one rate.
const minWidth = 60

// maxName is the length at which names from cases and configurations are cut.
const maxName = 28

// Options of what is printed for a terminal.
type Options struct {
	// Width is the width of the terminal in columns; DefaultWidth if 0. Tables
	// that are wider are split.
	Width int
	// Full prints every table of a run.
	Full bool
	// Terminal allows bold type. Without it nothing but text is written.
	Terminal bool
}

// Table is a table of texts. Whatever they hold, they break no line and colour no
// terminal.
type Table struct {
	Title string
	// Labels is how many leading columns say what a row is; the others are figures, which
	// stand to the right. 0 is a list of texts.
	Labels int
	Header []string
	Rows   [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Text writes the table for a terminal of any width.
func (t *Table) Text(w io.Writer) error {
	_, err := io.WriteString(w, draw(clean(*t, inert.Text), Options{}))
	return err
}

// Markdown writes the table for a file, a wiki or a pull request.
func (t *Table) Markdown(w io.Writer) error {
	_, err := io.WriteString(w, t.markdown())
	return err
}

func (t *Table) markdown() string {
	c := clean(*t, inert.Markdown)
	labels := cmp.Or(c.Labels, len(c.Header))
	var b strings.Builder
	b.WriteString("| " + strings.Join(c.Header, " | ") + " |\n|" + strings.Repeat("---|", labels) +
		strings.Repeat("---:|", len(c.Header)-labels) + "\n")
	for _, row := range c.Rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// cross is a table that is filled by the names of its rows and columns.
type cross struct {
	Table
	empty string // what stands where nothing was set; NotMeasured if ""
}

// column finds a column or adds it.
func (x *cross) column(name string) int {
	at := slices.Index(x.Header[x.Labels:], name)
	if at < 0 {
		at = len(x.Header) - x.Labels
		x.Header = append(x.Header, name)
	}
	return x.Labels + at
}

// row finds a row by its labels or adds it. It has a cell for every column so far.
func (x *cross) row(labels []string) []string {
	at := slices.IndexFunc(x.Rows, func(row []string) bool { return slices.Equal(row[:x.Labels], labels) })
	if at < 0 {
		at = len(x.Rows)
		x.Add(slices.Clone(labels)...)
	}
	for len(x.Rows[at]) < len(x.Header) {
		x.Rows[at] = append(x.Rows[at], cmp.Or(x.empty, NotMeasured))
	}
	return x.Rows[at]
}

// whole is the table with a cell for every column in every row.
func (x *cross) whole() Table {
	for _, row := range x.Rows {
		x.row(row[:x.Labels])
	}
	return x.Table
}

func (x *cross) set(row []string, column, cell string) {
	k := x.column(column)
	x.row(row)[k] = cell
}

// clean escapes every cell.
func clean(t Table, escape func(string) string) Table {
	return each(t, func(s string, _ bool) string { return escape(s) })
}

// clipped cuts the names in a table to a length that leaves room for figures.
func clipped(t *Table) *Table {
	out := each(*t, func(s string, label bool) string {
		if label {
			return inert.Clip(s, maxName)
		}
		return s
	})
	return &out
}

func each(t Table, change func(s string, label bool) string) Table {
	list := func(in []string, labels int) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = change(s, i < labels)
		}
		return out
	}
	out := Table{Title: t.Title, Labels: t.Labels, Header: list(t.Header, len(t.Header))}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, list(row, t.Labels))
	}
	return out
}

// gap is the width of the space between two columns.
const gap = 2

// split splits a table into several with as many columns each as fit. At least
// one does, however narrow it is.
func split(t Table, width int) []Table {
	widths := make([]int, len(t.Header))
	for i, h := range t.Header {
		widths[i] = text.StringWidthWithoutEscSequences(h)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	labels := 0
	for _, w := range widths[:t.Labels] {
		labels += w + gap
	}
	var out []Table
	for from := t.Labels; from < len(t.Header); {
		to, used := from, labels
		for to < len(t.Header) && (to == from || used+widths[to] <= width) {
			used += widths[to] + gap
			to++
		}
		part := Table{Title: t.Title, Labels: t.Labels, Header: cut(t.Header, t.Labels, from, to)}
		if from > t.Labels {
			part.Title += " (continued)"
		}
		for _, row := range t.Rows {
			part.Rows = append(part.Rows, cut(row, t.Labels, from, to))
		}
		out = append(out, part)
		from = to
	}
	return out
}

func cut(row []string, labels, from, to int) []string {
	return append(append([]string(nil), row[:labels]...), row[from:to]...)
}

// draw is plain text: columns apart by spaces, one rule under the header. A list has
// neither the rule nor numbers.
func draw(t Table, o Options) string {
	w, list := table.NewWriter(), t.Labels == 0
	w.SetStyle(table.Style{Name: "memtox", Box: table.BoxStyle{MiddleHorizontal: "─", MiddleVertical: "  ",
		MiddleSeparator: "──"},
		Format:  table.FormatOptions{Header: text.FormatDefault},
		Options: table.Options{SeparateColumns: true, SeparateHeader: !list}})
	w.AppendHeader(cells(t.Header))
	var configs []table.ColumnConfig
	for i := range t.Header {
		if i >= t.Labels && !list {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	w.SetColumnConfigs(configs)
	last := ""
	for i, row := range t.Rows {
		r := cells(row)
		if i > 0 && !list && row[0] == last {
			r[0] = "" // the same agent
		} else if i > 0 && t.Labels > 1 {
			w.AppendSeparator()
		}
		last = row[0]
		w.AppendRow(r)
	}
	lines := strings.Split(w.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	lines[0] = bold(lines[0], o)
	return strings.Join(lines, "\n") + "\n"
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

// wrap breaks a line between words.
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
	return b.String()
}
