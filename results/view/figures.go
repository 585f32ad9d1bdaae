package view

import (
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// Figures are what a run comes to: the words and rates of its report, and what it took.
type Figures struct {
	Said   []string       `json:"said"`
	Legend string         `json:"legend"`
	Tables []render.Table `json:"tables"`
	// Worse and Kept are the column names of harm and of tasks done.
	Worse string `json:"worse"`
	Kept  string `json:"kept"`
	// Harm and Done are those of the run at one look: undefended, and of the defense that
	// is best or comes closest, at the worse end.
	Harm []At  `json:"harm"`
	Done []At  `json:"done"`
	Maps []Map `json:"maps"` // an agent each

	Trials    int64 `json:"trials"`
	NotScored int64 `json:"not_scored"`
	Tokens    int64 `json:"tokens"`
	Estimated bool  `json:"estimated"` // some of the tokens are
	WallUS    int64 `json:"wall_us"`   // of all trials, one behind the other
}

// At is a rate of a defense, nil where it is not measured.
type At struct {
	Defense string   `json:"defense"`
	Rate    *float64 `json:"rate"`
}

// Map is harm by class and defense with an agent, at the worse end.
type Map struct {
	Agent    string              `json:"agent"`
	Classes  []string            `json:"classes"`
	Defenses []string            `json:"defenses"`
	Cells    [][]render.HeatCell `json:"cells"` // by class and defense
}

// figures passes once over the trials; of a run that goes on, not often.
func (o *openRun) figures() (*Figures, error) {
	o.counting.Lock()
	defer o.counting.Unlock()
	if o.counted != nil && (o.took == 0 || time.Since(o.as) < max(leastAge, 10*o.took)) {
		return o.counted, nil
	}
	began := time.Now()
	r, err := results.OpenReader(o.dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := figuresOf(r)
	if err != nil {
		return nil, err
	}
	o.counted, o.as, o.took = f, time.Now(), time.Since(began)
	if r.Finished() {
		o.took = 0 // for good
	}
	return f, nil
}

func figuresOf(r *results.Reader) (*Figures, error) {
	f, a := new(Figures), summary.New(r.Run(), summary.Options{})
	for e, err := range r.Entries(results.TrialsOnly) {
		if err != nil {
			return nil, err
		}
		a.Add(e)
		f.Trials++
		f.Tokens += e.Trial.PromptTokens + e.Trial.CompletionTokens
		f.Estimated = f.Estimated || e.Trial.TokensEstimated
		f.WallUS += e.Trial.WallUS
		if e.Trial.Status == results.Error {
			f.NotScored++
		}
	}
	s := a.Summary()
	v := s.Verdict
	if v == nil {
		return f, nil
	}
	harm := metric.EndToEnd
	f.Worse, f.Kept = "influenced", "utility"
	if v.States {
		harm, f.Worse, f.Kept = metric.Harm, "harm", "done"
	}
	f.Legend, f.Said = render.Said(v)
	f.Legend = strings.TrimSuffix(f.Legend, " p50: a write decision.") // decisions were not read
	f.Tables = render.Look(v)
	f.Harm, f.Done = look(v)
	for _, agent := range v.Agents {
		f.Maps = append(f.Maps, mapOf(r.Run(), s, v, agent, harm))
	}
	return f, nil
}

// look are the undefended line and the best one, or what comes closest.
func look(v *summary.Verdict) (harm, done []At) {
	best := v.Best
	if best == nil {
		best = v.Least()
	}
	for i := range v.Lines {
		if l := &v.Lines[i]; l.Defense == "none" || l == best {
			harm = append(harm, At{l.Defense, l.Worst().Most()})
			done = append(done, At{l.Defense, l.Worst().Done})
		}
	}
	return harm, done
}

// mapOf takes the worse of the ends, as the report does.
func mapOf(run *results.Run, s *summary.Summary, v *summary.Verdict, agent string, harm *metric.Metric) Map {
	m := Map{Agent: agent}
	worst := map[[2]string]stats.Rate{}
	for _, l := range v.Lines {
		m.Defenses = append(m.Defenses, l.Defense)
		for _, model := range v.Models {
			a := s.Arm(run.Label(agent, model), l.Defense)
			if a == nil {
				continue
			}
			for _, c := range a.Classes {
				if !slices.Contains(m.Classes, c.Name) {
					m.Classes = append(m.Classes, c.Name)
				}
				key, r := [2]string{c.Name, l.Defense}, c.Rate(harm)
				was, _ := worst[key].Value()
				if now, ok := r.Value(); ok && (now > was || !worst[key].Measured()) {
					worst[key] = r
				}
			}
		}
	}
	for _, class := range m.Classes {
		var row []render.HeatCell
		for _, d := range m.Defenses {
			row = append(row, render.Heat(worst[[2]string{class, d}], harm.Better))
		}
		m.Cells = append(m.Cells, row)
	}
	return m
}
