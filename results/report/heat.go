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

// heatRow has cells whose whole rate is a tooltip.
type heatRow struct {
	Name  string
	Cells []render.HeatCell
}

func heat(rows, columns []string, better stats.Direction, rate func(row, column string) stats.Rate) template.HTML {
	m := heatMap{Columns: columns}
	for _, name := range rows {
		row := heatRow{Name: name}
		for _, c := range columns {
			cell := render.Heat(rate(name, c), better)
			cell.Whole = c + ", " + name + ": " + cell.Whole
			row.Cells = append(row.Cells, cell)
		}
		m.Rows = append(m.Rows, row)
	}
	return draw("heat", m)
}
