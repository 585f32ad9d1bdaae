package report

import (
	"fmt"
	"html/template"
	"math"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/stats"
)

type heatPlot struct {
	canvas
	X, ColumnsY, CellWidth px
	Columns                []spot
	Rows                   []heatRow
}

type heatRow struct {
	Y     px
	Label *label
	Cells []heatCell
}

type heatCell struct {
	At        px
	Rate      string // empty where nothing was measured
	Fill, Ink string
}

func (p heatPlot) CellMiddle() px { return p.CellWidth / 2 }

// Hatch fills a cell with slanting lines, each from its upper or right edge to its left
// or lower one.
func (p heatPlot) Hatch() (d string) {
	const height = 28
	for k := px(8); k < p.CellWidth+height; k += 8 {
		d += line(min(k, p.CellWidth), max(k-p.CellWidth, 0), max(k-height, 0), min(k, height))
	}
	return d
}

// heatMap draws a rate in every cell of rows by columns; the worse, the darker.
func heatMap(id, title string, rows, columns []string, better stats.Direction,
	rate func(row, column string) stats.Rate) template.HTML {
	const height = 30
	p := heatPlot{X: labelRoom(rows)}
	p.canvas = canvas{ID: id, Title: inert.Text(title)}
	p.CellWidth = min(max((plotWidth-p.X-24)/px(max(len(columns), 1)), 56), 60) - 2
	at := func(j int) px { return (p.CellWidth+2)*px(j) + 1 }
	longest := px(0)
	for j, c := range columns {
		longest = max(longest, min(textWidth(c), 150))
		p.Columns = append(p.Columns, spot{p.X + at(j) + p.CellWidth/2 - 4, clip(c, 150)})
	}
	head := longest*0.62 + 22 // names stand slanted
	p.ColumnsY = head - 8
	p.Width, p.Height = p.X+at(len(columns))+longest*0.8, head+height*px(len(rows))+4
	for i, name := range rows {
		row := heatRow{Y: head + height*px(i), Label: labelOf(name, p.X-12)}
		for j, c := range columns {
			r := rate(name, c)
			p.Desc += inert.Text(fmt.Sprintf("%s under %s: %s. ", name, c, r))
			cell := heatCell{At: at(j)}
			if v, ok := r.Value(); ok {
				cell.Rate = pct(v)
				if better == stats.HigherIsBetter {
					v = 1 - v
				}
				cell.Fill, cell.Ink = heat(v)
			}
			row.Cells = append(row.Cells, cell)
		}
		p.Rows = append(p.Rows, row)
	}
	return draw("heat", p)
}

// oranges go from nearly white to dark: lightness falls all the way, so that they can be
// read in grey and by colour-blind eyes.
// Source: C. Brewer, ColorBrewer 2.0, Oranges of 9 classes.
var oranges = [...][3]float64{
	{255, 245, 235}, {254, 230, 206}, {253, 208, 162}, {253, 174, 107}, {253, 141, 60},
	{241, 105, 19}, {217, 72, 1}, {166, 54, 3}, {127, 39, 4},
}

// heat is the colour of how bad a rate is, from 0 to 1, and that of a text on it.
func heat(bad float64) (fill, text string) {
	at := min(max(bad, 0), 1) * float64(len(oranges)-1)
	i := min(int(at), len(oranges)-2)
	var c [3]int
	for k := range c {
		c[k] = int(math.Round(oranges[i][k] + (at-float64(i))*(oranges[i+1][k]-oranges[i][k])))
	}
	text = "#000000"
	if bad > 0.77 { // darker ones give white the greater contrast
		text = "#ffffff"
	}
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]), text
}
