package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
)

// mostProblems is how many problems of a set are printed one by one.
const mostProblems = 40

func newDatasetsValidate(env *Env, c *cobra.Command) action {
	format := choiceFlag(c, "format", "table", "table or json", "table", "json")
	behaviour := c.Flags().Bool("behaviour", false, "run the set and check what it does")
	c.ValidArgsFunction = completeSets
	return func(ctx context.Context, args []string) error {
		set, err := env.openSet(ctx, args[0])
		if err != nil {
			return err
		}
		if *behaviour {
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
		if err == nil && found.Errors() > 0 {
			return told{errBadNews}
		}
		return err
	}
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
		failed := 0
		for _, c := range b.Checks {
			if !c.OK && !c.Note {
				failed++
			}
		}
		shown := b.Cases[:min(len(b.Cases), mostProblems)]
		err = printForm(env, "behaviour", "", map[string]any{"Cases": shown, "More": len(b.Cases) - len(shown),
			"Checks": b.Checks, "Failed": failed})
	}
	if err == nil && !b.OK() {
		return told{errBadNews}
	}
	return err
}
