package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// Schema is the JSON Schema of a tool's parameters, in their order. A
// parameter's format stands at the end of its description, as "[format: x]", not
// in the keyword "format": Ollama's protocol has no such field, and some
// providers refuse a request whose formats they do not know.
func Schema(t Tool) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, p := range t.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		put(&b, p.Name)
		b.WriteString(`:{"type":`)
		kind := p.Type
		if kind == "" {
			kind = "string"
		}
		put(&b, kind)
		if d := describe(p); d != "" {
			b.WriteString(`,"description":`)
			put(&b, d)
		}
		if len(p.Enum) > 0 {
			b.WriteString(`,"enum":`)
			put(&b, p.Enum)
		}
		b.WriteByte('}')
		if p.Required {
			required = append(required, p.Name)
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		b.WriteString(`,"required":`)
		put(&b, required)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func put(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err)) // strings and lists of them always encode
	}
	b.Truncate(b.Len() - 1) // the line feed that Encode adds
}

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
// it: the inverse of [ToolList]. Parameters keep their order.
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
	d := json.NewDecoder(bytes.NewReader(object))
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("it is not an object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := f(name, v); err != nil {
			return fmt.Errorf("%q: %w", text.Clip(name, 60), err)
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// ToolList encodes tools as both protocols want them, once for each list: the
// lists of a loop never change. It is safe for concurrent use; the zero value is
// ready.
type ToolList struct {
	mu    sync.RWMutex
	known map[listKey]encoded
}

type listKey struct {
	first *Tool
	n     int
}

type encoded struct {
	tools []Tool
	json  []byte
}

// maxLists bounds the lists that are kept.
const maxLists = 64

// JSON returns the tools as a JSON array, nil for none. It is not to be changed.
func (l *ToolList) JSON(tools []Tool) []byte {
	if len(tools) == 0 {
		return nil
	}
	k := listKey{&tools[0], len(tools)}
	l.mu.RLock()
	e, ok := l.known[k]
	l.mu.RUnlock()
	if ok && slices.EqualFunc(e.tools, tools, sameTool) {
		return e.json
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"function","function":{"name":`)
		put(&b, t.Name)
		b.WriteString(`,"description":`)
		put(&b, t.Description)
		b.WriteString(`,"parameters":`)
		b.Write(Schema(t))
		b.WriteString(`}}`)
	}
	b.WriteByte(']')
	e = encoded{json: b.Bytes()}
	for _, t := range tools {
		t.Params = slices.Clone(t.Params)
		e.tools = append(e.tools, t)
	}
	l.mu.Lock()
	if l.known == nil || len(l.known) >= maxLists {
		l.known = map[listKey]encoded{}
	}
	l.known[k] = e
	l.mu.Unlock()
	return e.json
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description &&
		slices.EqualFunc(a.Params, b.Params, func(a, b Param) bool {
			return a.Name == b.Name && a.Description == b.Description && a.Type == b.Type && a.Format == b.Format &&
				a.Required == b.Required && slices.Equal(a.Enum, b.Enum)
		})
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
	if t := typeOf(tools, tool, a.Name); t != "" && t != "string" && json.Valid([]byte(a.Value)) {
		return json.RawMessage(a.Value)
	}
	return a.Value
}

func typeOf(tools []Tool, tool, param string) string {
	for i := range tools {
		if tools[i].Name != tool {
			continue
		}
		for _, p := range tools[i].Params {
			if p.Name == param {
				return p.Type
			}
		}
	}
	return ""
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
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return args, nil
	}
	rank := func(a Arg) int {
		j := slices.IndexFunc(tools[i].Params, func(p Param) bool { return p.Name == a.Name })
		if j < 0 {
			return len(tools[i].Params)
		}
		return j
	}
	slices.SortStableFunc(args, func(a, b Arg) int { return rank(a) - rank(b) })
	return args, nil
}

// maxArgs bounds the arguments of one call: reading them is quadratic in their
// number.
const maxArgs = 256
