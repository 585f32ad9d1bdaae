package report

import (
	"html/template"

	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// heatMap has a rate in every cell of rows by columns, coloured by how bad it is. It is a
// table and no drawing, so that it fits any width.
type heatMap struct {
	Columns []string
	Rows    []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

// heatCell has whole percents and a class of the style sheet, a tooltip with all of it.
type heatCell struct{ Text, Class, Whole string }

func heat(rows, columns []string, better stats.Direction, rate func(row, column string) stats.Rate) template.HTML {
	m := heatMap{Columns: columns}
	for _, name := range rows {
		row := heatRow{Name: name}
		for _, c := range columns {
			r := rate(name, c)
			text, class := render.Heat(r, better)
			row.Cells = append(row.Cells, heatCell{text, class, c + ", " + name + ": " + r.String()})
		}
		m.Rows = append(m.Rows, row)
	}
	return draw("heat", m)
}
