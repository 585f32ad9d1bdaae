package importers

import (
	"embed"
	"slices"
	"strings"
)

// Format is a kind of file that can be imported.
type Format struct {
	Name  string
	About string // one line: which files, and where the format is documented

	syntax  syntax
	mapping func() (*Mapping, error)
}

//go:embed mappings/*.yaml
var ready embed.FS

// Formats lists every format: MPBench, the syntaxes that take a mapping, and the
// ready mappings, whose first line says which files they read.
func Formats() []Format {
	out := []Format{
		{Name: mpbenchName, About: "MPBench's released files, attacks and benign ones together (Digital-Trust-Lab/mp-bench)",
			syntax: lines},
		{Name: "jsonl", About: "JSON lines, or one JSON document, by a mapping", syntax: lines},
		{Name: "csv", About: "a table with a header, commas (.tsv: tabs), by a mapping", syntax: table},
		{Name: "parquet", About: "Parquet, by a mapping", syntax: columns},
	}
	files, _ := ready.ReadDir("mappings") // what is embedded is there
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".yaml")
		data, _ := ReadyMapping(name)
		about, _, _ := strings.Cut(strings.TrimPrefix(string(data), "# "), "\n")
		out = append(out, Format{Name: name, About: about, syntax: lines,
			mapping: func() (*Mapping, error) { return ParseMapping("mappings/"+f.Name(), data) }})
	}
	return out
}

// ReadyMapping returns the text of the mapping of a format that has one, for
// people who want to change it.
func ReadyMapping(name string) ([]byte, bool) {
	data, err := ready.ReadFile("mappings/" + name + ".yaml")
	return data, err == nil
}

func FindFormat(name string) (Format, bool) {
	all := Formats()
	i := slices.IndexFunc(all, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return all[i], true
}

func FormatNames() []string {
	var out []string
	for _, f := range Formats() {
		out = append(out, f.Name)
	}
	return out
}
