package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/datasets/importers"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
)

func newDatasetsImport(env *Env, c *cobra.Command) action {
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		for _, f := range importers.Formats() {
			c.Long += fmt.Sprintf("\n  %-14s %s", f.Name, f.About)
		}
		c.Parent().HelpFunc()(c, args)
	})
	fs := c.Flags()
	out := fs.StringP("output", "o", "", "the `file` of cases to write (.jsonl)")
	mapFile := fs.String("map", "", "the mapping `file`, for jsonl, csv and parquet")
	ledgerFile := fs.String("ledger", "", "where to write what became of each object (default: beside the cases, "+
		".ledger.jsonl)")
	skip := fs.Bool("skip-invalid", false, "go on after an object that cannot be used, and count it as rejected")
	format := choiceFlag(c, "format", "table", "how the ledger is printed: table or json", "table", "json")
	printMap := fs.String("print-map", "", "print the ready mapping of a `format`, to start from, and do nothing else")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return importers.FormatNames(), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	return func(ctx context.Context, args []string) error {
		if *printMap != "" {
			data, ok := importers.ReadyMapping(*printMap)
			if !ok {
				return &settings.Problem{Where: "--print-map", What: fmt.Sprintf("no ready mapping is called %q", *printMap),
					Hint: "see memtox datasets import --help"}
			}
			_, err := env.Stdout.Write(data)
			return err
		}
		switch names := importers.FormatNames(); {
		case len(args) == 0:
			return &settings.Problem{What: "memtox datasets import needs a format and a file",
				Hint: "formats: " + strings.Join(names, ", ")}
		case *out == "":
			return &settings.Problem{Where: "-o", What: "no file is named for the cases", Hint: "for instance -o cases.jsonl"}
		case filepath.Ext(*out) != ".jsonl":
			return &settings.Problem{Where: "-o", What: *out + " does not end in .jsonl, by which the format is told later",
				Hint: "cases are written as JSON lines: name it .jsonl"}
		case !slices.Contains(names, args[0]):
			return settings.Unknown("", "format", args[0], names)
		}
		r := importers.Request{Format: args[0], SkipInvalid: *skip}
		if *mapFile != "" {
			data, err := env.read("--map", *mapFile)
			if err != nil {
				return err
			}
			if r.Map, err = importers.ParseMapping(*mapFile, data); err != nil {
				return &settings.Problem{Err: err}
			}
		}
		for _, name := range args[1:] {
			if env.path(name) == env.path(*out) {
				return &settings.Problem{Where: "-o", What: name + " would be overwritten by its own cases",
					Hint: "choose another name"}
			}
			r.Files = append(r.Files, importers.Input{Name: name, Path: env.path(name)})
		}
		cases, ledger, err := importers.Import(ctx, r)
		if err != nil {
			return &settings.Problem{Err: err}
		}
		if *ledgerFile == "" {
			*ledgerFile = strings.TrimSuffix(*out, ".jsonl") + ".ledger.jsonl"
		}
		if err := env.output(*ledgerFile, ledger.WriteEntries); err != nil {
			return err
		}
		if err := env.output(*out, func(w io.Writer) error { return datasets.WriteJSONL(w, cases) }); err != nil {
			return err
		}
		if *format == "json" {
			return printJSON(env, ledger)
		}
		var b strings.Builder
		if err := ledger.WriteText(&b); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\ncases: %s; what became of each object, with its old id: %s\n", *out, *ledgerFile)
		for line := range strings.Lines(b.String()) {
			if _, err := fmt.Fprintln(env.Stdout, inert.Text(strings.TrimSuffix(line, "\n"))); err != nil {
				return err
			}
		}
		return nil
	}
}
