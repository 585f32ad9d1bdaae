package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
)

// NotScored is the count of an arm's trials that failed, as a metric.
const NotScored = "not_scored"

// Requirement is a limit: [agent/]defense[/class].metric <= limit, or >=.
type Requirement struct {
	Text     string // as it was written
	Where    string // file:line:column or flag; empty where it is unknown
	Selector string // [agent/]defense[/class]
	Metric   string
	AtLeast  bool // >=; else <=
	Limit    float64
	// Absolute: the limit of a latency is in microseconds. Otherwise it is a
	// multiple of the run's calibration loop, so that it holds on any machine.
	Absolute bool

	words string // operator and limit
}

// broken reports whether a figure breaks the limit.
func (r *Requirement) broken(v float64) bool {
	if r.AtLeast {
		return v < r.Limit
	}
	return v > r.Limit
}

// place is where the requirement of a check stands, if that is a file.
func (c *Check) place() (file string, line int) {
	if c.requirement == nil {
		return "", 0
	}
	parts := strings.Split(c.requirement.Where, ":")
	for i := 1; i < len(parts); i++ {
		if n, err := strconv.Atoi(parts[i]); err == nil {
			return strings.Join(parts[:i], ":"), n
		}
	}
	return "", 0
}

// MetricNames returns the names that a requirement may limit.
func MetricNames() []string {
	names := append(metric.Names((*metric.Metric).PerTrial), metric.ExcessPer100, NotScored)
	for _, l := range metric.Latencies() {
		names = append(names, l.String())
	}
	return names
}

func problem(where, hint, format string, args ...any) error {
	return &settings.Problem{Where: where, What: fmt.Sprintf(format, args...), Hint: hint}
}

const form = "[agent/]defense[/class].metric <= limit, for instance guard.harm <= 0.5"

