package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/render"
)

// listing is a table of texts that prints as a table, as JSON or as Markdown.
type listing struct {
	columns []string
	rows    [][]string
}

func (l *listing) add(cells ...string) { l.rows = append(l.rows, cells) }

// formats are the output formats of every command that prints data.
var formats = []string{"table", "json", "markdown"}

// formatFlag adds --format.
func formatFlag(cmd *cobra.Command) *string {
	f := cmd.Flags().String("format", "table", "table, json or markdown")
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	return f
}

// objects are the rows with the columns for keys.
func (l *listing) objects() []map[string]string {
	out := make([]map[string]string, 0, len(l.rows))
	for _, r := range l.rows {
		m := map[string]string{}
		for i, c := range l.columns {
			m[c] = r[i]
		}
		out = append(out, m)
	}
	return out
}

func (l *listing) table() *render.Table { return &render.Table{Header: l.columns, Rows: l.rows} }

// print writes the listing in a format. JSON is a list of objects with the
// columns for keys.
func (l *listing) print(env *Env, format string) error {
	switch format {
	case "json":
		return printJSON(env, l.objects())
	case "markdown":
		return l.table().Markdown(env.Stdout)
	case "table":
		return l.table().Text(env.Stdout)
	}
	p := &settings.Problem{Where: "--format", What: fmt.Sprintf("unknown format %q", format),
		Hint: "one of " + strings.Join(formats, ", ")}
	return p
}

// printJSON prints what a program reads and a person may see in a terminal.
func printJSON(env *Env, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := env.Stdout.Write(inert.JSON(b.Bytes()))
	return err
}

// must is for what only a mistake in this program can break.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
