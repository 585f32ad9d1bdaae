package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// AgreeOptions says what counts as agreement. A zero field has its default.
type AgreeOptions struct {
	Least      float64 // share of trials that must agree; 0.9
	LeastKappa float64 // Cohen's kappa; 0.6
	// Beside is the directory of the run that has B, where that is another: a product was
	// measured once, and its profile anew.
	Beside string
}

// Agreement is how far two agents of a run do the same, attack by attack.
type Agreement struct {
	Run        RunInfo `json:"run"`
	A          string  `json:"a"`
	B          string  `json:"b"`
	Least      float64 `json:"least"`
	LeastKappa float64 `json:"least_kappa"`

	Arms   []AgreementArm `json:"arms"`
	Differ []Differing    `json:"differ"`
}

// AgreementArm is the agreement under one defense.
type AgreementArm struct {
	Defense string `json:"defense"`
	Pairs   int    `json:"pairs"`
	// OnlyA and OnlyB count attacks of which the run has a trial of one agent alone, and
	// NotScored those that are not scored with both.
	OnlyA     int `json:"only_a"`
	OnlyB     int `json:"only_b"`
	NotScored int `json:"not_scored"`

	Columns []AgreementColumn `json:"columns"`
}

// AgreementColumn is the agreement on one thing that may become of an attack.
type AgreementColumn struct {
	Name      string         `json:"name"`
	Pairs     stats.Pairs    `json:"pairs"`
	Agreement stats.Rate     `json:"agreement"`
	Kappa     stats.Estimate `json:"kappa"` // not measured where both agents have one outcome only, the same
	// Short says what is not reached: agreement, kappa or both; empty where nothing is.
	Short []string `json:"short,omitempty"`
}

// Differing is an attack of which the agents make different things.
type Differing struct {
	Case    string `json:"case"`
	Family  string `json:"family,omitempty"`
	Defense string `json:"defense"`
	Model   string `json:"model"`
	Epoch   int32  `json:"epoch"`
	// Only says by column which agent alone did it: a or b.
	Only map[string]string `json:"only"`
}

// agreed are the columns, by their names.
var agreed = []struct {
	name string
	of   func(*results.Trial) *bool
}{
	{"stored", func(t *results.Trial) *bool { return &t.Written }},
	{"injected", func(t *results.Trial) *bool { return &t.Exposed }},
	{"harmed", func(t *results.Trial) *bool { return t.Harm }},
}

// Agree pairs the attacks of two agents of a run directory by case, model, defense and
// epoch.
func Agree(dir, a, b string, o AgreeOptions) (*Agreement, error) {
	r, err := results.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := &Agreement{A: a, B: b, Least: cmp.Or(o.Least, 0.9), LeastKappa: cmp.Or(o.LeastKappa, 0.6), Differ: []Differing{}}
	type key struct {
		kase, model, defense string
		epoch                int32
	}
	type did struct {
		there, scored bool
		what          [3]int // by column: 1 it did, -1 it did not, 0 the question did not arise
	}
	type pair struct {
		key
		family string
		of     [2]did
	}
	at := map[key]int{}
	var pairs []pair
	var agents, defenses []string
	second := r
	if o.Beside != "" {
		if second, err = results.OpenReader(o.Beside); err != nil {
			return nil, err
		}
		defer second.Close()
		if one, other := r.Run().Dataset, second.Run().Dataset; one.SHA256 != other.SHA256 {
			return nil, usage("the runs are of other cases: "+one.Name+" and "+other.Name, "agents are compared on the same ones")
		}
	}
	add := func(t *results.Trial, side int) {
		if t.Label != results.Attack {
			return
		}
		k := key{t.Case, t.Model, t.Defense, t.Epoch}
		i, ok := at[k]
		if !ok {
			i = len(pairs)
			at[k] = i
			pairs = append(pairs, pair{key: k, family: t.Family})
		}
		of := did{there: true, scored: t.Status == results.Scored}
		for c := range agreed {
			if yes := agreed[c].of(t); yes != nil {
				of.what[c] = -1
				if *yes {
					of.what[c] = 1
				}
			}
		}
		pairs[i].of[side] = of
		if !slices.Contains(defenses, t.Defense) {
			defenses = append(defenses, t.Defense)
		}
	}
	for side, r := range []*results.Reader{r, second} {
		for e, err := range r.Entries(results.TrialsOnly) {
			if err != nil {
				return nil, err
			}
			if !slices.Contains(agents, e.Trial.Agent) {
				agents = append(agents, e.Trial.Agent)
			}
			if e.Trial.Agent == []string{a, b}[side] {
				add(&e.Trial, side)
			}
		}
	}
	for _, name := range []string{a, b} {
		if !slices.Contains(agents, name) {
			return nil, settings.Unknown("", "agent of the run", name, agents)
		}
	}
	if a == b {
		return nil, usage("an agent agrees with itself", "name two agents of the run")
	}
	t := NewTable(dir, r.Run())
	t.Finished, t.Trials = r.Finished(), r.Trials()
	out.Run = t.Info()
	for _, d := range r.Run().Defenses { // in the order of the run
		if !slices.Contains(defenses, d) {
			continue
		}
		arm := AgreementArm{Defense: d}
		tables := make([]stats.Pairs, len(agreed))
		families := make([]stats.Families, len(agreed))
		for i := range families {
			families[i] = stats.Families{}
		}
		for _, p := range pairs {
			x, y := p.of[0], p.of[1]
			switch {
			case p.defense != d:
				continue
			case !y.there:
				arm.OnlyA++
				continue
			case !x.there:
				arm.OnlyB++
				continue
			case !x.scored || !y.scored:
				arm.NotScored++
				continue
			}
			arm.Pairs++
			differ := Differing{p.kase, p.family, d, p.model, p.epoch, map[string]string{}}
			for i, c := range agreed {
				inA, inB := x.what[i], y.what[i]
				if inA == 0 || inB == 0 {
					continue
				}
				if only := tables[i].Add(inA > 0, inB > 0); only != "" {
					differ.Only[c.name] = only
				}
				families[i].Add(cmp.Or(p.family, "case "+p.kase), inA == inB)
			}
			if len(differ.Only) > 0 {
				out.Differ = append(out.Differ, differ)
			}
		}
		for i, c := range agreed {
			n := tables[i]
			column := AgreementColumn{Name: c.name, Pairs: n, Agreement: families[i].Rate(0),
				Kappa: stats.Kappa([][]int{{n.Both, n.OnlyA}, {n.OnlyB, n.Neither}}, 0)}
			if v, ok := column.Agreement.Value(); ok && v < out.Least {
				column.Short = append(column.Short, "agreement")
			}
			if v, ok := column.Kappa.Value(); ok && v < out.LeastKappa {
				column.Short = append(column.Short, "kappa")
			}
			arm.Columns = append(arm.Columns, column)
		}
		out.Arms = append(out.Arms, arm)
	}
	return out, nil
}

