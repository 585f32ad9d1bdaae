package harness

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/settings"
)

// maxPoints bounds the values of one sweep.
const maxPoints = 200

// swept is one sweep: a name such as anomaly.z, and a spec for every value.
type swept struct {
	Name  string
	Specs []string
}

// swept reads the setting sweep.
func (c *Config) swept(known *defenses.Registry) ([]swept, error) {
	var out []swept
	for _, item := range c.Sweep {
		problem := func(what, hint string) error { return &settings.Problem{Where: "--sweep", What: what, Hint: hint} }
		const form = "write it as DEFENSE.KEY=FROM:TO:STEP, such as anomaly.z=1:6:0.5, or DEFENSE.KEY=A|B|C"
		name, values, ok := strings.Cut(item, "=")
		dot := strings.LastIndexByte(name, '.')
		if !ok || dot < 1 || values == "" {
			return nil, problem(fmt.Sprintf("%q is no sweep", item), form)
		}
		defense, key := name[:dot], name[dot+1:]
		info, ok := known.Info(defense)
		if !ok {
			return nil, settings.Unknown("--sweep", "defense", defense, known.Names())
		}
		var keys []string
		for _, t := range info.Tunables {
			keys = append(keys, t.Key)
		}
		i := slices.Index(keys, key)
		switch {
		case len(keys) == 0:
			return nil, problem(defense+" has no threshold that can be swept", "")
		case i < 0:
			return nil, settings.Unknown("--sweep", "threshold of "+defense, key, keys)
		case slices.ContainsFunc(out, func(s swept) bool { return s.Name == name }):
			return nil, problem(name+" is swept twice", "write all its values in one sweep")
		}
		list, err := points(values)
		if err != nil {
			return nil, problem(fmt.Sprintf("%s: %v", name, err), form)
		}
		s := swept{Name: name}
		for _, v := range list {
			s.Specs = append(s.Specs, defense+":"+info.Tunables[i].Argument(v))
		}
		out = append(out, s)
	}
	return out, nil
}

// points are the values of a sweep: FROM:TO:STEP, both ends included, or a list.
func points(s string) ([]string, error) {
	if !strings.Contains(s, ":") {
		list := strings.Split(s, "|")
		for i, v := range list {
			if v == "" || slices.Contains(list[:i], v) {
				return nil, fmt.Errorf("the value %q is empty or stands twice", v)
			}
		}
		if len(list) > maxPoints {
			return nil, fmt.Errorf("%d values, at most %d", len(list), maxPoints)
		}
		return list, nil
	}
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is no range", s)
	}
	var n [3]float64
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%q is not a number", p)
		}
		n[i] = v
	}
	from, to, step := n[0], n[1], n[2]
	if step <= 0 || to < from {
		return nil, fmt.Errorf("%q goes nowhere: the step is above 0 and the end not before the start", s)
	}
	count := math.Floor((to-from)/step+1e-9) + 1
	if count > maxPoints {
		return nil, fmt.Errorf("%.0f values, at most %d", count, maxPoints)
	}
	out := make([]string, int(count))
	for i := range out {
		// 1 + 3·0.1 is meant to be 1.3, not 1.3000000000000003.
		v, err := strconv.ParseFloat(strconv.FormatFloat(from+float64(i)*step, 'g', 12, 64), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no range: %w", s, err)
		}
		out[i] = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return out, nil
}
