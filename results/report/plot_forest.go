package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// Sizes that all plots share, in CSS pixels.
const (
	plotWidth  = 760.
	rowHeight  = 24.
	groupGap   = 26. // above the first row of a group, for its name
	axisHeight = 44. // below the rows: ticks and the name of the axis
	topMargin  = 10.
	mostLabel  = 190. // width that labels of rows may take
)

// forestRow is one rate in a forest plot.
type forestRow struct {
	group, label string
	rate         stats.Rate
	outer        *summary.Bound // worst case; nil for none
}

// labelRoom is the width that the labels take.
func labelRoom(labels []string) float64 {
	room := 60.
	for _, l := range labels {
		room = max(room, textWidth(l))
	}
	return min(room, mostLabel) + 14
}

// rateAxis draws a grid for rates from 0 to 1 between two heights, with ticks
// below, and returns where a rate stands.
func rateAxis(s *svg, x0, x1, top, bottom float64, name string, step float64) func(float64) float64 {
	at := func(v float64) float64 { return x0 + min(max(v, 0), 1)*(x1-x0) }
	for v := 0.; v <= 1.0001; v += step {
		s.line("grid", at(v), top, at(v), bottom)
		s.text("tick", middle, at(v), bottom+15, fmt.Sprintf("%.4g", v))
	}
	s.line("axis", x0, bottom, x1, bottom)
	if name != "" {
		s.text("name", middle, (x0+x1)/2, bottom+33, name)
	}
	return at
}

// groups runs over rows and draws the name of each group above its first row.
// It returns the middle of every row, and where the last row ends.
func groups(s *svg, labels, names []string, x, height, width float64) (y []float64, bottom float64) {
	at, last := topMargin, ""
	for i := range labels {
		if names[i] != last || i == 0 {
			at += groupGap
			s.clipped("group", left, 4, at-8, width, names[i])
			last = names[i]
		}
		y = append(y, at+height/2)
		s.clipped("label", right, x-8, at+height/2+4, x-12, labels[i])
		at += height
	}
	return y, at + 4
}

// rowsHeight is the height that groups will need.
func rowsHeight(names []string, height float64) float64 {
	h, last := topMargin+4, ""
	for i, n := range names {
		if n != last || i == 0 {
			h += groupGap
			last = n
		}
		h += height
	}
	return h
}

// interval draws whiskers.
func interval(s *svg, class string, lo, hi, y float64) {
	s.line(class, lo, y, hi, y)
	s.line(class, lo, y-4, lo, y+4)
	s.line(class, hi, y-4, hi, y+4)
}

// forest draws one rate a row, with its interval.
func forest(id, title, axis string, rows []forestRow) template.HTML {
	labels, names := make([]string, len(rows)), make([]string, len(rows))
	var desc strings.Builder
	for i, r := range rows {
		labels[i], names[i] = r.label, r.group
		fmt.Fprintf(&desc, "%s, %s: %s. ", r.group, r.label, r.rate)
	}
	const numbers = 118 // on the right
	x0, x1 := labelRoom(labels), plotWidth-numbers
	h := rowsHeight(names, rowHeight)
	s := newSVG(id, title, desc.String(), plotWidth, h+axisHeight)
	at := rateAxis(s, x0, x1, topMargin+12, h, axis, 0.2)
	ys, _ := groups(s, labels, names, x0, rowHeight, plotWidth)
	for i, r := range rows {
		y := ys[i]
		if r.outer != nil {
			s.rect("worst", at(r.outer.Lo), y-8, max(at(r.outer.Hi)-at(r.outer.Lo), 2), 16)
		}
		v, ok := r.rate.Value()
		if !ok {
			s.text("none", left, x0+6, y+4, "not measured")
			continue
		}
		interval(s, "whisker", at(r.rate.Lo), at(r.rate.Hi), y)
		s.circle("dot", at(v), y, 5)
		s.text("value", right, plotWidth-4, y+4, fmt.Sprintf("%d/%d  %s", r.rate.K, r.rate.N, pct(v)))
	}
	return s.done()
}

// pairRow is two rates that are read together.
type pairRow struct {
	group, label string
	a, b         stats.Rate
}

// pairs draws two rates a row: a as a filled circle, b as an open square.
func pairs(id, title, nameA, nameB string, rows []pairRow) template.HTML {
	labels, names := make([]string, len(rows)), make([]string, len(rows))
	var desc strings.Builder
	for i, r := range rows {
		labels[i], names[i] = r.label, r.group
		fmt.Fprintf(&desc, "%s, %s: %s %s; %s %s. ", r.group, r.label, nameA, r.a, nameB, r.b)
	}
	const height = 32.
	const legend = 24.
	x0, x1 := labelRoom(labels), plotWidth-24
	h := rowsHeight(names, height)
	s := newSVG(id, title, desc.String(), plotWidth, h+axisHeight+legend)
	at := rateAxis(s, x0, x1, topMargin+12, h, "rate", 0.2)
	ys, _ := groups(s, labels, names, x0, height, plotWidth)
	for i, r := range rows {
		for k, rate := range []stats.Rate{r.a, r.b} {
			y := ys[i] - 6 + 12*float64(k)
			v, ok := rate.Value()
			if !ok {
				s.text("none small", left, x0+6, y+4, map[int]string{0: nameA, 1: nameB}[k]+": not measured")
				continue
			}
			interval(s, []string{"whisker", "whisker two"}[k], at(rate.Lo), at(rate.Hi), y)
			pairMark(s, k, at(v), y)
		}
	}
	y := h + axisHeight + 8
	pairMark(s, 0, x0+6, y)
	s.text("label", left, x0+16, y+4, nameA)
	x := x0 + 16 + textWidth(nameA) + 24
	pairMark(s, 1, x, y)
	s.text("label", left, x+10, y+4, nameB)
	return s.done()
}

func pairMark(s *svg, k int, x, y float64) {
	if k == 0 {
		s.circle("dot", x, y, 4.5)
		return
	}
	s.rect("square", x-4.5, y-4.5, 9, 9)
}
