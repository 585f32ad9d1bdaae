package summary

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Mix says for how much situations count, attacks and benign cases apart. A key is the
// beginning of a situation's name: what it takes in counts by its trials. What no key
// takes in counts for nothing.
type Mix struct {
	Name   string             `yaml:"-"`
	Attack map[string]float64 `yaml:"attack"`
	Benign map[string]float64 `yaml:"benign"`
}

// Uniform is the mix in which every situation that there is counts alike; nil maps.
const Uniform = "uniform"

//go:embed crossed.yaml
var crossedYAML []byte

// MixOf returns the mix of a name: uniform, crossed, or a file that read reads. A key that
// begins none of the known situations is refused: its weight would be lost.
func MixOf(name string, known []string, read func(string) ([]byte, error)) (*Mix, error) {
	m := &Mix{Name: name}
	data, file := crossedYAML, "crossed.yaml"
	switch name {
	case "":
		return nil, nil
	case Uniform:
		return m, nil
	case "crossed":
	default:
		var err error
		if data, err = read(name); err != nil {
			return nil, &settings.Problem{Where: "--mix", Err: err, Hint: "uniform, crossed, or a YAML file"}
		}
		file = name
	}
	if err := settings.Decode(file, data, m); err != nil {
		return nil, settings.Placed("--mix", err)
	}
	total := 0.
	for _, side := range []map[string]float64{m.Attack, m.Benign} {
		for name, w := range side {
			if !slices.ContainsFunc(known, func(s string) bool { return s == name || strings.HasPrefix(s, name+" ") }) {
				return nil, unknownSituation(file, name, known)
			}
			if !(w >= 0 && w <= 1e6) {
				return nil, &settings.Problem{Where: "--mix", What: fmt.Sprintf("%s: the situation %q counts %v", file, name, w),
					Hint: "a share is a number from 0 on"}
			}
			total += w
		}
	}
	if total == 0 {
		return nil, &settings.Problem{Where: "--mix", Err: errors.New(file + " names no situation that counts"),
			Hint: "attack: {\"external task high\": 22, …}, benign: {…}"}
	}
	return m, nil
}

// unknownSituation suggests a situation, or one without its risk.
func unknownSituation(file, name string, known []string) error {
	names := slices.Clone(known)
	for _, s := range known {
		names = append(names, s[:strings.LastIndexByte(s, ' ')])
	}
	p := settings.Unknown("--mix", "situation", name, names)
	if p.What = file + ": " + p.What; settings.Nearest(name, names) == "" {
		p.Hint = "memtox situations RUN lists those of a run"
	}
	return p
}

// Mixed are an arm's rates with situations weighed by a mix.
type Mixed struct {
	Mix   string                  `json:"mix"`
	Rates map[string]*stats.Share `json:"rates"` // by metric; nil is not measured
	// Unmeasured are the keys of the mix in which no trial was scored.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// mixed weighs an arm's situations.
func (a *Aggregator) mixed(x *arm) *Mixed {
	out := &Mixed{Mix: a.opts.Mix.Name, Rates: map[string]*stats.Share{}}
	empty := map[string]bool{}
	for _, m := range SituationRates() {
		attack := m != metric.DoneBenign && m != metric.Wrong
		counts := map[string]stats.Families{}
		for k, c := range x.cells {
			if k.situation == "" || k.attack != attack || c[m.Index()].n == 0 || !a.counts(k) {
				continue
			}
			if counts[k.situation] == nil {
				counts[k.situation] = stats.Families{}
			}
			f := counts[k.situation][k.family]
			f.K, f.N = f.K+int(c[m.Index()].k), f.N+int(c[m.Index()].n)
			counts[k.situation][k.family] = f
		}
		weights := a.opts.Mix.Benign
		if attack {
			weights = a.opts.Mix.Attack
		}
		var strata []stats.Stratum
		if a.opts.Mix.Name == Uniform {
			weights = map[string]float64{}
			for s := range counts {
				weights[s+"\x00"] = 1
			}
		}
		for _, key := range slices.Sorted(maps.Keys(weights)) {
			all, name := stats.Families{}, strings.TrimSuffix(key, "\x00")
			for s, f := range counts {
				if s == name || name == key && strings.HasPrefix(s, name+" ") {
					for family, c := range f {
						was := all[family]
						was.K, was.N = was.K+c.K, was.N+c.N
						all[family] = was
					}
				}
			}
			if len(all) == 0 && weights[key] > 0 && !m.Conditional {
				empty[name] = true
			}
			strata = append(strata, stats.Stratum{Weight: weights[key], Families: all})
		}
		out.Rates[m.Name] = nil
		if s, ok := stats.Weighted(strata, a.opts.Level); ok {
			out.Rates[m.Name] = &s
		}
	}
	out.Unmeasured = slices.Sorted(maps.Keys(empty))
	return out
}

// SituationRates are the rates that are told by situation.
func SituationRates() []*metric.Metric {
	return []*metric.Metric{metric.Harm, metric.DoneAttack, metric.Rescued, metric.DoneBenign, metric.Wrong}
}

// Situated is what became of the cases of one situation. Excess are questions that were
// not due, per 100 trials, of the side that has more of them.
type Situated struct {
	Slice
	Excess *float64
}

// SituationSlices are the arm's slices by situation.
func (a *Arm) SituationSlices() (out []Slice) {
	for _, x := range a.Situations {
		out = append(out, x.Slice)
	}
	return out
}

// situations tells an arm's rates by situation, the most frequent first.
func (a *Aggregator) situations(x *arm) []Situated {
	out := []Situated{}
	for _, s := range a.slices(x, nil, func(k cellKey) []string {
		if k.situation == "" {
			return nil
		}
		return []string{k.situation}
	}, a.counts) {
		out = append(out, Situated{s, excess(x.questions[s.Name])})
	}
	trials := func(s Situated) int { return s.Rate(metric.Harm).N + s.Rate(metric.DoneBenign).N }
	slices.SortStableFunc(out, func(p, q Situated) int { return cmp.Compare(trials(q), trials(p)) })
	return out
}
