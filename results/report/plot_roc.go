package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/memtox/memtox/results/summary"
)

// roc draws detections against false positives, one panel a sweep, with the
// points joined in the order of their values.
func roc(id, split string, sweeps []summary.Sweep) template.HTML {
	const side, leftRoom, topRoom, gap, bottomRoom = 290., 56., 34., 26., 64.
	columns := min(max(len(sweeps), 1), 2)
	lines := (len(sweeps) + columns - 1) / columns
	var desc strings.Builder
	for _, sw := range sweeps {
		for _, p := range sw.Points {
			score := p.Of(split)
			fmt.Fprintf(&desc, "%s, %s: TPR %s, FPR %s. ", sw.Agent, p.Defense, score.TPR, score.FPR)
		}
	}
	s := newSVG(id, "Detections against false positives on "+split, desc.String(), float64(columns)*(leftRoom+side+gap),
		float64(max(lines, 1))*(topRoom+side+bottomRoom))
	for i, sw := range sweeps {
		x0 := float64(i%columns)*(leftRoom+side+gap) + leftRoom
		y0 := float64(i/columns)*(topRoom+side+bottomRoom) + topRoom
		x, y := s.unitSquare(x0, y0, side, sw.Agent+": "+sw.Name, "FPR: legitimate writes stopped", "TPR: attacks detected")
		var path []float64
		for k, p := range sw.Points {
			score := p.Of(split)
			t, ok := score.TPR.Value()
			f, measured := score.FPR.Value()
			if !ok || !measured {
				continue
			}
			path = append(path, x(f), y(t))
			s.circle("dot", x(f), y(t), 4)
			if k == sw.Chosen {
				s.path("diamond", true, x(f), y(t)-8, x(f)+8, y(t), x(f), y(t)+8, x(f)-8, y(t))
			}
		}
		if len(path) == 0 {
			s.text("none", middle, x(0.5), y(0.5), "not measured")
		} else {
			s.path("front", false, path...)
		}
	}
	return s.done()
}
