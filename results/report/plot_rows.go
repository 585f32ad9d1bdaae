package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/summary"
)

// rowPlot has a row an arm, under the name of its agent; a row's own name stands above
// it, so that the plot fits a phone. X is where axes begin: all other places across are
// from there.
type rowPlot struct {
	canvas
	X, Top, Bottom px
	Axes           []spot // each as long as Length
	Length         px
	Axis           string
	Ticks          []spot
	Rows           []plotRow
	Legend         []string
}

// plotRow is the row of an arm. Group is nil but for the first of an agent.
type plotRow struct {
	Group, Label *label
	Y            px // the middle of what is drawn
	GroupY       px
	LabelY       px
	Marks        []mark
	Worst        *mark  // what a rate could have been
	Area, Base   string // how latencies spread, and from where to where
}

// mark is a value with its interval. From is where its axis begins, Text is empty where
// nothing was measured.
type mark struct {
	From, At, Lo, Hi px
	Text             string
}

func (m mark) Whisker() string {
	return line(m.Lo, 0, m.Hi, 0) + line(m.Lo, -4, m.Lo, 4) + line(m.Hi, -4, m.Hi, 4)
}
func (m mark) Width() px      { return m.At - m.From }
func (r plotRow) ValueY() px  { return r.LabelY - r.Y }
func (p rowPlot) GroupX() px  { return 4 - p.X }
func (p rowPlot) Middle() px  { return p.Length / 2 }
func (p rowPlot) LegendY() px { return p.Bottom + 52 }

// NumbersX is where figures on the right end.
func (p rowPlot) NumbersX() px { return plotWidth - p.X - 4 }

// newRows lays out the rows: below top comes the first group, below the last row foot.
// There are as many axes as names, with gap between them and rest behind them.
func newRows(id, title string, arms []*summary.Arm, top, height, foot, rest, gap px, axes ...string) *rowPlot {
	p := &rowPlot{X: 22, Top: top + 12}
	p.canvas = canvas{ID: id, Title: inert.Text(title), Width: plotWidth}
	n := px(len(axes))
	p.Length = (plotWidth - p.X - rest - gap*(n-1)) / n
	for i, name := range axes {
		p.Axes = append(p.Axes, spot{px(i) * (p.Length + gap), name})
	}
	at := top
	for i, a := range arms {
		row := plotRow{Label: labelOf(a.Row(), plotWidth-160)}
		if i == 0 || a.Agent != arms[i-1].Agent {
			at += 26 // for the name
			row.Group, row.GroupY = labelOf(a.Agent, plotWidth), at-8
		}
		row.LabelY = at + 13
		row.Y = at + 18 + height/2
		at += 18 + height
		p.Rows = append(p.Rows, row)
	}
	p.Bottom = at + 4
	p.Height = p.Bottom + foot
	return p
}

// say adds a row to what a screen reader says.
func (p *rowPlot) say(a *summary.Arm, format string, args ...any) {
	p.Desc += inert.Text(fmt.Sprintf("%s, %s: %s. ", a.Agent, a.Row(), fmt.Sprintf(format, args...)))
}

// rates marks rates from 0 to 1, each on an axis of its own if there are as many.
func (p *rowPlot) rates(arms []*summary.Arm, step float64, rates ...*metric.Metric) {
	for _, axis := range p.Axes {
		for v := 0.; v <= 1.0001; v += step {
			p.Ticks = append(p.Ticks, spot{axis.At + px(v)*p.Length, fmt.Sprintf("%.4g", v)})
		}
	}
	for i, a := range arms {
		var said []string
		for k, m := range rates {
			r, from := a.Rate(m), p.Axes[k%len(p.Axes)].At
			at := func(v float64) px { return from + px(min(max(v, 0), 1))*p.Length }
			x := mark{From: from}
			if v, ok := r.Value(); ok {
				x = mark{from, at(v), at(r.Lo), at(r.Hi), pct(v)}
				if len(p.Axes) == 1 {
					x.Text = fmt.Sprintf("%d/%d  %s", r.K, r.N, pct(v))
				}
			}
			p.Rows[i].Marks = append(p.Rows[i].Marks, x)
			said = append(said, fmt.Sprintf("%s %s", m.Head, r))
		}
		p.say(a, "%s", strings.Join(said, "; "))
	}
}

