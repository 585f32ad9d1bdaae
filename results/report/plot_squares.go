package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// squarePlot has panels of two shares against each other, two beside each other.
type squarePlot struct {
	canvas
	Across, Up string // the axes
	Panels     []square
}

type square struct {
	X, Y   px
	Title  *label
	Path   string
	Dots   []dot
	Labels []plate
	Key    []spot
}

type dot struct {
	X, Y     px
	Whiskers string
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

// place puts the panels where they belong; each has so much room below.
func (p *squarePlot) place(below px) *squarePlot {
	const left, above, gap = 56, 34, 26
	for i := range p.Panels {
		p.Panels[i].X, p.Panels[i].Y = px(i%2)*(left+side+gap)+left, px(i/2)*(above+side+below)+above
	}
	n := max(len(p.Panels), 1)
	p.Width, p.Height = px(min(n, 2))*(left+side+gap), px((n+1)/2)*(above+side+below)
	p.Desc = inert.Text(p.Desc)
	return p
}

// scatterPanel is the arms of one agent.
type scatterPanel struct {
	title  string
	points []scatterPoint
}

type scatterPoint struct {
	number            int
	label             string
	security, utility stats.Rate
	front             bool
}

func (p *scatterPoint) measured() bool { return p.security.Measured() && p.utility.Measured() }

func (p *scatterPoint) at() (utility, security float64) {
	u, _ := p.utility.Value()
	s, _ := p.security.Value()
	return u, s
}

// front marks the points that no other point dominates.
func (p *scatterPanel) front() {
	for i := range p.points {
		a := &p.points[i]
		u, s := a.at()
		a.front = a.measured() && !slices.ContainsFunc(p.points, func(b scatterPoint) bool {
			v, t := b.at()
			return b.measured() && v >= u && t >= s && (v > u || t > s)
		})
	}
}

// scatter draws security against utility, one panel an agent.
func scatter(id string, panels []scatterPanel) template.HTML {
	plot := &squarePlot{Across: "utility", Up: "security (1 − end to end)"}
	plot.canvas = canvas{ID: id, Title: "Security against utility"}
	lines := 0
	for _, p := range panels {
		s := square{Title: labelOf(p.title, side), Path: p.staircase(), Labels: p.labels(), Key: p.key()}
		lines = max(lines, len(s.Key))
		for _, pt := range p.points {
			plot.Desc += fmt.Sprintf("%s, %d %s: security %s, utility %s. ", p.title, pt.number, pt.label, pt.security, pt.utility)
			if pt.measured() {
				u, v := pt.at()
				x, y := across(u), up(v)
				s.Dots = append(s.Dots, dot{X: x, Y: y, Whiskers: line(across(pt.utility.Lo), y, across(pt.utility.Hi), y) +
					line(x, up(pt.security.Lo), x, up(pt.security.Hi))})
			}
		}
		plot.Panels = append(plot.Panels, s)
	}
	return draw("squares", plot.place(50+16*px(lines)))
}

// key names the numbers, in lines below the panel.
func (p *scatterPanel) key() []spot {
	const width = side + 26
	lines := []spot{{At: side + 58}}
	for _, pt := range p.points {
		last := &lines[len(lines)-1]
		name := strconv.Itoa(pt.number) + " " + clip(pt.label, width/2)
		switch {
		case last.Text == "":
			last.Text = name
		case textWidth(last.Text+"   "+name) > width:
			lines = append(lines, spot{last.At + 16, name})
		default:
			last.Text += " · " + name
		}
	}
	return lines
}

// staircase is the front: between two arms of it nothing is known to be possible but
// what the worse of them reaches, so it is no slope.
func (p *scatterPanel) staircase() string {
	var front []scatterPoint
	for _, pt := range p.points {
		if pt.front {
			front = append(front, pt)
		}
	}
	slices.SortFunc(front, func(a, b scatterPoint) int {
		u, v := a.at()
		w, z := b.at()
		return cmp.Or(cmp.Compare(u, w), cmp.Compare(z, v))
	})
	var path []px
	before := 0.
	for _, pt := range front {
		u, v := pt.at()
		path = append(path, across(before), up(v), across(u), up(v))
		before = u
	}
	if len(path) > 0 {
		path = append(path, across(before), side)
	}
	return line(path...)
}

// labels number the points where they hide no point and no other label. Arms at the same
// place share one.
func (p *scatterPanel) labels() []plate {
	type place struct {
		x, y    px
		numbers []string
	}
	var places []place
	for _, pt := range p.points {
		if !pt.measured() {
			continue
		}
		u, v := pt.at()
		x, y := across(u), up(v)
		k := slices.IndexFunc(places, func(q place) bool { return math.Hypot(float64(q.x-x), float64(q.y-y)) < 9 })
		if k < 0 {
			places = append(places, place{x: x, y: y})
			k = len(places) - 1
		}
		places[k].numbers = append(places[k].numbers, strconv.Itoa(pt.number))
	}
	const height = 15
	type box struct{ x, y, w, h px }
	var taken []box
	for _, q := range places {
		taken = append(taken, box{q.x - 6, q.y - 6, 12, 12})
	}
	var out []plate
	for _, q := range places {
		text := strings.Join(q.numbers, ", ")
		w := textWidth(text) + 4
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
				if b.x < 1 || b.x+b.w > side+20 || b.y < -14 || b.y+b.h > side-1 {
					bad += 3
				}
				if bad < least {
					best, least = b, bad
				}
			}
		}
		taken = append(taken, best)
		out = append(out, plate{best.x, best.y, w, text})
	}
	return out
}

// roc draws detections against false positives, one panel a sweep, with the points
// joined in the order of their values.
func roc(id, split string, sweeps []summary.Sweep) template.HTML {
	plot := &squarePlot{Across: "FPR: legitimate writes stopped", Up: "TPR: attacks detected"}
	plot.canvas = canvas{ID: id, Title: "Detections against false positives on " + split}
	for _, sw := range sweeps {
		s := square{Title: labelOf(sw.Agent+": "+sw.Name, side)}
		var path []px
		for k, p := range sw.Points {
			score := p.Of(split)
			plot.Desc += fmt.Sprintf("%s, %s: TPR %s, FPR %s. ", sw.Agent, p.Defense, score.TPR, score.FPR)
			t, ok := score.TPR.Value()
			f, measured := score.FPR.Value()
			if ok && measured {
				path = append(path, across(f), up(t))
				s.Dots = append(s.Dots, dot{X: across(f), Y: up(t), Chosen: k == sw.Chosen})
			}
		}
		s.Path = line(path...)
		plot.Panels = append(plot.Panels, s)
	}
	return draw("squares", plot.place(64))
}
