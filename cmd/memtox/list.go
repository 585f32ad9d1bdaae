package main

import (
	"bytes"
	"encoding/json"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
)

// printTable prints a list as a table, as Markdown, or as JSON: objects with the columns
// for keys.
func printTable(env *Env, t *render.Table, format string) error {
	switch format {
	case "markdown":
		return t.Markdown(env.Stdout)
	case "table":
		return t.Text(env.Stdout)
	}
	out := make([]map[string]string, 0, len(t.Rows))
	for _, r := range t.Rows {
		m := map[string]string{}
		for i, column := range t.Header {
			m[column] = r[i]
		}
		out = append(out, m)
	}
	return printJSON(env, out)
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
