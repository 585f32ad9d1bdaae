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
	X, ColumnsY, ScaleY, CellWidth px
	Columns                        []spot
	Rows                           []heatRow
	Scale                          []heatCell
}

type heatRow struct {
	Y     px
	Label *label
	Cells []heatCell
}

type heatCell struct {
	At           px
	Rate, Counts string // empty where nothing was measured
	Fill, Ink    string
}

func (p heatPlot) CellMiddle() px { return p.CellWidth / 2 }

// Hatch fills a cell with slanting lines, each from its upper or right edge to its left
// or lower one.
func (p heatPlot) Hatch() (d string) {
	const height = 38
	for k := px(8); k < p.CellWidth+height; k += 8 {
		d += line(min(k, p.CellWidth), max(k-p.CellWidth, 0), max(k-height, 0), min(k, height))
	}
	return d
}

// heatMap draws a rate in every cell of rows by columns, with its counts.
func heatMap(id, title string, rows, columns []string, rate func(row, column string) stats.Rate) template.HTML {
	const height = 40
	p := heatPlot{X: labelRoom(rows)}
	p.canvas = canvas{ID: id, Title: inert.Text(title)}
	p.CellWidth = min(max((plotWidth-p.X-24)/px(max(len(columns), 1)), 62), 110) - 2
	at := func(j int) px { return (p.CellWidth+2)*px(j) + 1 }
	longest := px(0)
	for j, c := range columns {
		longest = max(longest, min(textWidth(c), 130))
		p.Columns = append(p.Columns, spot{p.X + at(j) + p.CellWidth/2 - 4, clip(c, 130)})
	}
	head := longest*0.62 + 22 // names stand slanted
	p.ColumnsY, p.ScaleY = head-8, head+height*px(len(rows))+18
	p.Width, p.Height = max(plotWidth, p.X+at(len(columns))+longest*0.8+10), p.ScaleY+46
	for i, name := range rows {
		row := heatRow{Y: head + height*px(i), Label: labelOf(name, p.X-12)}
		for j, c := range columns {
			r := rate(name, c)
			p.Desc += inert.Text(fmt.Sprintf("%s under %s: %s. ", name, c, r))
			cell := heatCell{At: at(j)}
			if v, ok := r.Value(); ok {
				cell.Rate, cell.Counts = pct(v), fmt.Sprintf("%d/%d", r.K, r.N)
				cell.Fill, cell.Ink = heat(v)
			}
			row.Cells = append(row.Cells, cell)
		}
		p.Rows = append(p.Rows, row)
	}
	const steps = 48 // of 5 pixels
	for k := range steps {
		fill, _ := heat((float64(k) + 0.5) / steps)
		p.Scale = append(p.Scale, heatCell{At: px(5 * k), Fill: fill})
	}
	return draw("heat", p)
}

// viridis is the colour map of that name at equal steps: it rises in lightness
// all the way, so that it can be read in grey and by colour-blind eyes.
// Source: S. van der Walt, N. Smith (2015), matplotlib's default colour map.
var viridis = [...][3]float64{
	{68, 1, 84}, {72, 40, 120}, {62, 73, 137}, {49, 104, 142}, {38, 130, 142},
	{31, 158, 137}, {53, 183, 121}, {110, 206, 88}, {181, 222, 43}, {253, 231, 37},
}

// heat is the colour of a rate from 0 to 1, and that of a text on it.
func heat(rate float64) (fill, text string) {
	at := min(max(rate, 0), 1) * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	var c [3]int
	for k := range c {
		c[k] = int(math.Round(viridis[i][k] + (at-float64(i))*(viridis[i+1][k]-viridis[i][k])))
	}
	text = "#ffffff"
	if rate > 0.44 { // lighter ones give black the greater contrast
		text = "#000000"
	}
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]), text
}
