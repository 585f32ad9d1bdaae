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
		return yamlProblem(err, "")
	}
	entries, err := root.Entries()
	if err != nil {
		return yamlProblem(err, "")
	}
	next := *c
	for _, e := range entries {
		s, ok := FindSetting(e.Key)
		if !ok {
			p := unknownName("", "key", e.Key, Keys())
			return yamlProblem(e.At.Errorf("%s", p.What), p.Hint)
		}
		if err := assign(s.Of(&next), e.Value); err != nil {
			var mistake *settings.Error
			if errors.As(err, &mistake) {
				return yamlProblem(mistake, "")
			}
			var p *Problem
			if errors.As(err, &p) {
				return yamlProblem(e.Value.Errorf("%s: %s", e.Key, p.What), p.Hint)
			}
			return yamlProblem(e.Value.Errorf("%s: %v", e.Key, err), "")
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
		return &Problem{What: "has no value", Hint: "leave the key out for the default"}
	case want == "integer" && typ != "int":
		return &Problem{What: fmt.Sprintf("%q is not a whole number", text)}
	case want == "number" && typ != "int" && typ != "float":
		return &Problem{What: fmt.Sprintf("%q is not a number", text)}
	case want == "boolean" && typ != "bool":
		return &Problem{What: fmt.Sprintf("%q is not true or false", text)}
	case (want == "string" || want == "duration") && typ != "str":
		return &Problem{What: fmt.Sprintf("expected a %s, found the %s %s", want, typ, text), Hint: "put it in quotes if it is meant as text"}
	}
	return v.Set(text)
}

func yamlProblem(err error, hint string) error {
	var e *settings.Error
	if errors.As(err, &e) {
		return &Problem{Where: e.Place(), What: e.Msg, Hint: hint}
	}
	return &Problem{Err: err, Hint: hint}
}
