package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Once refuses a JSON object in which one of the fields stands twice: some readers
// take the first, ours the last, and what is measured must not hang on that. Names
// are compared as [json.Unmarshal] does it, without regard to case. The objects, and
// lists of objects, that stand under the names of into are held to the same; fields
// that are not named are nobody's affair. What is no object is no error.
func Once(object []byte, fields, into []string) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return err
	}
	among := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
	}
	var seen []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if among(fields, name) {
			if i := slices.IndexFunc(seen, func(s string) bool { return strings.EqualFold(s, name) }); i >= 0 {
				return fmt.Errorf("the fields %s and %s are one field twice", Quote(seen[i]), Quote(name))
			}
			seen = append(seen, name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if !among(into, name) {
			continue
		}
		parts := []json.RawMessage{value}
		if len(value) > 0 && value[0] == '[' {
			parts = nil
			if err := json.Unmarshal(value, &parts); err != nil {
				return err
			}
		}
		for _, p := range parts {
			if len(p) > 0 && p[0] == '{' {
				if err := Once(p, fields, into); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Quote is what another program said, short and inert, for an error.
func Quote(s string) string {
	b, _ := json.Marshal(Clip(strings.ToValidUTF8(s, "\uFFFD"), 200))
	return string(b)
}
