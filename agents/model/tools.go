package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// Schema is the JSON Schema of a tool's parameters, in their order. A
// parameter's format stands at the end of its description, as "[format: x]", not
// in the keyword "format": Ollama's protocol has no such field, and some
// providers refuse a request whose formats they do not know.
func Schema(t Tool) json.RawMessage {
	type param struct {
		Type        string   `json:"type"`
		Description string   `json:"description,omitempty"`
		Enum        []string `json:"enum,omitempty"`
	}
	schema := struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required,omitempty"`
	}{Type: "object"}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range t.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		put(&b, p.Name)
		b.WriteByte(':')
		put(&b, param{cmp.Or(p.Type, "string"), describe(p), p.Enum})
		if p.Required {
			schema.Required = append(schema.Required, p.Name)
		}
	}
	b.WriteByte('}')
	schema.Properties = b.Bytes()
	return encode(schema)
}

// encode writes what always encodes: texts, and lists and structs of them.
func encode(v any) []byte {
	b, err := remote.Line(v)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return b
}

func put(b *bytes.Buffer, v any) { b.Write(encode(v)) }

func describe(p Param) string {
	if p.Format == "" {
		return p.Description
	}
	f := "[format: " + p.Format + "]"
	if p.Description == "" {
		return f
	}
	return p.Description + " " + f
}

var formatMark = regexp.MustCompile(`^((?s:.*?)) ?\[format: ([a-z][a-z0-9-]*)\]$`)

// SplitFormat takes a description as [Schema] writes it apart.
func SplitFormat(description string) (text, format string) {
	if m := formatMark.FindStringSubmatch(description); m != nil {
		return m[1], m[2]
	}
	return description, ""
}

// ParseTools reads a list of tools as OpenAI's and Ollama's chat protocols carry
// it: the inverse of [EncodeTools]. Parameters keep their order.
func ParseTools(list []byte) ([]Tool, error) {
	var raw []struct {
		Function struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  struct {
				Properties json.RawMessage `json:"properties"`
				Required   []string        `json:"required"`
			} `json:"parameters"`
		} `json:"function"`
	}
	if len(list) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(list, &raw); err != nil {
		return nil, fmt.Errorf("reading the tools: %w", err)
	}
	var out []Tool
	for _, r := range raw {
		f := r.Function
		t := Tool{Name: f.Name, Description: f.Description}
		err := eachMember(f.Parameters.Properties, func(name string, value json.RawMessage) error {
			var p struct {
				Type        json.RawMessage `json:"type"`
				Description string          `json:"description"`
				Format      string          `json:"format"`
				Enum        []any           `json:"enum"`
			}
			if err := json.Unmarshal(value, &p); err != nil {
				return err
			}
			param := Param{Name: name, Required: slices.Contains(f.Parameters.Required, name)}
			param.Description, param.Format = SplitFormat(p.Description)
			if param.Format == "" {
				param.Format = p.Format
			}
			_ = json.Unmarshal(p.Type, &param.Type) // a list of types is left open
			if param.Type == "string" {
				param.Type = ""
			}
			for _, v := range p.Enum {
				if s, ok := v.(string); ok {
					param.Enum = append(param.Enum, s)
				}
			}
			t.Params = append(t.Params, param)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading tool %q: %w", text.Clip(f.Name, 60), err)
		}
		out = append(out, t)
	}
	return out, nil
}

// eachMember calls f for each member of a JSON object, in order. Nothing and
// null have none.
func eachMember(object json.RawMessage, f func(name string, value json.RawMessage) error) error {
	object = bytes.TrimSpace(object)
	if len(object) == 0 || string(object) == "null" {
		return nil
	}
	if object[0] != '{' {
		return errors.New("it is not an object")
	}
	if err := json.Unmarshal(object, new(json.RawMessage)); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(object)) // it is whole, and alone: nothing below fails
	_, _ = d.Token()
	for d.More() {
		t, _ := d.Token()
		name, _ := t.(string)
		var v json.RawMessage
		_ = d.Decode(&v)
		if err := f(name, v); err != nil {
			return fmt.Errorf("%q: %w", text.Clip(name, 60), err)
		}
	}
	return nil
}

// EncodeTools returns the tools as both protocols want them: a JSON array, nil for none.
func EncodeTools(tools []Tool) []byte {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	if len(tools) == 0 {
		return nil
	}
	var list []tool
	for _, t := range tools {
		list = append(list, tool{"function", function{t.Name, t.Description, Schema(t)}})
	}
	return encode(list)
}

// With puts a member first into an encoded chat request; a value of nil is none.
func With(request []byte, name string, value []byte) []byte {
	if value == nil {
		return request
	}
	return slices.Concat([]byte(`{"`+name+`":`), value, []byte(","), request[1:])
}

// AppendArgs appends the arguments of a call as a JSON object.
func AppendArgs(dst []byte, tools []Tool, c Call) []byte {
	b := bytes.NewBuffer(dst)
	b.WriteByte('{')
	for i, a := range c.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		put(b, a.Name)
		b.WriteByte(':')
		if raw, ok := Value(tools, c.Name, a).(json.RawMessage); ok {
			b.Write(raw)
		} else {
			put(b, a.Value)
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Value is an argument as it goes into a request: a string, or where the
// parameter's type is another one, the JSON that the argument holds, if it is
// JSON.
func Value(tools []Tool, tool string, a Arg) any {
	typed := func(p Param) bool { return p.Name == a.Name && p.Type != "" && p.Type != "string" }
	if slices.ContainsFunc(named(tools, tool).Params, typed) && json.Valid([]byte(a.Value)) {
		return json.RawMessage(a.Value)
	}
	return a.Value
}

// named is the tool of that name, or one without parameters.
func named(tools []Tool, name string) Tool {
	for _, t := range tools {
		if t.Name == name {
			return t
		}
	}
	return Tool{}
}

// ParseArgs reads the arguments of a call of a tool: a JSON object, or a JSON
// string that holds one, as some servers send it. Values that are not strings
// become their JSON text; null is the same as leaving the argument out, as models
// do with optional parameters. The arguments come in the order of the tool's
// parameters, those that it does not know last.
func ParseArgs(tools []Tool, name string, raw []byte) ([]Arg, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("the arguments are not JSON: %w", err)
		}
		raw = []byte(strings.TrimSpace(s))
	}
	if len(raw) == 0 {
		return nil, nil
	}
	var args []Arg
	err := eachMember(raw, func(name string, v json.RawMessage) error {
		args = slices.DeleteFunc(args, func(a Arg) bool { return a.Name == name }) // the last of two wins
		switch {
		case string(v) == "null":
			return nil
		case v[0] == '"':
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return err
			}
			args = append(args, Arg{Name: name, Value: s})
		default:
			var c bytes.Buffer
			if err := json.Compact(&c, v); err != nil {
				return err
			}
			args = append(args, Arg{Name: name, Value: c.String()})
		}
		if len(args) > maxArgs {
			return errors.New("too many arguments")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	rank := func(a Arg) uint { // what is not found, -1, comes last
		return uint(slices.IndexFunc(named(tools, name).Params, func(p Param) bool { return p.Name == a.Name }))
	}
	slices.SortStableFunc(args, func(a, b Arg) int { return cmp.Compare(rank(a), rank(b)) })
	return args, nil
}

// maxArgs bounds the arguments of one call: reading them is quadratic in their
// number.
const maxArgs = 256
