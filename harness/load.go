package harness

import (
	"errors"
	"fmt"

	"github.com/memtox/memtox/internal/settings"
)

// Load reads an experiment file into c. Keys that the file does not name keep
// their values. file is how errors call it.
func (c *Config) Load(file string, data []byte) error {
	root, err := settings.Parse(file, data)
	if err != nil {
		return err
	}
	entries, err := root.Entries()
	if err != nil {
		return err
	}
	next := *c
	for _, e := range entries {
		s, ok := FindSetting(e.Key)
		if !ok {
			return settings.Unknown(e.At.Place(), "key", e.Key, Keys())
		}
		if err := assign(s.Of(&next), e.Value); err != nil {
			var p *settings.Problem
			if errors.As(err, &p) && p.Where == "" {
				return &settings.Problem{Where: e.Value.Place(), What: e.Key + ": " + p.What, Hint: p.Hint}
			}
			return err
		}
	}
	*c = next
	return nil
}

// assign hands a YAML value to a setting of the right type.
func assign(v Value, n settings.Node) error {
	if n.IsSequence() {
		items, err := n.Items()
		if err != nil {
			return err
		}
		list := make([]string, len(items))
		for i, item := range items {
			text, typ, err := item.Scalar()
			if err != nil {
				return err
			}
			if typ == "null" {
				return item.Errorf("an empty item stands in the list")
			}
			list[i] = text
		}
		return v.SetList(list)
	}
	text, typ, err := n.Scalar()
	if err != nil {
		return err
	}
	switch want := v.Type(); {
	case typ == "null" && want == "list":
		return v.SetList(nil)
	case typ == "null":
		return &settings.Problem{What: "has no value", Hint: "leave the key out for the default"}
	case want == "integer" && typ != "int":
		return &settings.Problem{What: fmt.Sprintf("%q is not a whole number", text)}
	case want == "number" && typ != "int" && typ != "float":
		return &settings.Problem{What: fmt.Sprintf("%q is not a number", text)}
	case want == "boolean" && typ != "bool":
		return &settings.Problem{What: fmt.Sprintf("%q is not true or false", text)}
	case (want == "string" || want == "duration") && typ != "str":
		return &settings.Problem{What: fmt.Sprintf("expected a %s, found the %s %s", want, typ, text), Hint: "put it in quotes if it is meant as text"}
	}
	return v.Set(text)
}
