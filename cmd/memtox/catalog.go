package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"

	"github.com/memtox/memtox/internal/settings"
)

// catalog is memtox's own, with files looked for in the working directory.
func (e *Env) catalog(resume bool, spent remote.Caps) harness.Catalog {
	c := harness.Builtin()
	c.Datasets = e.openSet
	c.Models = e.models(resume, spent).Model
	c.ReadFile = e.readRegular
	c.Lookup, c.Dir = e.lookup, e.Dir
	return c
}

// models makes models in this surrounding.
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
	if slices.Contains(datasets.Names(), name) {
		return attacks.Open(ctx, name)
	}
	path := e.path(name)
	if _, err := os.Stat(path); err != nil && path != name && errors.Is(err, fs.ErrNotExist) {
		path = name // the error should name what the user wrote
	}
	return attacks.Open(ctx, path)
}

// setProblem is an error of opening a set, which the user can mend.
func setProblem(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &settings.Problem{Err: err}
}

func newAgents(env *Env) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the agents", Args: noArgs, Example: "  memtox agents list"}
	format := formatFlag(list)
	list.RunE = func(*cobra.Command, []string) error {
		l := &listing{columns: []string{"agent", "version", "about"}}
		for _, p := range agents.Profiles() {
			l.add(p.Name, p.Version, p.About)
		}
		return l.print(env, *format)
	}
	return group("agents", "The agents: profiles that say how memory is used", list)
}

func newAttacks(env *Env) *cobra.Command {
	return group("attacks", "The attack classes and the mutations", newAttacksList(env), newAttacksMutations(env))
}

func newAttacksList(env *Env) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the attack classes", Args: noArgs,
		Example: "  memtox attacks list --format json"}
	format := formatFlag(list)
	list.RunE = func(*cobra.Command, []string) error {
		l := &listing{columns: []string{"class", "title", "signal", "channel", "vulnerabilities"}}
		for _, c := range datasets.Classes() {
			i, _ := datasets.Info(c)
			l.add(c, i.Title, i.Signal, i.Channel, strings.Join(i.Vulnerabilities, " "))
		}
		return l.print(env, *format)
	}
	return list
}

func newAttacksMutations(env *Env) *cobra.Command {
	list := &cobra.Command{Use: "mutations", Short: "List the mutations that --mutate takes", Args: noArgs,
		Long: "List the mutations that --mutate takes. The reference model cannot read what an\nopaque one makes: its " +
			"figures there say nothing of an LLM, which may unwrap it.",
		Example: "  memtox attacks mutations"}
	format := formatFlag(list)
	list.RunE = func(*cobra.Command, []string) error {
		l := &listing{columns: []string{"mutation", "kind", "about"}}
		for _, m := range attacks.Mutations() {
			about := m.About
			if m.Opaque {
				about += " (opaque)"
			}
			l.add(m.Name, string(m.Kind), about)
		}
		return l.print(env, *format)
	}
	return list
}

func newDefenses(env *Env) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the defenses", Args: noArgs, Example: "  memtox defenses list"}
	format := formatFlag(list)
	list.RunE = func(*cobra.Command, []string) error {
		l := &listing{columns: []string{"defense", "screens", "idea", "cost"}}
		for _, i := range builtin.New().Infos() {
			name := i.Name
			if i.Argument != "" {
				name += "[:" + i.Argument + "]"
			}
			l.add(name, cmp.Or(defenses.PlaceList(i.Screens), "–"), i.Idea, i.Cost)
		}
		return l.print(env, *format)
	}
	return group("defenses", "The defenses: what stands between an agent and its memory", list)
}

func newDatasets(env *Env) *cobra.Command {
	return group("datasets", "The cases: built-in sets and files", newDatasetsList(env), newDatasetsShow(env),
		newDatasetsValidate(env), newDatasetsExport(env), newDatasetsMutate(env), newDatasetsImport(env),
		newDatasetsFetch(env))
}

func newDatasetsList(env *Env) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the built-in sets", Args: noArgs, Example: "  memtox datasets list"}
	format := formatFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		l := &listing{columns: []string{"dataset", "version", "about"}}
		for _, b := range datasets.Builtins() {
			l.add(b.Name, b.Version, b.About)
		}
		return l.print(env, *format)
	}
	return c
}

func newDatasetsShow(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME|FILE", Short: "Show what a set holds, or one of its cases", Args: oneArg("a set or a file"),
		Example: "  memtox datasets show memtox-smoke\n  memtox datasets show memtox-smoke --case m-c8c802af",
	}
	format := formatFlag(c)
	id := c.Flags().String("case", "", "show this case")
	c.ValidArgsFunction = completeSets
	c.RunE = func(cmd *cobra.Command, args []string) error {
		set, err := env.openSet(cmd.Context(), args[0])
		if err != nil {
			return setProblem(err)
		}
		if *id != "" {
			k, ok := set.Find(*id)
			if !ok {
				return &settings.Problem{Where: "--case", What: fmt.Sprintf("%s has no case %q", set.Name, *id)}
			}
			if *format == "json" {
				return printJSON(env, k)
			}
			return datasets.Show(env.Stdout, k)
		}
		return showSet(env, set, *format)
	}
	return c
}

