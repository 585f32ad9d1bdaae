package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/render"
)

// catalog is memtox's own, with files looked for in the working directory.
func (e *Env) catalog(resume bool, spent remote.Caps) harness.Catalog {
	c := harness.Builtin()
	c.Datasets = e.openSet
	c.Models, c.ReadFile = e.models(resume, spent).Model, e.readRegular
	c.Lookup, c.Dir = e.lookup, e.Dir
	return c
}

func (e *Env) models(resume bool, spent remote.Caps) harness.ModelOptions {
	return harness.ModelOptions{Lookup: e.lookup, ReadFile: e.readFile, Path: e.path, Resume: resume, Spent: spent}
}

// lookup reads the environment; an empty variable counts as unset.
func (e *Env) lookup(name string) (string, bool) {
	v := e.Getenv(name)
	return v, v != ""
}

// openSet opens a set by name, or a file in the working directory.
func (e *Env) openSet(ctx context.Context, name string) (*datasets.Set, error) {
	set, err := attacks.Open(ctx, e.setPath(name))
	if err != nil {
		return nil, &settings.Problem{Err: err}
	}
	return set, nil
}

// setPath is where a set is opened that is a built-in one or a file.
func (e *Env) setPath(name string) string {
	path := e.path(name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || slices.Contains(datasets.Names(), name) {
		return name // which is also what an error should name
	}
	return path
}

func list(env *Env, c *cobra.Command, columns []string, fill func(*render.Table)) action {
	format := formatFlag(c)
	return func(context.Context, []string) error {
		t := &render.Table{Header: columns}
		fill(t)
		return printTable(env, t, *format)
	}
}

func newAgentsList(env *Env, c *cobra.Command) action {
	return list(env, c, []string{"agent", "version", "about"}, func(t *render.Table) {
		for _, p := range agents.Profiles() {
			t.Add(p.Name, p.Version, p.About)
		}
		for _, p := range installed.Products() {
			t.Add(external.Installed+":"+p.Name, p.Tried[len(p.Tried)-1], p.About+", where it is installed")
		}
	})
}

func newAttacksList(env *Env, c *cobra.Command) action {
	return list(env, c, []string{"class", "title", "signal", "channel", "vulnerabilities"}, func(t *render.Table) {
		for _, class := range append(datasets.Classes(), datasets.Frontier()...) {
			i, _ := datasets.Info(class) // of the six alone
			t.Add(class, datasets.Title(class), i.Signal, i.Channel, strings.Join(i.Vulnerabilities, " "))
		}
	})
}

func newAttacksMutations(env *Env, c *cobra.Command) action {
	return list(env, c, []string{"mutation", "kind", "about"}, func(t *render.Table) {
		for _, m := range attacks.Mutations() {
			about := m.About
			if m.Opaque {
				about += " (opaque)"
			}
			t.Add(m.Name, string(m.Kind), about)
		}
	})
}

func newDefensesList(env *Env, c *cobra.Command) action {
	return list(env, c, []string{"defense", "screens", "idea", "cost"}, func(t *render.Table) {
		for _, i := range builtin.New().Infos() {
			name := i.Name
			if i.Argument != "" {
				name += "[:" + i.Argument + "]"
			}
			t.Add(name, cmp.Or(defenses.PlaceList(i.Screens), "–"), i.Idea, i.Cost)
		}
	})
}

func newDatasetsList(env *Env, c *cobra.Command) action {
	return list(env, c, []string{"dataset", "version", "about"}, func(t *render.Table) {
		for _, b := range datasets.Builtins() {
			t.Add(b.Name, b.Version, b.About)
		}
	})
}

func newDatasetsShow(env *Env, c *cobra.Command) action {
	format := formatFlag(c)
	id := c.Flags().String("case", "", "show this case")
	c.ValidArgsFunction = completeSets
	return func(ctx context.Context, args []string) error {
		set, err := env.openSet(ctx, args[0])
		if err != nil {
			return err
		}
		if *id == "" {
			return showSet(env, set, *format)
		}
		k, ok := set.Find(*id)
		switch {
		case !ok:
			var ids []string
			for i := range set.Cases {
				ids = append(ids, set.Cases[i].ID)
			}
			p := &settings.Problem{Where: "--case", What: fmt.Sprintf("%s has no case %q", set.Name, *id)}
			if near := settings.Nearest(*id, ids); near != "" {
				p.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return p
		case *format == "json":
			return printJSON(env, k)
		}
		return datasets.Show(env.Stdout, k)
	}
}

// showSet counts the cases of a set by what tables are made of, and where their outcome
// is a state by situation.
func showSet(env *Env, set *datasets.Set, format string) error {
	groups := count(set, func(k *datasets.Case) (string, bool) { return "", true })
	t := &render.Table{Header: []string{"label", "class or kind", "report", "tune", "families"}}
	for _, g := range groups {
		t.Add(g.label, g.what, fmt.Sprint(g.report), fmt.Sprint(g.tune), fmt.Sprint(len(g.families)))
	}
	situations := &render.Table{Header: []string{"label", "class or kind", "situation", "families", "cases"}}
	for _, g := range count(set, func(k *datasets.Case) (string, bool) {
		if k.State == nil {
			return "", false
		}
		if k.State.Asks != "" {
			return "question, " + k.State.Situation.String(), true
		}
		return k.State.Situation.String(), true
	}) {
		situations.Add(g.label, g.what, g.situation, fmt.Sprint(len(g.families)), fmt.Sprint(g.report+g.tune))
	}
	attacks, benign := set.Counts()
	if format == "json" {
		v := map[string]any{"name": set.Name, "version": set.Version, "sha256": set.SHA256,
			"attacks": attacks, "benign": benign, "groups": t.Rows}
		if len(situations.Rows) > 0 {
			v["situations"] = situations.Rows
		}
		return printJSON(env, v)
	}
	about := fmt.Sprintf("%s: %d attacks, %d benign cases, SHA-256 %s", strings.TrimSpace(set.Name+" "+set.Version), attacks,
		benign, set.SHA256)
	_, err := fmt.Fprintf(env.Stdout, "%s\n\n", inert.Text(about))
	if err == nil {
		err = printTable(env, t, format)
	}
	if err != nil || len(situations.Rows) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(env.Stdout); err != nil {
		return err
	}
	return printTable(env, situations, format)
}

// group are the cases of one label and class or kind, and of one situation.
type group struct {
	label, what, situation string
	report, tune           int
	families               map[string]bool
}

// count groups the cases that are in a situation, in the order of what tables are made of.
func count(set *datasets.Set, situation func(*datasets.Case) (string, bool)) []*group {
	type key struct{ label, what, situation string }
	groups := map[key]*group{}
	for i := range set.Cases {
		k := &set.Cases[i]
		in, ok := situation(k)
		if !ok {
			continue
		}
		of := key{string(k.Label), cmp.Or(k.Class, k.Kind), in}
		g := groups[of]
		if g == nil {
			g = &group{label: of.label, what: of.what, situation: in, families: map[string]bool{}}
			groups[of] = g
		}
		if g.families[k.Family] = true; k.Split == datasets.Tune {
			g.tune++
		} else {
			g.report++
		}
	}
	rank := append(datasets.Classes(), datasets.Kinds()...)
	place := func(what string) int { // what is in no list comes last
		if i := slices.Index(rank, what); i >= 0 {
			return i
		}
		return len(rank)
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(place(a.what), place(b.what)), cmp.Compare(a.what, b.what),
			cmp.Compare(a.situation, b.situation))
	})
}

