package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/memtox/memtox/results/stats"
)

// heatMap draws a rate in every cell of rows by columns, with its counts.
func heatMap(id, title string, rows, columns []string, rate func(row, column string) stats.Rate) template.HTML {
	var desc strings.Builder
	for _, row := range rows {
		for _, c := range columns {
			fmt.Fprintf(&desc, "%s under %s: %s. ", row, c, rate(row, c))
		}
	}
	longest := 0.
	for _, c := range columns {
		longest = max(longest, min(textWidth(c), 130))
	}
	const cellHeight = 40.
	x0 := labelRoom(rows)
	room := plotWidth - x0 - 24
	cellWidth := min(max(room/float64(max(len(columns), 1)), 62), 110)
	right0 := x0 + cellWidth*float64(len(columns))
	head := longest*0.62 + 22 // names stand slanted
	h := head + cellHeight*float64(len(rows))
	s := newSVG(id, title, desc.String(), max(plotWidth, right0+longest*0.8+10), h+64)
	for j, c := range columns {
		s.turned("label", x0+cellWidth*(float64(j)+0.5)-4, head-8, clip(c, 130))
	}
	for i, row := range rows {
		y := head + cellHeight*float64(i)
		s.clipped("label", right, x0-8, y+cellHeight/2+4, x0-12, row)
		for j, c := range columns {
			x := x0 + cellWidth*float64(j)
			r := rate(row, c)
			v, ok := r.Value()
			if !ok {
				s.rect("hatched", x+1, y+1, cellWidth-2, cellHeight-2)
				for k := 8.; k < cellWidth+cellHeight-4; k += 8 { // clipped to the cell by hand
					ax, ay := x+1+k, y+1.
					if ax > x+cellWidth-1 {
						ay += ax - (x + cellWidth - 1)
						ax = x + cellWidth - 1
					}
					bx, by := x+1, y+1+k
					if by > y+cellHeight-1 {
						bx += by - (y + cellHeight - 1)
						by = y + cellHeight - 1
					}
					s.line("hatch", ax, ay, bx, by)
				}
				continue
			}
			fill, ink := heat(v)
			s.cell(fill, x+1, y+1, cellWidth-2, cellHeight-2)
			s.textOn(ink, middle, x+cellWidth/2, y+cellHeight/2-3, pct(v))
			s.textOn(ink, middle, x+cellWidth/2, y+cellHeight/2+13, fmt.Sprintf("%d/%d", r.K, r.N))
		}
	}
	// The scale.
	const width, steps = 240., 48
	y := h + 18
	for k := range steps {
		fill, _ := heat((float64(k) + 0.5) / steps)
		s.cell(fill, x0+width/steps*float64(k), y, width/steps+0.4, 12)
	}
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		s.line("axis", x0+width*v, y+12, x0+width*v, y+16)
		s.text("tick", middle, x0+width*v, y+29, fmt.Sprintf("%g", v))
	}
	s.text("name", left, x0+width+14, y+11, "end-to-end rate")
	return s.done()
}
