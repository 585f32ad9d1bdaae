package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// square is two shares against each other.
type square struct {
	canvas
	Across, Up string // the axes
	Head       *label
	Path       string
	Dots       []dot
	Labels     []plate
}

type dot struct {
	X, Y     px
	Whiskers string
	Name     string // its tooltip
	Chosen   bool
}

// plate is a label within a panel, on a ground of its own.
type plate struct {
	X, Y, Width px
	Text        string
}

func (p plate) Middle() px { return p.Width / 2 }

// side is the length of an axis.
const side px = 290

func across(share float64) px { return px(share) * side }
func up(share float64) px     { return px(1-share) * side }

// squareOf is a drawing of a number of its section, with so much room below the axes.
func squareOf(id string, i int, title, head, across, up string, below px) square {
	return square{canvas: canvas{ID: fmt.Sprintf("%s-%d", id, i), Title: inert.Text(title + ", " + head), Width: plotWidth,
		Height: 34 + side + below}, Across: across, Up: up, Head: labelOf(head, side)}
}

// scatterPanel is the arms of one agent.
type scatterPanel struct {
	title  string
	points []tradeoff
}

// tradeoff is an arm's harm against its tasks done. Its rates are those of the worse end.
type tradeoff struct {
	Agent, Defense string
	ends
	Harm, Done stats.Rate
	front      bool
}

// Front says whether the arm is on the Pareto front.
func (p tradeoff) Front() string {
	if !p.measured() {
		return "–"
	}
	return map[bool]string{true: "yes", false: "no"}[p.front]
}

func (p *tradeoff) measured() bool { return p.Harm.Measured() && p.Done.Measured() }

func (p *tradeoff) at() (done, harm float64) {
	d, _ := p.Done.Value()
	h, _ := p.Harm.Value()
	return d, h
}

// front marks the points that no other point dominates.
func (p *scatterPanel) front() {
	for i := range p.points {
		a := &p.points[i]
		d, h := a.at()
		a.front = a.measured() && !slices.ContainsFunc(p.points, func(b tradeoff) bool {
			e, g := b.at()
			return b.measured() && e >= d && g <= h && (e > d || g < h)
		})
	}
}

// scatter draws harm against tasks done, once an agent.
func scatter(id, harm, done string, panels []scatterPanel) (out template.HTML) {
	for i, p := range panels {
		s := squareOf(id, i, "Harm against tasks done", p.title, done, harm, 46)
		s.Path, s.Labels = p.staircase(), p.labels()
		for _, pt := range p.points {
			s.Desc += inert.Text(fmt.Sprintf("%s: %s %s, %s %s. ", pt.Defense, harm, pt.Harm, done, pt.Done))
			if pt.measured() {
				d, h := pt.at()
				x, y := across(d), up(h)
				s.Dots = append(s.Dots, dot{X: x, Y: y, Name: inert.Text(pt.Defense),
					Whiskers: line(across(pt.Done.Lo), y, across(pt.Done.Hi), y) + line(x, up(pt.Harm.Lo), x, up(pt.Harm.Hi))})
			}
		}
		out += draw("square", s)
	}
	return out
}

// staircase is the front: between two arms of it nothing is known to be possible but
// the harm of the one with more done, so it is no slope.
func (p *scatterPanel) staircase() string {
	var front []tradeoff
	for _, pt := range p.points {
		if pt.front {
			front = append(front, pt)
		}
	}
	slices.SortFunc(front, func(a, b tradeoff) int {
		u, v := a.at()
		w, z := b.at()
		return cmp.Or(cmp.Compare(u, w), cmp.Compare(v, z))
	})
	var path []px
	before := 0.
	for _, pt := range front {
		u, v := pt.at()
		path = append(path, across(before), up(v), across(u), up(v))
		before = u
	}
	if len(path) > 0 {
		path = append(path, across(before), 0)
	}
	return line(path...)
}

// labels name the points where they hide no point and no other label; where there is no
// such place, the tooltip and the table do. Arms at the same place share one, and where
// they are many the front alone has names.
func (p *scatterPanel) labels() []plate {
	type place struct {
		x, y  px
		names []string
	}
	var places []place
	for _, pt := range p.points {
		if !pt.measured() || len(p.points) > 12 && !pt.front {
			continue
		}
		u, v := pt.at()
		x, y := across(u), up(v)
		k := slices.IndexFunc(places, func(q place) bool { return math.Hypot(float64(q.x-x), float64(q.y-y)) < 9 })
		if k < 0 {
			places = append(places, place{x: x, y: y})
			k = len(places) - 1
		}
		places[k].names = append(places[k].names, pt.Defense)
	}
	const height = 15
	type box struct{ x, y, w, h px }
	taken := []box{{0, -28, textWidth(clip(p.title, side)), 18}}
	for _, q := range places {
		taken = append(taken, box{q.x - 6, q.y - 6, 12, 12})
	}
	var out []plate
	for _, q := range places {
		text := clip(strings.Join(q.names, ", "), 200)
		w := textWidth(text)*0.9 + 4
		best, least := box{}, px(math.Inf(1))
		for d := px(8); d <= 32; d += 8 {
			for _, dir := range [...][2]px{{-1, -1}, {1, -1}, {-1, 1}, {1, 1}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}} {
				b := box{q.x + dir[0]*(d+w/2) - w/2, q.y + dir[1]*(d+height/2-4) - height/2, w, height}
				bad := d / 100
				for _, t := range taken {
					if b.x < t.x+t.w && t.x < b.x+b.w && b.y < t.y+t.h && t.y < b.y+b.h {
						bad++
					}
				}
				if b.x < 1 || b.x+b.w > side+20 || b.y < -28 || b.y+b.h > side-1 {
					bad += 3
				}
				away := func(q place) float64 {
					return math.Hypot(float64(max(b.x-q.x, q.x-b.x-w, 0)), float64(max(b.y-q.y, q.y-b.y-height, 0)))
				}
				for _, o := range places { // whose it is must be clear
					if (o.x != q.x || o.y != q.y) && away(o) < away(q)+2 {
						bad++
					}
				}
				if bad < least {
					best, least = b, bad
				}
			}
		}
		if least >= 1 {
			continue
		}
		taken = append(taken, best)
		out = append(out, plate{best.x, best.y, w, text})
	}
	return out
}

// roc draws detections against false positives, once a sweep, with the points joined in
// the order of their values.
func roc(id, split string, sweeps []summary.Sweep) (out template.HTML) {
	for i, sw := range sweeps {
		s := squareOf(id, i, "Detections against false positives on "+split, sw.Agent+": "+sw.Name,
			"FPR: legitimate writes stopped", "TPR: attacks detected", 46)
		var path []px
		for k, p := range sw.Points {
			score := p.Of(split)
			s.Desc += inert.Text(fmt.Sprintf("%s: TPR %s, FPR %s. ", p.Defense, score.TPR, score.FPR))
			t, ok := score.TPR.Value()
			f, measured := score.FPR.Value()
			if ok && measured {
				path = append(path, across(f), up(t))
				s.Dots = append(s.Dots, dot{X: across(f), Y: up(t), Chosen: k == sw.Chosen})
			}
		}
		s.Path = line(path...)
		out += draw("square", s)
	}
	return out
}