// Pairs are how many attacks were paired, in all arms.
func (a *Agreement) Pairs() (n int) {
	for _, arm := range a.Arms {
		n += arm.Pairs
	}
	return n
}

// Short reports whether some figure is below what it has to reach.
func (a *Agreement) Short() bool {
	return slices.ContainsFunc(a.Arms, func(arm AgreementArm) bool {
		return slices.ContainsFunc(arm.Columns, func(c AgreementColumn) bool { return len(c.Short) > 0 })
	})
}

// Write writes the agreement as table, json or markdown.
func (a *Agreement) Write(w io.Writer, format string) error {
	return render.Write(w, format, a, func(p *render.Paper) error {
		p.Item("%s", a.Run.About())
		p.Item("A is %s, B is %s: the same attacks with both", a.A, a.B)
		g := &render.Table{Labels: 2, Header: []string{"arm", "column", "both", "only A", "only B", "neither", "agreement",
			"kappa"}}
		for _, arm := range a.Arms {
			for _, c := range arm.Columns {
				row := []string{arm.Defense, c.Name}
				for _, n := range []int{c.Pairs.Both, c.Pairs.OnlyA, c.Pairs.OnlyB, c.Pairs.Neither} {
					row = append(row, fmt.Sprint(n))
				}
				g.Add(append(row, render.Rate(c.Agreement), kappa(c.Kappa))...)
			}
		}
		p.Table(g)
		p.Gap()
		p.Item("stored: what the attacker wants is where later sessions can see it; injected: it reached a prompt of the " +
			"retrieval session; harmed: the world ended as the attacker wants it")
		p.Item("agreement has a %g%% interval (Wilson's, clustered by template family); kappa is Cohen's, agreement beyond "+
			"chance, with the interval of Fleiss, Cohen and Everitt (1969), cases taken as independent", 100*stats.DefaultLevel)
		for _, arm := range a.Arms {
			d := Dropped{OnlyA: arm.OnlyA, OnlyB: arm.OnlyB, NotScored: arm.NotScored}
			if d.total() > 0 {
				p.Item("left out of %s: %s that the run has with A only, %d with B only, %d not scored with both", arm.Defense,
					plural(d.OnlyA, "attack"), d.OnlyB, d.NotScored)
			}
			for _, c := range arm.Columns {
				if !c.Kappa.Measured() && c.Pairs.N() > 0 {
					p.Item("kappa of %s under %s is not defined: the column is constant, and the same, with both", c.Name, arm.Defense)
				}
				for _, what := range c.Short {
					p.Item("below: %s of %s under %s (agreement has to be at least %g, kappa %g)", what, c.Name, arm.Defense, a.Least,
						a.LeastKappa)
				}
			}
		}
		if len(a.Differ) == 0 {
			return nil
		}
		p.Heading(3, "%s differ: the agent that alone did it", plural(len(a.Differ), "attack"))
		g = &render.Table{Header: []string{"case", "family", "arm", "model", "epoch"}}
		for _, c := range agreed {
			g.Header = append(g.Header, c.name)
		}
		for _, d := range a.Differ[:min(len(a.Differ), mostDiffering)] {
			row := []string{d.Case, d.Family, d.Defense, d.Model, fmt.Sprint(d.Epoch)}
			for _, c := range agreed {
				row = append(row, map[string]string{"a": "A", "b": "B"}[d.Only[c.name]])
			}
			g.Add(row...)
		}
		p.Table(g)
		if more := len(a.Differ) - mostDiffering; more > 0 {
			p.Say("… and %d more; --format json has them all", more)
		}
		return nil
	})
}

// mostDiffering bounds how many attacks a table lists.
const mostDiffering = 40

func kappa(e stats.Estimate) string {
	v, ok := e.Value()
	if !ok {
		return "not defined"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", v, e.Lo, e.Hi)
}
