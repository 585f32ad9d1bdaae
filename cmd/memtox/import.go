package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/datasets/importers"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
)

func newDatasetsImport(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "import FORMAT FILE… -o CASES", Short: "Turn other people's data into cases",
		Long: `Turn other people's data into cases. Sets with two sessions become full cases
for memtox run; labelled texts become cases without sessions for memtox detect.

The formats jsonl, csv and parquet take a mapping file that says which field is
what; docs/foreign-data.md describes it. What became of every object is printed
as a ledger and written, line by line with the old ids, to a file beside the
cases. Ids are replaced by hashes, for published ones tell the label.

The formats, as --help lists them:`,
		Example: `  memtox datasets import mpbench adversarial_data.jsonl.jsonl benign_data.jsonl.jsonl -o mpbench.jsonl
  memtox datasets import jsonl texts.jsonl --map texts.yaml -o texts-cases.jsonl
  memtox datasets import --print-map amg`,
	}
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
	format := fs.String("format", "table", "how the ledger is printed: table or json")
	printMap := fs.String("print-map", "", "print the ready mapping of a `format`, to start from, and do nothing else")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return importers.FormatNames(), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *printMap != "" {
			data, ok := importers.ReadyMapping(*printMap)
			if !ok {
				return &settings.Problem{Where: "--print-map", What: fmt.Sprintf("no ready mapping is called %q", *printMap),
					Hint: "see memtox datasets import --help"}
			}
			_, err := env.Stdout.Write(data)
			return err
		}
		if err := choice("--format", *format, []string{"table", "json"}); err != nil {
			return err
		}
		switch {
		case len(args) == 0:
			return &settings.Problem{What: "memtox datasets import needs a format and a file",
				Hint: "formats: " + strings.Join(importers.FormatNames(), ", ")}
		case *out == "":
			return &settings.Problem{Where: "-o", What: "no file is named for the cases", Hint: "for instance -o cases.jsonl"}
		case filepath.Ext(*out) != ".jsonl":
			return &settings.Problem{Where: "-o", What: *out + " does not end in .jsonl, by which the format is told later",
				Hint: "cases are written as JSON lines: name it .jsonl"}
		}
		if err := known("", "format", args[0], importers.FormatNames()); err != nil {
			return err
		}
		f, _ := importers.FindFormat(args[0])
		r := importers.Request{Format: f.Name, SkipInvalid: *skip}
		if *mapFile != "" {
			data, err := env.readFile(*mapFile)
			if err != nil {
				return &settings.Problem{Where: "--map", What: *mapFile, Err: withoutPath(err)}
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
		cases, ledger, err := importers.Import(cmd.Context(), r)
		if err != nil {
			return setProblem(err)
		}
		if *ledgerFile == "" {
			*ledgerFile = strings.TrimSuffix(*out, ".jsonl") + ".ledger.jsonl"
		}
		if err := writeWhole(env.path(*ledgerFile), ledger.WriteEntries); err != nil {
			return err
		}
		if err := writeWhole(env.path(*out), func(f *os.File) error { return datasets.WriteJSONL(f, cases) }); err != nil {
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
	return c
}
