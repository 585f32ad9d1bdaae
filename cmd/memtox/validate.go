package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/render"
)

// mostProblems is how many problems of a set are printed one by one.
const mostProblems = 40

func newDatasetsValidate(env *Env, c *cobra.Command) action {
	format := choiceFlag(c, "format", "table", "table or json", "table", "json")
	behaviour := c.Flags().Bool("behaviour", false, "run the set and check what it does")
	controls := c.Flags().Bool("controls", false, "run the controls on the set and check that none wins")
	c.ValidArgsFunction = completeSets
	return func(ctx context.Context, args []string) error {
		set, err := env.openSet(ctx, args[0])
		if err != nil {
			return err
		}
		switch {
		case *behaviour && *controls:
			return &settings.Problem{Where: "--controls", What: "stands beside --behaviour", Hint: "ask for one of them at a time"}
		case *controls:
			return checkControls(ctx, env, set, *format)
		case *behaviour:
			return checkBehaviour(ctx, env, set, *format)
		}
		found, err := attacks.Validate(ctx, env.setPath(args[0]), set)
		if err != nil {
			return err
		}
		if *format == "json" {
			err = printJSON(env, found)
		} else {
			err = found.WriteText(env.Stdout, mostProblems)
		}
		return endIf(err, found.Errors() > 0, errBadNews)
	}
}

func checkControls(ctx context.Context, env *Env, set *datasets.Set, format string) error {
	k, err := harness.CheckControls(ctx, set)
	if err != nil {
		return err
	}
	if format == "json" {
		err = printJSON(env, k)
	} else {
		t := &render.Table{Header: []string{"agent", "control", "model", "harm", "done, benign", "done, attacks", "pairs",
			"questions too many per 100", "wins"}}
		for _, r := range k.Rows {
			t.Add(r.Agent, r.Defense, strings.TrimPrefix(r.Model, "reference:"), render.Share(r.Harm), render.Share(r.DoneBenign),
				render.Share(r.DoneAttack), render.Share(r.Pairs), fmt.Sprintf("%.1f", r.Excess),
				map[bool]string{true: "wins"}[r.Wins])
		}
		if err = printTable(env, t, format); err == nil {
			err = printChecks(env, k.Checks, nil, "of the controls")
		}
	}
	return endIf(err, !k.OK(), errBadNews)
}

// printChecks prints what was checked, after the cases that fell short.
func printChecks(env *Env, checks harness.Checks, cases []harness.CaseProblem, of string) error {
	shown := cases[:min(len(cases), mostProblems)]
	return printForm(env, "checks", "", map[string]any{"Cases": shown, "More": len(cases) - len(shown),
		"Checks": checks, "Failed": checks.Failed(), "Of": of})
}

// checkBehaviour runs the set and prints what it found, failures last.
func checkBehaviour(ctx context.Context, env *Env, set *datasets.Set, format string) error {
	b, err := harness.CheckBehaviour(ctx, set)
	if err != nil {
		return err
	}
	if format == "json" {
		err = printJSON(env, b)
	} else {
		err = printChecks(env, b.Checks, b.Cases, "of behaviour")
	}
	return endIf(err, !b.OK(), errBadNews)
}
