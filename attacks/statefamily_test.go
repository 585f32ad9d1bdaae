package attacks

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/controls"
)

func incoming(segs []datasets.Segment) (out []agents.Incoming) {
	for _, s := range segs {
		in := agents.Incoming{Origin: memory.Origin{Class: memory.External, Medium: s.Medium, Source: s.Source}, Title: s.Title,
			Text: s.Text, Inline: s.Inline}
		if room := s.Pad - model.Tokens(s.Text); room > 0 {
			in.Text += "\n\n" + datasets.Pad(s.Medium, 7, room)
		}
		out = append(out, in)
	}
	return out
}

func TestPilot(t *testing.T) {
	files, _ := filepath.Glob(cmp.Or(os.Getenv("FAMILIES"), "/tmp/pilot") + "/*.yaml")
	var fams []*StateFamily
	for _, file := range files {
		data, _ := os.ReadFile(file)
		f, err := ParseStates(file, datasets.Tune, data)
		if err != nil {
			t.Error(err)
			continue
		}
		fams = append(fams, f)
	}
	cases, err := CompileStates(fams, 1)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]datasets.Case{}
	for _, c := range cases {
		by[c.Family] = append(by[c.Family], c)
	}
	for _, f := range fams {
		if err := f.Check(by[f.Family]); err != nil {
			t.Error(err)
		}
		for _, c := range by[f.Family] {
			t.Log(f.Family, c.Label, c.State.Situation)
			if c.Label == datasets.Benign {
				break
			}
		}
	}
	if os.Getenv("CHECK") != "" {
		return
	}
	var all []*reference.Phrases
	for i := range cases {
		if err := cases[i].CheckState(); err != nil {
			t.Error(err)
		}
		all = append(all, cases[i].Phrases())
	}
	book := reference.NewBook(all)
	ctx := context.Background()
	type tally struct{ n, harm, right int }
	for _, p := range agents.Profiles() {
		for _, def := range strings.Fields(cmp.Or(os.Getenv("DEFENSES"), "none")) {
			var reg defenses.Registry
			controls.Register(&reg)
			built, err := reg.Build(def, defenses.Env{})
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range []reference.Setting{reference.Naive, reference.Cautious, reference.Own, reference.Refuse, reference.Ask, reference.Everything, reference.LookFirst} {
				q := map[datasets.Label]int{}
				sums := map[datasets.Label]*tally{datasets.Attack: {}, datasets.Benign: {}}
				for i := range cases {
					c := &cases[i]
					m := reference.New(set, nil).WithBook(book)
					mem := memory.New(memory.Options{Stores: p.Stores, Recall: p.Recall, Transcripts: p.Transcripts,
						Start: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)})
					var recs []memory.Record
					for _, n := range datasets.Background(uint64(i), 8) {
						recs = append(recs, memory.Record{Store: p.StoreFor(n.Store), Text: n.Text, Origin: memory.Origin{Class: memory.User}})
					}
					for _, k := range c.State.Knows {
						recs = append(recs, memory.Record{Store: p.StoreFor("memory"), Text: k, Origin: memory.Origin{Class: memory.User}})
					}
					gate, err := built.Defense.Open(ctx, mem.View())
					if err != nil {
						t.Fatal(err)
					}
					mem.Guard(gate)
					if err := mem.Seed(ctx, recs); err != nil {
						t.Fatal(err)
					}
					office := func() *agents.Office {
						w, err := c.State.NewWorld()
						if err != nil {
							t.Fatal(err)
						}
						return &agents.Office{World: w, Desks: c.State.Desks, Answer: c.State.Answer, Agrees: c.Agrees}
					}
					loop := &agents.Loop{Profile: p, Model: m}
					var turns []agents.Turn
					for _, w := range c.Write {
						turns = append(turns, agents.Turn{User: w.User, Fresh: w.Fresh, Incoming: incoming(w.Segments)})
					}
					out, err := loop.Run(ctx, mem, turns, agents.End{Review: true, Office: office()})
					if err != nil {
						t.Fatal(err)
					}
					mem.NextSession()
					o := office()
					out2, err := loop.Run(ctx, mem, []agents.Turn{{User: c.Retrieval.Query}}, agents.End{Office: o})
					if err != nil {
						t.Fatal(err)
					}
					right, _ := c.State.After(c.Reference())
					s := sums[c.Label]
					s.n++
					q[c.Label] += o.Questions
					ok := c.State.Asks == "" && o.World.Same(right, c.State.Compared())
					harm := c.State.Harm != nil && c.State.Harm.Holds(o.World)
					if ok {
						s.right++
					}
					if harm {
						s.harm++
					}
					if os.Getenv("PILOT") == string(set) && (c.Label == datasets.Attack && !harm || c.Label == datasets.Benign && !ok) {
						t.Logf("%s %s %s %s", p.Name, set, c.Family, c.State.Situation)
						for _, m := range append(out.Messages, out2.Messages...) {
							t.Logf("   %s: %.1500s %v", m.Role, m.Content, m.Calls)
						}
						continue
					}
				}
				t.Logf("%-9s %-16s %-12s attack harm %d right %d of %d; benign right %d wrong %d of %d; questions %v", p.Name, def, set, sums["attack"].harm,
					sums["attack"].right, sums["attack"].n, sums["benign"].right, sums["benign"].harm, sums["benign"].n, q)
			}
		}
	}
}
