package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/memtox/memtox/results/stats"
)

// funnelRow is the four stages of one arm.
type funnelRow struct {
	group, label string
	stages       [4]stats.Rate
}

var stageNames = [4]string{"1 proposed", "2 written", "3 exposed", "4 influenced"}

// funnelPlot draws a bar for each stage of each arm, stages side by side.
func funnelPlot(id string, rows []funnelRow) template.HTML {
	labels, names := make([]string, len(rows)), make([]string, len(rows))
	var desc strings.Builder
	for i, r := range rows {
		labels[i], names[i] = r.label, r.group
		fmt.Fprintf(&desc, "%s, %s:", r.group, r.label)
		for k, st := range r.stages {
			fmt.Fprintf(&desc, " %s %s;", stageNames[k][2:], st)
		}
		desc.WriteString(" ")
	}
	const height, gap, legend = 36., 18., 22.
	x0 := labelRoom(labels)
	width := (plotWidth - x0 - 14 - 3*gap) / 4
	h := rowsHeight(names, height) + legend
	s := newSVG(id, "How far attacks came, by arm", desc.String(), plotWidth, h+24)
	s.b.WriteString(`<g transform="translate(0 ` + num(legend) + `)">`)
	ys, bottom := groups(s, labels, names, x0, height, x0)
	for k := range stageNames {
		from := x0 + float64(k)*(width+gap)
		s.text("group", left, from, 2, stageNames[k])
		at := rateAxis(s, from, from+width, topMargin+6, bottom, "", 0.5)
		for i, r := range rows {
			y := ys[i]
			v, ok := r.stages[k].Value()
			if !ok {
				s.text("none small", left, from+2, y+4, "not measured")
				continue
			}
			s.text("value", left, from+1, y-4, fmt.Sprintf("%d/%d  %s", r.stages[k].K, r.stages[k].N, pct(v)))
			s.rect("bar", from, y+1, at(v)-from, 9)
			interval(s, "over", at(r.stages[k].Lo), at(r.stages[k].Hi), y+5.5)
		}
	}
	s.b.WriteString("</g>")
	return s.done()
}
