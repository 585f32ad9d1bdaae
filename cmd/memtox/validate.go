package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
)

// mostProblems is how many problems of a set are printed one by one.
const mostProblems = 40

func newDatasetsValidate(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "validate NAME|FILE", Short: "Check that a set holds what it promises", Args: oneArg("a set or a file"),
		Long: `Check the static promises of a set: vocabulary, canaries, twins, splits,
near-duplicates, shortcuts. With --behaviour the set is run instead: with the
reference model attacks must land through their channel where nothing stops them,
every task must be possible, nothing may land without memory, and the controls
block-all and origin-only must pay in utility. Exit code 1 where a promise is
broken; what a foreign set need not keep is a warning.`,
		Example: "  memtox datasets validate memtox-smoke\n  memtox datasets validate --behaviour memtox-smoke\n  memtox " +
			"datasets validate cases.jsonl --format json",
	}
	format := c.Flags().String("format", "table", "table or json")
	behaviour := c.Flags().Bool("behaviour", false, "run the set and check what it does")
	c.ValidArgsFunction = completeSets
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := choice("--format", *format, []string{"table", "json"}); err != nil {
			return err
		}
		set, err := env.openSet(cmd.Context(), args[0])
		if err != nil {
			return setProblem(err)
		}
		if *behaviour {
			return checkBehaviour(cmd.Context(), env, set, *format)
		}
		found, err := datasets.Validate(cmd.Context(), set)
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
	return c
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
		err = writeBehaviour(env.Stdout, b)
	}
	if err == nil && !b.OK() {
		return told{errBadNews}
	}
	return err
}

func writeBehaviour(w io.Writer, b *harness.Behaviour) error {
	var out strings.Builder
	for i, c := range b.Cases {
		if i == mostProblems {
			fmt.Fprintf(&out, "… and %d more\n", len(b.Cases)-i)
			break
		}
		fmt.Fprintf(&out, "%s (%s) on %s: %s\n", inert.Text(c.Case), inert.Text(c.Family), c.Agent, inert.Text(c.What))
	}
	failed := 0
	for _, c := range b.Checks {
		mark := "ok   "
		switch {
		case !c.OK && c.Note:
			mark = "note "
		case !c.OK:
			mark = "FAILS"
			failed++
		}
		fmt.Fprintf(&out, "%s  %s: %s\n", mark, c.Name, c.Detail)
	}
	fmt.Fprintf(&out, "%d checks of behaviour, %d fail (the reference model is not an LLM: these are properties of the set)\n", len(b.Checks), failed)
	_, err := io.WriteString(w, out.String())
	return err
}
