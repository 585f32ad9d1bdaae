package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/results/stats"
)

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
		a.front = a.measured()
		u, s := a.at()
		for k := range p.points {
			b := &p.points[k]
			v, t := b.at()
			if b.measured() && v >= u && t >= s && (v > u || t > s) {
				a.front = false
			}
		}
	}
}

// scatter draws security against utility, one panel an agent, two beside each
// other.
func scatter(id string, panels []scatterPanel) template.HTML {
	const side, leftRoom, topRoom, gap = 290., 56., 34., 26.
	bottomRoom := 50.
	for _, p := range panels {
		bottomRoom = max(bottomRoom, 50+16*float64(len(p.key(side+gap))))
	}
	columns := min(max(len(panels), 1), 2)
	lines := (len(panels) + columns - 1) / columns
	var desc strings.Builder
	for _, p := range panels {
		for _, pt := range p.points {
			fmt.Fprintf(&desc, "%s, %d %s: security %s, utility %s. ", p.title, pt.number, pt.label, pt.security, pt.utility)
		}
	}
	s := newSVG(id, "Security against utility", desc.String(),
		float64(columns)*(leftRoom+side+gap), float64(max(lines, 1))*(topRoom+side+bottomRoom))
	for i, p := range panels {
		x0 := float64(i%columns)*(leftRoom+side+gap) + leftRoom
		y0 := float64(i/columns)*(topRoom+side+bottomRoom) + topRoom
		scatterOne(s, p, x0, y0, side)
		for k, line := range p.key(side + gap) {
			s.text("label", left, x0-leftRoom/2, y0+side+58+16*float64(k), line)
		}
	}
	return s.done()
}

// key names the numbers, in lines of a width.
func (p *scatterPanel) key(width float64) []string {
	var lines []string
	line := ""
	for _, pt := range p.points {
		name := strconv.Itoa(pt.number) + " " + clip(pt.label, width/2)
		if line != "" && textWidth(line+"   "+name) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " · "
		}
		line += name
	}
	return append(lines, line)
}

// unitSquare draws the axes of a plot of two shares, with its lower left corner at
// x0, y0+side, and returns where a share stands on each.
func (s *svg) unitSquare(x0, y0, side float64, title, across, up string) (x, y func(float64) float64) {
	x = func(v float64) float64 { return x0 + v*side }
	y = func(v float64) float64 { return y0 + (1-v)*side }
	s.clipped("group", left, x0, y0-14, side, title)
	for v := 0.; v <= 1.0001; v += 0.25 {
		s.line("grid", x(v), y(0), x(v), y(1))
		s.line("grid", x(0), y(v), x(1), y(v))
		s.text("tick", middle, x(v), y(0)+16, fmt.Sprintf("%g", v))
		s.text("tick", right, x(0)-7, y(v)+4, fmt.Sprintf("%g", v))
	}
	s.line("axis", x(0), y(0), x(1), y(0))
	s.line("axis", x(0), y(0), x(0), y(1))
	s.text("name", middle, x(0.5), y(0)+36, across)
	s.upright("name", x0-40, y(0.5), up)
	return x, y
}

func scatterOne(s *svg, p scatterPanel, x0, y0, side float64) {
	x, y := s.unitSquare(x0, y0, side, p.title, "utility", "security (1 − end to end)")

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
	// Between two arms of the front nothing is known to be possible but what the
	// worse of them reaches: a staircase, not a slope.
	var path []float64
	for i, pt := range front {
		u, v := pt.at()
		if i > 0 {
			before, _ := front[i-1].at()
			path = append(path, x(before), y(v))
		} else {
			path = append(path, x(0), y(v))
		}
		path = append(path, x(u), y(v))
		if i == len(front)-1 {
			path = append(path, x(u), y(0))
		}
	}
	if len(path) > 0 {
		s.path("front", false, path...)
	}
	type place struct {
		x, y    float64
		numbers []string
		front   bool
	}
	var places []place
	for i := range p.points {
		pt := &p.points[i]
		if !pt.measured() {
			continue
		}
		u, v := pt.at()
		s.line("whisker thin", x(pt.utility.Lo), y(v), x(pt.utility.Hi), y(v))
		s.line("whisker thin", x(u), y(pt.security.Lo), x(u), y(pt.security.Hi))
		k := slices.IndexFunc(places, func(q place) bool { return math.Hypot(q.x-x(u), q.y-y(v)) < 9 })
		if k < 0 {
			places = append(places, place{x: x(u), y: y(v)})
			k = len(places) - 1
		}
		places[k].numbers = append(places[k].numbers, strconv.Itoa(pt.number))
		places[k].front = places[k].front || pt.front
	}
	if len(places) == 0 {
		s.text("none", middle, x(0.5), y(0.5), "not measured")
	}
	for i := range p.points {
		pt := &p.points[i]
		if pt.measured() {
			u, v := pt.at()
			s.circle("dot", x(u), y(v), 5)
		}
	}
	// Labels go where they hide no point and no other label.
	type box struct{ x, y, w, h float64 }
	var taken []box
	for _, q := range places {
		taken = append(taken, box{q.x - 6, q.y - 6, 12, 12})
	}
	for _, q := range places {
		text := strings.Join(q.numbers, ", ")
		w, h := textWidth(text)+4, 15.
		best, least := box{}, math.Inf(1)
		for d := 8.; d <= 32; d += 8 {
			for _, dir := range [...][2]float64{{-1, -1}, {1, -1}, {-1, 1}, {1, 1}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}} {
				b := box{q.x + dir[0]*(d+w/2) - w/2, q.y + dir[1]*(d+h/2-4) - h/2, w, h}
				bad := d / 100
				for _, t := range taken {
					if b.x < t.x+t.w && t.x < b.x+b.w && b.y < t.y+t.h && t.y < b.y+b.h {
						bad++
					}
				}
				if b.x < x(0)+1 || b.x+b.w > x(1)+20 || b.y < y(1)-14 || b.y+b.h > y(0)-1 {
					bad += 3
				}
				if bad < least {
					best, least = b, bad
				}
			}
		}
		taken = append(taken, best)
		s.rect("plate", best.x, best.y, best.w, best.h)
		s.text("label strong", middle, best.x+best.w/2, best.y+12, text)
	}
}
