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

// show prints a result as JSON, or a value by a form.
func show(env *Env, format, form string, result, v any) error {
	if format == "json" {
		return printJSON(env, result)
	}
	return printForm(env, form, format, v)
}

// endIf has a command that did what was asked end with a code all the same.
func endIf(err error, is bool, code error) error {
	if err == nil && is {
		return told{code}
	}
	return err
}

// must is for what only a mistake in this program can break.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
