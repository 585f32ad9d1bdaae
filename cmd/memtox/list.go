package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results/inert"
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

// print writes the listing in a format. JSON is a list of objects with the
// columns for keys.
func (l *listing) print(env *Env, format string) error {
	switch format {
	case "json":
		return printJSON(env, l.objects())
	case "markdown":
		var b strings.Builder
		line := func(cells []string) {
			b.WriteByte('|')
			for _, c := range cells {
				b.WriteString(" " + inert.Markdown(c) + " |")
			}
			b.WriteByte('\n')
		}
		line(l.columns)
		b.WriteString(strings.Repeat("|---", len(l.columns)) + "|\n")
		for _, r := range l.rows {
			line(r)
		}
		_, err := fmt.Fprint(env.Stdout, b.String())
		return err
	case "table":
		w := table.NewWriter()
		style := table.StyleLight
		style.Options = table.Options{SeparateColumns: true}
		style.Box.PaddingLeft, style.Box.PaddingRight, style.Box.MiddleVertical = "", "", "  "
		style.Format.Header = text.FormatDefault
		w.SetStyle(style)
		row := func(cells []string) table.Row {
			out := make(table.Row, len(cells))
			for i, c := range cells {
				out[i] = inert.Text(c)
			}
			return out
		}
		w.AppendHeader(row(l.columns))
		for _, r := range l.rows {
			w.AppendRow(row(r))
		}
		for line := range strings.Lines(w.Render() + "\n") {
			if _, err := fmt.Fprintln(env.Stdout, strings.TrimRight(line, " \n")); err != nil {
				return err
			}
		}
		return nil
	}
	p := &harness.Problem{Where: "--format", What: fmt.Sprintf("unknown format %q", format), Hint: "one of " + strings.Join(formats, ", ")}
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
	_, err := env.Stdout.Write(escapedJSON(b.Bytes()))
	return err
}

// must is for what only a mistake in this program can break.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