// forest draws one rate a row, with its interval, and what it could have been where
// worst is set.
func forest(id, title, axis string, arms []*summary.Arm, m *metric.Metric, worst bool) template.HTML {
	p := newRows(id, title, arms, 10, 14, 44, 22, 0, "")
	p.Axis = axis
	p.rates(arms, 0.2, m)
	for i, a := range arms {
		if b, ok := a.Bounds[m.Name]; ok && worst {
			from, to := px(b.Lo)*p.Length, px(b.Hi)*p.Length
			p.Rows[i].Worst = &mark{From: from, At: max(to, from+2)}
		}
	}
	return draw("forest", p)
}

// pairs draws two rates a row.
func pairs(id, title string, arms []*summary.Arm, a, b *metric.Metric, legend ...string) template.HTML {
	p := newRows(id, title, arms, 10, 26, 84, 22, 0, "")
	p.Axis, p.Legend = "rate", legend
	p.rates(arms, 0.2, a, b)
	return draw("pairs", p)
}

// funnel draws a bar for each stage of each arm, stages side by side.
func funnel(id, last string, arms []*summary.Arm) template.HTML {
	p := newRows(id, "How far attacks came, by arm", arms, 32, 26, 24, 12, 16, "proposed", "written", "exposed", last)
	p.rates(arms, 0.5, metric.Proposed, metric.ASR, metric.Exposure, metric.EndToEnd)
	return draw("funnel", p)
}

// perDecade is how many bins of a curve make a factor of ten.
const perDecade = 16

// latencies draws the distribution of each arm at a gate over a logarithmic axis.
func latencies(id, title, gate string, arms []*summary.Arm, of func(*summary.Arm) summary.Latency) template.HTML {
	const height = 36
	p := newRows(id, title+": distribution of latencies by arm", arms, 10, height, 68, 22, 0, "")
	p.Axis = title + ": time of one call, logarithmic"
	from, to := math.MaxInt, math.MinInt
	first, counts := make([]int, len(arms)), make([][]uint64, len(arms))
	for i, a := range arms {
		if times := a.Times(gate); times != nil {
			first[i], counts[i] = times.Spread(perDecade)
		}
		if n := len(counts[i]); n > 0 {
			from, to = min(from, first[i]), max(to, first[i]+n)
		}
	}
	if from > to { // no values at all
		from, to = 0, 3*perDecade
	}
	lo := math.Floor(float64(from) / perDecade)
	hi := max(math.Ceil(float64(to)/perDecade), lo+1)
	at := func(decade float64) px { return px((decade-lo)/(hi-lo)) * p.Length }
	bin := func(k int) px { return at(float64(k) / perDecade) }
	for d := lo; d <= hi; d += math.Ceil((hi - lo) / 6) {
		us := math.Pow(10, d)
		p.Ticks = append(p.Ticks, spot{at(d), micros(&us)})
	}
	for i, a := range arms {
		l := of(a)
		p.say(a, "p50 %s, p95 %s, p99 %s", micros(l.P50), micros(l.P95), micros(l.P99))
		if len(counts[i]) == 0 {
			continue
		}
		const base = height/2 - 3
		most := slices.Max(counts[i])
		area := []px{bin(first[i]), base}
		for k, n := range counts[i] {
			y := base - (height-8)*px(n)/px(most)
			area = append(area, bin(first[i]+k), y, bin(first[i]+k+1), y)
		}
		last := bin(first[i] + len(counts[i]))
		p.Rows[i].Area, p.Rows[i].Base = line(append(area, last, base)...), line(bin(first[i]), base, last, base)
		for _, v := range []*float64{l.P50, l.P95, l.P99} {
			var x mark
			if v != nil && *v > 0 {
				x = mark{At: at(math.Log10(*v)), Text: micros(v)}
			}
			p.Rows[i].Marks = append(p.Rows[i].Marks, x)
		}
	}
	return draw("latency", p)
}