func newDatasetsExport(env *Env, c *cobra.Command) action {
	out := outputFlag(c)
	c.ValidArgsFunction = completeSets
	return func(ctx context.Context, args []string) error {
		set, err := env.openSet(ctx, args[0])
		if err != nil {
			return err
		}
		return env.output(*out, func(w io.Writer) error { return datasets.WriteJSONL(w, set.Cases) })
	}
}

func newDatasetsMutate(env *Env, c *cobra.Command) action {
	out := outputFlag(c)
	mutations := c.Flags().StringSlice("mutate", nil, "the mutations, or sequences of them joined by + (memtox attacks "+
		"mutations)")
	split := choiceFlag(c, "split", harness.AllSplits, "report, tune or all", "report", "tune", harness.AllSplits)
	must(c.RegisterFlagCompletionFunc("mutate", completeList(harness.MutateChoices)))
	c.ValidArgsFunction = completeSets
	return func(ctx context.Context, args []string) error {
		if len(*mutations) == 0 {
			return &settings.Problem{Where: "--mutate", What: "no mutation is named", Hint: "see `memtox attacks mutations`"}
		}
		set, err := env.openSet(ctx, args[0])
		if err != nil {
			return err
		}
		if *split != harness.AllSplits {
			part := *set
			part.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c datasets.Case) bool {
				return (c.Split == datasets.Tune) != (*split == string(datasets.Tune))
			})
			set = &part
		}
		cases, applied, err := harness.Variants(set, *mutations)
		if err != nil {
			return err
		}
		err = env.output(*out, func(w io.Writer) error { return datasets.WriteJSONL(w, cases) })
		if err != nil || *out == "" {
			return err
		}
		t := &render.Table{Header: []string{"mutation", "variants"}}
		for _, name := range slices.Sorted(maps.Keys(applied)) {
			t.Add(name, fmt.Sprint(applied[name]))
		}
		return printTable(env, t, "table")
	}
}

func agentNames() []string { return harness.Catalog{Profiles: agents.Profiles()}.AgentNames() }

func defenseNames() []string { return builtin.New().Names() }

func completeSets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return datasets.Names(), cobra.ShellCompDirectiveDefault
}

// completeList completes the last name of a comma list.
func completeList(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			before = typed[:i+1]
		}
		var out []string
		for _, n := range names() {
			if !slices.Contains(strings.Split(before, ","), n) {
				out = append(out, before+n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
