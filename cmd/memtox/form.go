package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/render"
	"github.com/memtox/memtox/results/stats"
)

// The readable texts of the commands are templates. A line that holds a control and
// nothing else, or fields, leaves no line of its own. Rows are lines with cells between
// " | ", the columns' names first; columns that say nothing are left out. A line after
// "### " is a heading. Whatever an action prints is made inert, so no value adds a line
// or a cell.
//
//go:embed forms.txt
var formSource string

// forms parses the templates, once for each command that prints one.
func forms() *template.Template {
	return inert.Template(strings.ReplaceAll(formSource, " | ", "\t"), cell, template.FuncMap{
		"instant": instant, "shown": shown, "state": state, "many": many, "called": called,
		"join": strings.Join, "fields": pairs, "rate": render.Rate, "kappa": kappa, "frequent": frequent,
		"span": span, "clock": clock, "percent": percent, "points": points,
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

// printForm prints a value by a form, as text or as Markdown.
func printForm(env *Env, name, format string, v any) error {
	var filled, out strings.Builder
	if err := forms().ExecuteTemplate(&filled, name, v); err != nil {
		return fmt.Errorf("printing %s: %w", name, err)
	}
	var rows [][]string
	table := func() {
		if t := said(rows); t != nil && format == "markdown" {
			_ = t.Markdown(&out) // a Builder takes all
		} else if t != nil {
			_ = t.Text(&out)
		}
		rows = nil
	}
	for line := range strings.Lines(filled.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		table()
		heading, isHeading := strings.CutPrefix(line, "### ")
		switch {
		case format != "markdown":
			line = heading
		case !isHeading:
			line = inert.Markdown(line)
		}
		if out.WriteString(line + "\n"); format == "markdown" && line != "" {
			out.WriteString("\n") // a paragraph of its own
		}
	}
	table()
	_, err := io.WriteString(env.Stdout, out.String())
	return err
}

// said is a table, of the names of its columns and its rows, without the columns that say
// nothing; nil if it has no row.
func said(rows [][]string) *render.Table {
	if len(rows) < 2 {
		return nil
	}
	t := &render.Table{Rows: make([][]string, len(rows)-1)}
	for i, name := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[i] != "" }) {
			continue
		}
		t.Header = append(t.Header, name)
		for j, r := range rows[1:] {
			t.Rows[j] = append(t.Rows[j], r[i])
		}
	}
	return t
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

// span is an estimate with the range that it is in.
func span(format string, s harness.Span) string {
	return spanOf(s, func(v float64) string { return fmt.Sprintf(format, v) })
}

// clock is a span of seconds, as exact as it is worth.
func clock(s harness.Span) string {
	return spanOf(s, func(v float64) string {
		return time.Duration(v * float64(time.Second)).Round(max(time.Second, time.Duration(v/50)*time.Second)).String()
	})
}

func spanOf(s harness.Span, text func(float64) string) string {
	if s.Low == s.High {
		return "about " + text(s.Expected)
	}
	return fmt.Sprintf("about %s (%s to %s)", text(s.Expected), text(s.Low), text(s.High))
}

func percent(share float64) string { return fmt.Sprintf("%2.0f%%", 100*share) }

func points(difference *float64) string {
	if difference == nil {
		return "none"
	}
	return fmt.Sprintf("%.1f points", 100**difference)
}

func kappa(e stats.Estimate) string {
	v, ok := e.Value()
	if !ok {
		return render.NotMeasured
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", v, e.Lo, e.Hi)
}

// frequent names the n keys with the greatest counts.
func frequent(n int, counts map[string]int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	return keys[:min(n, len(keys))]
}

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
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = env.Stdout.Write(inert.JSON(append(b, '\n')))
	}
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
