package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// latencyRow is the latencies of one arm at one gate.
type latencyRow struct {
	group, label string
	l            summary.Latency
	times        *stats.Sketch // nil for none
}

// perDecade is how many bins of a curve make a factor of ten.
const perDecade = 16

// decade is where a bin begins, as a power of ten of a microsecond.
func decade(bin int) float64 { return float64(bin) / perDecade }

// latencyPlot draws the distribution of each arm at a gate over a logarithmic
// axis.
func latencyPlot(id, gate string, rows []latencyRow) template.HTML {
	labels, names := make([]string, len(rows)), make([]string, len(rows))
	var desc strings.Builder
	from, to := math.MaxInt, math.MinInt
	first, counts := make([]int, len(rows)), make([][]uint64, len(rows))
	for i, r := range rows {
		labels[i], names[i] = r.label, r.group
		fmt.Fprintf(&desc, "%s, %s: p50 %s, p95 %s, p99 %s. ", r.group, r.label, micros(r.l.P50), micros(r.l.P95),
			micros(r.l.P99))
		if r.times != nil {
			first[i], counts[i] = r.times.Spread(perDecade)
		}
		if n := len(counts[i]); n > 0 {
			from, to = min(from, first[i]), max(to, first[i]+n)
		}
	}
	if from > to { // no values at all
		from, to = 0, 3*perDecade
	}
	lo, hi := math.Floor(decade(from)), math.Ceil(decade(to))
	if hi <= lo {
		hi = lo + 1
	}
	const height, legend = 36., 24.
	x0, x1 := labelRoom(labels), plotWidth-26
	h := rowsHeight(names, height)
	s := newSVG(id, gate+": distribution of latencies by arm", desc.String(), plotWidth, h+axisHeight+legend)
	at := func(d float64) float64 { return x0 + (d-lo)/(hi-lo)*(x1-x0) }
	for d := lo; d <= hi; d++ {
		s.line("grid", at(d), topMargin+12, at(d), h)
		us := math.Pow(10, d)
		s.text("tick", middle, at(d), h+15, micros(&us))
	}
	s.line("axis", x0, h, x1, h)
	s.text("name", middle, (x0+x1)/2, h+33, gate+": time of one call, logarithmic")
	ys, _ := groups(s, labels, names, x0, height, plotWidth)
	for i, r := range rows {
		base := ys[i] + height/2 - 3
		if len(counts[i]) == 0 {
			s.text("none", left, x0+6, ys[i]+4, "not measured")
			continue
		}
		a, b := first[i], first[i]+len(counts[i])
		most := slices.Max(counts[i])
		area := []float64{at(decade(a)), base}
		for k, n := range counts[i] {
			y := base - (height-8)*float64(n)/float64(most)
			area = append(area, at(decade(a+k)), y, at(decade(a+k+1)), y)
		}
		area = append(area, at(decade(b)), base)
		s.path("area", true, area...)
		s.line("axis", at(decade(a)), base, at(decade(b)), base)
		for k, v := range []*float64{r.l.P50, r.l.P95, r.l.P99} {
			if v != nil && *v > 0 {
				quantileMark(s, k, at(math.Log10(*v)), base-5)
			}
		}
	}
	y, x := h+axisHeight+8, x0+6
	for k, name := range []string{"p50", "p95", "p99"} {
		quantileMark(s, k, x, y)
		s.text("label", left, x+10, y+4, name)
		x += 64
	}
	return s.done()
}

// quantileMark draws p50, p95 or p99, told apart by shape.
func quantileMark(s *svg, k int, x, y float64) {
	switch k {
	case 0:
		s.circle("dot", x, y, 4.5)
	case 1:
		s.path("diamond", true, x, y-6, x+6, y, x, y+6, x-6, y)
	default:
		s.path("triangle", true, x, y-6, x+6, y+5, x-6, y+5)
	}
}