// Parse reads a requirement. where is said in errors.
func Parse(text, where string) (Requirement, error) {
	r := Requirement{Text: strings.TrimSpace(text), Where: where}
	at, op := strings.LastIndex(text, "<="), "<="
	if i := strings.LastIndex(text, ">="); i > at {
		at, op = i, ">="
	}
	if at < 0 {
		if i := strings.IndexAny(text, "<>"); i >= 0 {
			form := strings.TrimSpace(text[:i]) + " " + text[i:i+1] + "= " + strings.TrimSpace(text[i+1:])
			return r, problem(where, form, "%q is no requirement: limits are written with <= or >=", text)
		}
		return r, problem(where, form, "%q is no requirement: it has neither <= nor >=", text)
	}
	r.AtLeast = op == ">="
	left, right := strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+2:])
	// A defense may be called by a path, so the metric is what ends the text.
	for _, name := range MetricNames() {
		if selector, ok := strings.CutSuffix(left, "."+name); ok && len(name) > len(r.Metric) {
			r.Selector, r.Metric = strings.TrimSpace(selector), name
		} else if left == name {
			return r, problem(where, form, "%q does not say of which defense", text)
		}
	}
	if r.Metric == "" {
		name := left
		if i := strings.LastIndexByte(left, '.'); i >= 0 {
			name = left[i+1:]
		}
		if i := strings.Index(left, ".latency_us."); i >= 0 {
			name = left[i+1:]
		}
		return r, problem(where, settings.Meant(name, MetricNames()), "unknown metric %q in %q", name, text)
	}
	if r.Selector == "" {
		return r, problem(where, form, "%q does not say of which defense", text)
	}
	_, latency := metric.FindLatency(r.Metric)
	number, unit := right, ""
	if i := strings.IndexFunc(right, func(c rune) bool { return !strings.ContainsRune("0123456789.eE+-", c) }); i >= 0 {
		number, unit = right[:i], strings.TrimSpace(right[i:])
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0 {
		return r, problem(where, form, "%q is no limit in %q", right, text)
	}
	switch {
	case latency:
		scale, ok := map[string]float64{"": 1, "x": 1, "ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6}[unit]
		if !ok {
			return r, problem(where, "a multiple of the calibration loop (40), or a time (40us, 2ms)",
				"%q is no limit of a latency in %q", right, text)
		}
		r.Absolute = unit != "" && unit != "x"
		v *= scale
		if r.AtLeast || v == 0 {
			return r, problem(where, "use <= with a limit above 0", "%q can never fail, or never pass", text)
		}
	case r.Metric == metric.ExcessPer100:
		if unit != "" || r.AtLeast {
			return r, problem(where, "so many per 100 trials, at most: guard.excess_per_100 <= 5",
				"%q is no limit of the questions that were not due", text)
		}
	case r.Metric == NotScored:
		if unit != "" || v != math.Trunc(v) || r.AtLeast {
			return r, problem(where, "a count: guard.not_scored <= 0", "%q: %s is a count of trials that failed", text,
				NotScored)
		}
	default:
		if unit == "%" {
			v /= 100
		} else if unit != "" {
			return r, problem(where, "0.05 or 5%", "%q is no limit of a rate in %q", right, text)
		}
		if v > 1 {
			return r, problem(where, short(v/100)+" or "+short(v)+"%", "a rate is never above 1, and %q says %s", text, right)
		}
		if r.AtLeast && v == 0 || !r.AtLeast && v == 1 {
			return r, problem(where, "give a limit that a rate can break", "%q can never fail", text)
		}
	}
	r.Limit, r.words = v, op+" "+short(v)
	switch {
	case latency && r.Absolute:
		r.words += " µs"
	case latency:
		r.words += " × calibration loop"
	}
	return r, nil
}

// target is what a selector stands for.
type target struct {
	agent, defense string
	slice          compare.Slice
}

// resolve finds the arms of a selector: with no agent every agent that has the
// defense.
func (r *Requirement) resolve(t *compare.Table) ([]target, error) {
	var arms []target // whole
	add := func(agent, defense string) {
		if x := (target{agent: agent, defense: defense}); !slices.Contains(arms, x) {
			arms = append(arms, x)
		}
	}
	for _, a := range t.Arms() {
		add(a.Agent, a.Defense)
	}
	if t.Run != nil {
		for _, agent := range t.Run.Labels() {
			for _, d := range t.Run.Defenses {
				add(agent, d)
			}
		}
	}
	classes := append([]string{""}, t.Classes()...)
	var found [4][]target
	for _, x := range arms {
		for _, c := range classes {
			suffix, kind := "", 0
			if c != "" {
				x.slice, suffix, kind = compare.Slice{By: "class", Name: c}, "/"+c, 2
			}
			if r.Selector == x.defense+suffix {
				found[kind] = append(found[kind], x)
			}
			// An agent that several models drive holds for each: the worst decides.
			if r.Selector == x.agent+"/"+x.defense+suffix || r.Selector == t.Run.Named(x.agent)+"/"+x.defense+suffix {
				found[kind+1] = append(found[kind+1], x)
			}
		}
	}
	var out []target
	for _, f := range found {
		if len(f) > 0 && out != nil {
			return nil, problem(r.Where, "write agent/defense/class in full", "%q can be read in two ways in %q", r.Selector,
				r.Text)
		}
		if len(f) > 0 {
			out = f
		}
	}
	if out == nil {
		var names, defenses []string
		for _, a := range arms {
			names, defenses = append(names, a.agent+"/"+a.defense), append(defenses, a.defense)
		}
		hint := "it has " + strings.Join(names, ", ")
		if len(classes) > 1 {
			hint += "; classes " + strings.Join(classes[1:], ", ")
		}
		if near := settings.Nearest(r.Selector, slices.Concat(defenses, names)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, problem(r.Where, hint, "%s has no arm %q", t.Name, r.Selector)
	}
	return out, nil
}