// showSet counts the cases of a set by what tables are made of.
func showSet(env *Env, set *datasets.Set, format string) error {
	type key struct{ label, what string }
	counts, families := map[key][2]int{}, map[key]map[string]bool{}
	for i := range set.Cases {
		k := &set.Cases[i]
		g := key{string(k.Label), cmp.Or(k.Class, k.Kind)}
		n := counts[g]
		if k.Split == datasets.Tune {
			n[1]++
		} else {
			n[0]++
		}
		counts[g] = n
		if families[g] == nil {
			families[g] = map[string]bool{}
		}
		families[g][k.Family] = true
	}
	order := make([]key, 0, len(counts))
	for g := range counts {
		order = append(order, g)
	}
	rank := append(datasets.Classes(), datasets.Kinds()...)
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(place(rank, a.what), place(rank, b.what)),
			cmp.Compare(a.what, b.what))
	})
	l := &listing{columns: []string{"label", "class or kind", "report", "tune", "families"}}
	for _, g := range order {
		l.add(g.label, g.what, fmt.Sprint(counts[g][0]), fmt.Sprint(counts[g][1]), fmt.Sprint(len(families[g])))
	}
	attacks, benign := set.Counts()
	if format == "json" {
		return printJSON(env, map[string]any{"name": set.Name, "version": set.Version, "sha256": set.SHA256,
			"attacks": attacks, "benign": benign, "groups": l.rows})
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n\n", inert.Text(strings.Join(strings.Fields(fmt.Sprintf("%s %s: %d attacks, %d benign cases, SHA-256 %s", set.Name, set.Version, attacks, benign, set.SHA256)), " "))); err != nil {
		return err
	}
	return l.print(env, format)
}

func place(list []string, s string) int {
	if i := slices.Index(list, s); i >= 0 {
		return i
	}
	return len(list)
}

func newDatasetsExport(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "export NAME|FILE", Short: "Write a set as JSON Lines", Args: oneArg("a set or a file"),
		Example: "  memtox datasets export memtox-smoke -o cases.jsonl",
	}
	out := c.Flags().StringP("output", "o", "", "the file to write; standard output without it")
	c.ValidArgsFunction = completeSets
	c.RunE = func(cmd *cobra.Command, args []string) error {
		set, err := env.openSet(cmd.Context(), args[0])
		if err != nil {
			return setProblem(err)
		}
		if *out == "" {
			return datasets.WriteJSONL(env.Stdout, set.Cases)
		}
		return writeWhole(env.path(*out), func(f *os.File) error { return datasets.WriteJSONL(f, set.Cases) })
	}
	return c
}

func newDatasetsMutate(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "mutate NAME|FILE", Short: "Write the variants of a set's attacks as JSON Lines",
		Args: oneArg("a set or a file"),
		Long: `Write what --mutate makes of a set's attacks, as a file that run takes with
--dataset. Each variant names its case and its mutation. With none in the list the
originals, benign cases included, are written too.`,
		Example: "  memtox datasets mutate memtox-smoke --mutate summary,echo -o variants.jsonl",
	}
	out := c.Flags().StringP("output", "o", "", "the file to write; standard output without it")
	list := c.Flags().StringSlice("mutate", nil, "the mutations, or sequences of them joined by + (memtox attacks "+
		"mutations)")
	split := c.Flags().String("split", harness.AllSplits, "report, tune or all")
	must(c.RegisterFlagCompletionFunc("mutate", completeList(harness.MutateChoices)))
	must(c.RegisterFlagCompletionFunc("split", cobra.FixedCompletions([]string{"report", "tune", "all"},
		cobra.ShellCompDirectiveNoFileComp)))
	c.ValidArgsFunction = completeSets
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(*list) == 0 {
			return &settings.Problem{Where: "--mutate", What: "no mutation is named", Hint: "see `memtox attacks mutations`"}
		}
		if err := choice("--split", *split, []string{"report", "tune", "all"}); err != nil {
			return err
		}
		set, err := env.openSet(cmd.Context(), args[0])
		if err != nil {
			return setProblem(err)
		}
		if *split != harness.AllSplits {
			part := *set
			part.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c datasets.Case) bool {
				return (c.Split == datasets.Tune) != (*split == string(datasets.Tune))
			})
			set = &part
		}
		cases, applied, err := harness.Variants(set, *list)
		if err != nil {
			return err
		}
		if *out == "" {
			return datasets.WriteJSONL(env.Stdout, cases)
		}
		if err := writeWhole(env.path(*out), func(f *os.File) error { return datasets.WriteJSONL(f, cases) }); err != nil {
			return err
		}
		l := &listing{columns: []string{"mutation", "variants"}}
		for _, name := range slices.Sorted(maps.Keys(applied)) {
			l.add(name, fmt.Sprint(applied[name]))
		}
		return l.print(env, "table")
	}
	return c
}

// writeWhole writes a file beside its name and renames it: the file is whole or
// not there.
func writeWhole(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".memtox-*.tmp")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// The completions of names.

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
