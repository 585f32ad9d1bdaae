package main

import (
	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
)

// mostProblems is how many problems of a set are printed one by one.
const mostProblems = 40

func newDatasetsValidate(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "validate NAME|FILE", Short: "Check what can be said of a set without running it", Args: oneArg("a set or a file"),
		Long: `Check the static promises of a set: vocabulary, canaries, twins, splits,
near-duplicates, shortcuts. Exit code 1 where a promise is broken; what a foreign
set need not keep is a warning.`,
		Example: "  memtox datasets validate memtox-smoke\n  memtox datasets validate cases.jsonl --format json",
	}
	format := c.Flags().String("format", "table", "table or json")
	c.ValidArgsFunction = completeSets
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *format != "table" && *format != "json" {
			return &harness.Problem{Where: "--format", What: "unknown format " + *format, Hint: "one of table, json"}
		}
		set, err := env.openSet(cmd.Context(), args[0])
		if err != nil {
			return setProblem(err)
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
