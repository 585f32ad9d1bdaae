package results

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

var update = flag.Bool("update", false, "write SCHEMA.md and golden files anew")

// TestSchemaPageIsThatOfTheRows makes SCHEMA.md from the structs and their
// comments. Write it anew with: go test ./results -run Schema -update
func TestSchemaPageIsThatOfTheRows(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The rows of a run

Made from the comments in row.go and parquet.go; do not edit.

Any Parquet reader reads the files. They are compressed with zstd, and their rows stand in the order of the plan.
Join trials and decisions on ` + "`trial`" + `. A nullable column is null where the question did not arise.
`)
	for _, table := range []struct {
		title, source string
		row           any
		schema        *parquet.Schema
	}{
		{"trials.parquet: one row a trial", "row.go", Trial{}, parquet.SchemaOf(Trial{})},
		{"decisions.parquet: one row a gate call", "row.go", Decision{}, parquet.SchemaOf(Decision{})},
		{"transcripts/index.parquet: where a transcript stands", "parquet.go", indexRow{}, parquet.SchemaOf(indexRow{})},
	} {
		typ := reflect.TypeOf(table.row)
		comments := fieldComments(t, table.source, typ.Name())
		fmt.Fprintf(&b, "\n## %s\n\n| column | type | null | meaning |\n|---|---|---|---|\n", table.title)
		for i, c := range table.schema.Fields() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			if name != c.Name() {
				t.Fatalf("field %s: the tag says %q and the file %q", f.Name, name, c.Name())
			}
			meaning := comments[f.Name]
			if meaning == "" {
				t.Errorf("column %s has no comment in %s", name, table.source)
			}
			null := ""
			if c.Optional() {
				null = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, columnType(c), null, strings.ReplaceAll(meaning, "|", `\|`))
		}
	}
	if *update {
		if err := os.WriteFile("SCHEMA.md", []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("SCHEMA.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("SCHEMA.md is not what the rows say; write it anew with -update:\n%s", diff)
	}
}

func fieldComments(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSpec)
		if !ok || s.Name.Name != typ {
			return true
		}
		for _, field := range s.Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				said := field.Comment.Text()
				if said == "" { // a long one stands above its field
					said = field.Doc.Text()
				}
				out[name.Name] = strings.Join(strings.Fields(said), " ")
			}
		}
		return false
	})
	return out
}

func columnType(c parquet.Field) string {
	if c.Type().Kind() == parquet.ByteArray { // all of them are UTF-8
		return "string"
	}
	return strings.ToLower(c.Type().Kind().String())
}
