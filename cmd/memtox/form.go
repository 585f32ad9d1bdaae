package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/inert"
)

// The readable texts of the commands about a memory are templates. A line that holds a
// control and nothing else, or fields, leaves no line of its own. Rows are lines with
// cells between " | ", the columns' names first; columns that say nothing are left out.
// Whatever an action prints is made inert, so no value adds a line or a cell.
//
//go:embed forms/memory.txt
var formSource string

// forms parses the templates, once for each command that prints one.
func forms() *template.Template {
	return inert.Template(strings.ReplaceAll(formSource, " | ", "\t"), cell, template.FuncMap{
		"instant": instant, "shown": shown, "state": state, "many": many, "called": called,
		"join": strings.Join, "fields": pairs,
	})
}

// lines are what pairs makes, inert already.
type lines string

// cell is a value as a person reads it, on one line.
func cell(v any) string {
	switch v := v.(type) {
	case lines:
		return string(v)
	case time.Time:
		return instant(v)
	case memory.Origin:
		return strings.Join(strings.Fields(inert.Text(fmt.Sprint(v.Class, " ", v.Medium, " ", v.Source))), " ")
	}
	return inert.Text(fmt.Sprint(v))
}

// pairs are names and values, a pair a line; empty values are left out.
func pairs(list ...any) lines {
	var b strings.Builder
	for i := 0; i < len(list); i += 2 {
		if value := cell(list[i+1]); value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", list[i], value)
		}
	}
	return lines(strings.TrimSuffix(b.String(), "\n"))
}

// printForm prints a value by a form.
func printForm(env *Env, name string, v any) error {
	var b strings.Builder
	if err := forms().ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("printing %s: %w", name, err)
	}
	var rows [][]string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
			continue
		}
		if err := printRows(env, rows); err != nil {
			return err
		}
		rows = nil
		if _, err := io.WriteString(env.Stdout, line); err != nil {
			return err
		}
	}
	return printRows(env, rows)
}

// printRows prints a table, the columns' names first.
func printRows(env *Env, rows [][]string) error {
	if len(rows) < 2 {
		return nil
	}
	l := listing{rows: make([][]string, len(rows)-1)}
	for i, name := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[i] != "" }) {
			continue
		}
		l.columns = append(l.columns, name)
		for j, r := range rows[1:] {
			l.rows[j] = append(l.rows[j], r[i])
		}
	}
	return l.print(env, "table")
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// many counts things; "entr" becomes entry or entries.
func many(n any, noun string) string {
	one, more := noun, noun+"s"
	if strings.HasSuffix(noun, "tr") {
		one, more = noun+"y", noun+"ies"
	}
	if count := fmt.Sprint(n); count != "1" {
		return count + " " + more
	}
	return "1 " + one
}

// shown is a preview for a table, on one line.
func shown(preview string) string { return inert.Clip(preview, 60) }

// state is a record's state, with what else there is to say of it.
func state(s memory.State, forgotten, damaged bool) string {
	out := s.String()
	if forgotten {
		out += ", forgotten"
	}
	if damaged {
		out += ", DAMAGED"
	}
	return out
}
