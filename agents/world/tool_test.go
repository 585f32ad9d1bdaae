package world

import (
	"strings"
	"testing"
)

func TestAMistakeInTheCatalogSaysWhereItStands(t *testing.T) {
	const head = "tools:\n  - {name: a, description: A, kind: "
	for text, want := range map[string]string{
		head + "reads}":                                           `tool "a": a tool that reads`,
		head + "remembers}":                                       `tool "a": a memory tool needs a handler`,
		head + "speaks}":                                          `there is no kind "speaks"`,
		head + "acts, colour: red}":                               "f.yaml:2:",
		head + "acts, phases: [flush]}":                           `phase "flush"`,
		head + "acts, roles: {to: recipient}}":                    `a parameter has one of the roles`,
		head + "acts}\n  - {name: a, description: B, kind: acts}": `stands there twice`,
	} {
		err := newCatalog().read("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.yaml:") {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
}
