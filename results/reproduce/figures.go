package reproduce

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/internal/settings"
)

// Kinds of tables.
const (
	KindLLM       = "llm"
	KindDetectors = "detectors"
	KindProgram   = "program"
	KindPolicy    = "policy"
)

// Table is a published table.
type Table struct {
	Name    string   `yaml:"name" json:"name"`
	Title   string   `yaml:"title" json:"title"`
	Kind    string   `yaml:"kind" json:"kind"`
	Source  string   `yaml:"source" json:"source"`
	Dataset string   `yaml:"dataset" json:"dataset,omitempty"` // the set that the figures are of
	Model   string   `yaml:"model" json:"model,omitempty"`     // the model that they are of
	Need    []string `yaml:"need" json:"need"`                 // what a measurement takes, and how to get it
	Notes   []string `yaml:"notes" json:"notes"`               // known inconsistencies
	Figures []Figure `yaml:"figures" json:"figures"`
}

// Figure is one published number, or fact.
type Figure struct {
	ID      string   `yaml:"id" json:"id"`
	Agent   string   `yaml:"agent" json:"agent,omitempty"`
	Defense string   `yaml:"defense" json:"defense,omitempty"` // empty: without a defense
	Model   string   `yaml:"model" json:"model,omitempty"`
	Classes []string `yaml:"classes" json:"classes,omitempty"` // empty: all
	Metric  string   `yaml:"metric" json:"metric,omitempty"`

	Percent *Percent `yaml:"percent" json:"percent,omitempty"`
	K       *int     `yaml:"k" json:"k,omitempty"` // counts, where they could be derived
	N       *int     `yaml:"n" json:"n,omitempty"`
	Text    string   `yaml:"text" json:"text,omitempty"` // what is no number

	Note         string `yaml:"note" json:"note,omitempty"`
	Incomparable string `yaml:"incomparable" json:"incomparable,omitempty"` // why nothing can be compared with it
}

// Percent is a percentage as it is printed: 61.60 says more than 61.6.
type Percent struct {
	Text  string
	Value float64
}

// UnmarshalYAML keeps the text of the number.
func (p *Percent) UnmarshalYAML(n *yaml.Node) error {
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || n.Kind != yaml.ScalarNode || !(v >= 0 && v <= 100) {
		return fmt.Errorf("line %d: %q is no percentage", n.Line, n.Value)
	}
	p.Text, p.Value = n.Value, v
	return nil
}

// MarshalJSON writes the number as it is printed.
func (p Percent) MarshalJSON() ([]byte, error) { return []byte(p.Text), nil }

// share is the figure, and rounding half a unit of its last digit, as shares.
func (p *Percent) share() (v, rounding float64) {
	digits := 0
	if _, after, ok := strings.Cut(p.Text, "."); ok {
		digits = len(after)
	}
	return p.Value / 100, 0.005 / math.Pow10(digits)
}

//go:embed figures.yaml
var figures []byte

// Tables returns every published table.
func Tables() []Table { return slices.Clone(tables()) }

var tables = sync.OnceValue(func() []Table {
	var file struct {
		Tables []Table `yaml:"tables"`
	}
	d := yaml.NewDecoder(bytes.NewReader(figures))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		panic(fmt.Sprintf("figures.yaml: %v", err)) // a test reads the embedded file
	}
	return file.Tables
})

// Names returns the names of the tables.
func Names() []string {
	var out []string
	for _, t := range tables() {
		out = append(out, t.Name)
	}
	return out
}

// Find finds a table by its name.
func Find(name string) (Table, bool) {
	i := slices.IndexFunc(tables(), func(t Table) bool { return t.Name == name })
	if i < 0 {
		return Table{}, false
	}
	return tables()[i], true
}

func usage(what, hint string) error { return &settings.Problem{What: what, Hint: hint} }
