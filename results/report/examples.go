package report

import (
	"cmp"
	"strings"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/render"
)

// example is a trial that shows what an arm does.
type example struct{ Arm, Trial, About, Link string }

// The kinds of examples, in the order of their columns.
const (
	through = iota // an attack that did harm
	rescued        // one that did harm undefended and was done here
	failed         // a benign task with a wrong outcome, or without one
	kinds
)

// examples finds the first trial of each kind for every arm.
type examples struct {
	of     map[[2]string]*[kinds]example // by label of the agent, and defense
	landed map[[2]string]bool            // attacks that did harm undefended, by label and case
	done   map[[2]string][]example       // attacks that may be rescued, by arm
	cases  map[string]string             // of the trials in done
	wrong  map[[2]string]bool            // arms whose failed one is wrong, not idle
}

// mostDone is how many attacks of an arm may be looked at for a rescued one.
const mostDone = 400

func (x *examples) add(run *results.Run, t *results.Trial) {
	if t.Status != results.Scored || t.VariantOf != "" {
		return
	}
	if x.of == nil {
		x.of, x.landed = map[[2]string]*[kinds]example{}, map[[2]string]bool{}
		x.done, x.cases, x.wrong = map[[2]string][]example{}, map[string]string{}, map[[2]string]bool{}
	}
	label := strings.Clone(run.Label(t.Agent, t.Model))
	arm := [2]string{label, strings.Clone(t.Defense)}
	if x.of[arm] == nil {
		x.of[arm] = new([kinds]example)
	}
	is := func(m *metric.Metric) (bool, bool) { k, n := m.Count(t); return k > 0, n > 0 }
	one := func() example {
		about := strings.Clone(t.Class)
		if t.Label == results.Benign {
			about = "benign, " + t.Kind
		}
		return example{Arm: label, Trial: strings.Clone(t.ID), About: about}
	}
	if t.Label == results.Attack {
		harm, counts := is(metric.EndToEnd)
		done, _ := is(metric.UtilityUnderAttack)
		switch {
		case !counts:
		case harm:
			if x.of[arm][through].Trial == "" {
				x.of[arm][through] = one()
			}
			if t.Defense == "none" {
				x.landed[[2]string{label, strings.Clone(t.Case)}] = true
			}
		case done && t.Defense != "none" && len(x.done[arm]) < mostDone:
			e := one()
			x.done[arm], x.cases[e.Trial] = append(x.done[arm], e), strings.Clone(t.Case)
		}
		return
	}
	wrong, _ := is(metric.Wrong)
	done, counts := is(metric.Utility)
	if counts && !done && (x.of[arm][failed].Trial == "" || wrong && !x.wrong[arm]) {
		x.of[arm][failed], x.wrong[arm] = one(), wrong
	}
}

// figure has a row a defense; of each kind it names a trial of every agent.
func (x *examples) figure(r *Report) figure {
	f := figure{Caption: "A trial of each kind for every arm that has one.", Folded: r.viewer == "", Table: render.Table{Labels: 4,
		Header: []string{"defense", "got through", "rescued", "wrong or idle"}}}
	for _, d := range r.defenses() {
		row, links := []string{d}, [][]example{nil}
		for kind := range kinds {
			var cell []string
			var list []example
			for _, label := range r.agents() {
				arm := [2]string{label, d}
				if x.of[arm] == nil {
					continue
				}
				e := x.of[arm][kind]
				if kind == rescued {
					for _, c := range x.done[arm] {
						if x.landed[[2]string{label, x.cases[c.Trial]}] {
							e = c
							break
						}
					}
				}
				if e.Trial == "" {
					continue
				}
				if r.viewer != "" {
					e.Link = r.viewer + "&id=" + e.Trial
				}
				list = append(list, e)
				cell = append(cell, e.Arm+" "+e.Trial)
			}
			row = append(row, cmp.Or(strings.Join(cell, ", "), "–"))
			links = append(links, list)
		}
		f.Table.Add(row...)
		f.Examples = append(f.Examples, links)
	}
	return f
}
