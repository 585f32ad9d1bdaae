package harness

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON Schema of an experiment file, for editors.
func Schema() []byte {
	props := map[string]any{}
	defaults := DefaultConfig()
	for _, s := range Settings() {
		v := s.at(&defaults)
		item := map[string]any{"type": "string"}
		switch v.Type() {
		case "integer":
			item = map[string]any{"type": "integer"}
			if _, seed := v.(*seedValue); seed {
				item["minimum"] = 0
			} else {
				item["minimum"], item["maximum"] = s.Min, s.Max
			}
		case "number":
			item = map[string]any{"type": "number", "minimum": s.Min, "maximum": s.Max}
		case "boolean":
			item = map[string]any{"type": "boolean"}
		case "duration":
			item["pattern"] = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
		}
		if s.Choices != nil {
			item["enum"] = s.Choices
		}
		prop := item
		if v.Type() == "list" {
			// One name may stand without brackets; so may several with commas.
			prop = map[string]any{"anyOf": []any{
				map[string]any{"type": "array", "items": item, "uniqueItems": true},
				map[string]any{"type": "string"},
				map[string]any{"type": "null"},
			}}
		}
		prop["description"] = s.Doc
		prop["default"] = v.JSON()
		props[s.Key] = prop
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// The values above are strings, numbers, lists and maps: they always encode.
	_ = enc.Encode(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "memtox experiment",
		"description":          "Settings of `memtox run -f FILE`.",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           props,
	})
	return b.Bytes()
}
