package settings

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// Decode reads a file into a struct: strict as [Parse] is, and every key must be
// one of the struct's. It is for files that are part of the program.
func Decode(file string, data []byte, into any) error {
	if _, err := Parse(file, data); err != nil {
		return err
	}
	if err := yaml.Load(data, into, yaml.WithKnownFields()); err != nil {
		p := syntax(file, err).(*Problem)
		p.What = strings.TrimPrefix(p.What, "not valid YAML: ")
		return p
	}
	return nil
}
