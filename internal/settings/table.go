package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Key is one setting: a field of a struct, and what people have to know of it.
type Key struct {
	// Name is that in files, with dots where the key stands in a mapping of its own.
	Name string `yaml:"-"`
	// Flag is the command-line flag, without dashes; empty where there is none.
	Flag string `yaml:"flag"`
	// Takes is what the value stands for in help texts; without one the choices, or
	// what the type says.
	Takes string `yaml:"takes"`
	// Help is one or two sentences; `…` marks code.
	Help string `yaml:"help"`
	// Choices are the values that it may have, or each of its list's; nil is open.
	Choices []string `yaml:"choices"`
	// Affects says that the setting changes what is done: where work goes on, it must
	// be the same.
	Affects bool `yaml:"affects"`
	// Reach is a word that the owner of the settings gives a meaning.
	Reach string `yaml:"reach"`
	// Required and Unique are about the entries of a list of mappings: none is without
	// the key, no two have the same value.
	Required bool `yaml:"required"`
	Unique   bool `yaml:"unique"`
	// Min and Max bound a number or a duration.
	Min string `yaml:"min"`
	Max string `yaml:"max"`
	// Records describes the entries where the value is a list of mappings.
	Records *Table `yaml:"-"`

	table    *Table
	path     []int
	typ      reflect.Type
	special  Special
	min, max float64 // in nanoseconds for a duration
}

// Special is what only code can say of a key.
type Special struct {
	// Choices are those that the table of keys leaves to code.
	Choices []string
	// Split takes a text with several values apart; without it they stand between
	// commas.
	Split func(string) []string
	// Check refuses a value, or one of a list's; it may write it in another way.
	Check func(string) (string, error)
}

// Table holds the keys of a struct in the order of their documentation.
type Table struct {
	Keys []Key
	// Texts says that lists are lists: a text is one value, whatever commas it has, and
	// what YAML takes for a number is refused.
	Texts bool
}

// New makes the table of the settings of a struct, of which v is a value. Fields that
// are settings have a tag, as in `key:"size"`; a struct in it is a mapping of its own,
// an embedded one is not. help says the rest in YAML: under each key flag, takes, help,
// choices, min, max, affects, reach; under the records of a list of mappings theirs. A struct and a table that differ
// are a mistake of the program, and panic.
func New(v any, help []byte, texts bool, special map[string]Special) *Table {
	root, err := Parse("settings", help)
	if err != nil {
		panic(err)
	}
	t, err := tableOf(reflect.TypeOf(v), root, texts, special, "")
	if err != nil {
		panic(err)
	}
	return t
}

func tableOf(typ reflect.Type, help Node, texts bool, special map[string]Special, prefix string) (*Table, error) {
	t := &Table{Texts: texts}
	fields := map[string]reflect.StructField{}
	collect(typ, "", nil, fields)
	entries, err := help.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f, ok := fields[e.Key]
		if !ok {
			return nil, e.At.Errorf("%s has no field for the key %s", typ, e.Key)
		}
		delete(fields, e.Key)
		k := Key{table: t, path: f.Index, typ: f.Type, special: special[prefix+e.Key]}
		if err := e.Value.n.Decode(&k); err != nil {
			return nil, e.Value.Errorf("%v", err)
		}
		k.Name = e.Key
		if k.special.Choices != nil {
			k.Choices = k.special.Choices
		}
		of, _ := k.element()
		if k.min, err = bound(k.Min, of); err != nil {
			return nil, e.At.Errorf("min: %v", err)
		}
		if k.max, err = bound(k.Max, of); err != nil {
			return nil, e.At.Errorf("max: %v", err)
		}
		if k.typ.Kind() == reflect.Slice && plainStruct(k.typ.Elem()) {
			var said struct{ Records yaml.Node }
			if err := e.Value.n.Decode(&said); err != nil {
				return nil, e.Value.Errorf("%v", err)
			}
			inner := Node{"settings", &said.Records}
			if k.Records, err = tableOf(k.typ.Elem(), inner, texts, special, k.Name+"."); err != nil {
				return nil, err
			}
		}
		if k.Takes == "" {
			k.Takes = k.takes()
		}
		t.Keys = append(t.Keys, k)
	}
	for name := range fields {
		return nil, help.Errorf("nothing is said of the key %s of %s", name, typ)
	}
	for i := range t.Keys {
		t.Keys[i].table = t
	}
	return t, nil
}

// collect finds the fields with a key, those of inner structs too.
func collect(typ reflect.Type, prefix string, path []int, fields map[string]reflect.StructField) {
	for f := range typ.Fields() {
		name, tagged := f.Tag.Lookup("key")
		f.Index = append(slices.Clone(path), f.Index...)
		switch {
		case f.Anonymous && !tagged:
			collect(f.Type, prefix, f.Index, fields)
		case tagged && plainStruct(f.Type):
			collect(f.Type, prefix+name+".", f.Index, fields)
		case tagged:
			fields[prefix+name] = f
		}
	}
}

// plainStruct reports a struct that does not read itself.
func plainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reads(t) && !reflect.PointerTo(t).Implements(unmarshaler)
}

// bound reads a bound of a key as it counts.
func bound(text string, t reflect.Type) (float64, error) {
	if text == "" {
		return 0, nil
	}
	_, size, err := kinds[t.Kind()].parse(text)
	return size, err
}

// takes is what a key without a word of its own stands for.
func (k *Key) takes() string {
	of, list := k.element()
	word := cmp.Or(kinds[of.Kind()].word, strings.ToUpper(of.Name()))
	switch {
	case k.Choices != nil:
		word = strings.Join(k.Choices, "|")
	case k.Records != nil:
		return "LIST"
	}
	if list {
		word += ",..."
	}
	return word
}

// element is the type of the value, or of each value of a list.
func (k *Key) element() (t reflect.Type, list bool) {
	if k.typ.Kind() == reflect.Slice && !reads(k.typ) {
		return k.typ.Elem(), true
	}
	return k.typ, false
}

func (t *Table) Find(name string) (Key, bool) {
	i := slices.IndexFunc(t.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return t.Keys[i], true
}

func (t *Table) Names() []string {
	var names []string
	for _, k := range t.Keys {
		names = append(names, k.Name)
	}
	return names
}

// Load reads a file into the struct that into points to. Keys that the file does not
// name keep their values; a file with a mistake changes nothing. file is how errors
// call it.
func (t *Table) Load(file string, data []byte, into any) error {
	root, err := Parse(file, data)
	if err != nil {
		return err
	}
	return t.Read(root, into)
}

// Read reads a mapping into the struct that into points to, as [Table.Load] does.
func (t *Table) Read(n Node, into any) error {
	to := reflect.ValueOf(into).Elem()
	next := reflect.New(to.Type()).Elem()
	next.Set(to)
	if err := t.read(n, next); err != nil {
		return err
	}
	to.Set(next)
	return nil
}

func (t *Table) read(n Node, to reflect.Value) error {
	seen := map[string]bool{}
	if err := t.readBelow(n, to, "", seen); err != nil {
		return err
	}
	for _, k := range t.Keys {
		if k.Required && !seen[k.Name] {
			return n.Errorf("%s is missing: write %s: %s", k.Name, k.Name, k.Takes)
		}
	}
	return nil
}

func (t *Table) readBelow(n Node, to reflect.Value, prefix string, seen map[string]bool) error {
	entries, err := n.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := prefix + e.Key
		seen[name] = true
		if i := slices.IndexFunc(t.Keys, func(k Key) bool { return k.Name == name }); i >= 0 {
			k := &t.Keys[i]
			if err := (Value{k, to.FieldByIndex(k.path)}).read(e.Value); err != nil {
				return err
			}
			continue
		}
		below := t.below(prefix)
		if !slices.Contains(below, e.Key) {
			p := Unknown(e.At.Place(), "key", e.Key, below)
			p.What = fmt.Sprintf("unknown key %q", name)
			return p
		}
		if err := t.readBelow(e.Value, to, name+".", seen); err != nil {
			return err
		}
	}
	return nil
}

// below are the keys below prefix, each once.
func (t *Table) below(prefix string) []string {
	var out []string
	for _, k := range t.Keys {
		if rest, ok := strings.CutPrefix(k.Name, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Set changes one setting by key=value. where is what errors call the place.
func (t *Table) Set(where, assignment string, into any) error {
	key, value, ok := strings.Cut(assignment, "=")
	if !ok {
		example, ok := t.Find(strings.TrimSpace(assignment))
		if !ok {
			example = t.Keys[0]
		}
		return &Problem{Where: where, What: fmt.Sprintf("%q is not key=value", assignment),
			Hint: "for instance " + where + " " + example.Name + "=" + cmp.Or(example.Takes, "VALUE")}
	}
	k, ok := t.Find(strings.TrimSpace(key))
	if !ok {
		return Unknown(where, "key", key, t.Names())
	}
	return Placed(where+" "+k.Name, k.Of(into).Set(value))
}

// Difference is one setting that differs between two structs.
type Difference struct{ Key, Theirs, Ours string }

// Differ names a difference.
func Differ(key, theirs, ours string) Difference { return Difference{key, theirs, ours} }

// Differences lists the settings that affect what is done and differ; theirs and ours
// are pointers.
func (t *Table) Differences(theirs, ours any) []Difference {
	var out []Difference
	for _, k := range t.Keys {
		if a, b := k.Of(theirs).String(), k.Of(ours).String(); k.Affects && a != b {
			out = append(out, Difference{k.Name, a, b})
		}
	}
	return out
}

// Encode writes the settings of the struct that from points to under their keys,
// in their order.
func (t *Table) Encode(from any) ([]byte, error) {
	b := []byte{'{'}
	for i, k := range t.Keys {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := json.Marshal(k.Of(from).JSON())
		if err != nil {
			return nil, fmt.Errorf("encoding setting %s: %w", k.Name, err)
		}
		b = append(strconv.AppendQuote(b, k.Name), ':')
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// Decode reads what Encode wrote, whatever choices and bounds have become since. Keys
// that the table does not have are an error: settings that are not understood are not
// the same settings.
func (t *Table) Decode(data []byte, into any) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("reading settings: %w", err)
	}
	for _, k := range t.Keys {
		text, ok := raw[k.Name]
		if !ok {
			continue
		}
		delete(raw, k.Name)
		k.Choices, k.Max = nil, ""
		if err := k.Of(into).setJSON(text); err != nil {
			return fmt.Errorf("reading setting %s: %w", k.Name, err)
		}
	}
	for key := range raw {
		return fmt.Errorf("reading settings: unknown key %q: the run was made by another version", key)
	}
	return nil
}

// Schema returns the JSON Schema of a file, for editors. defaults points to a struct
// whose values are named as those of keys that are left out; nil names none.
func (t *Table) Schema(title, about string, defaults any) []byte {
	root := t.schema(defaults)
	root["$schema"], root["title"], root["description"] = "https://json-schema.org/draft/2020-12/schema", title, about
	root["type"] = []string{"object", "null"} // an empty file sets nothing
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(root) // maps, lists, texts and numbers always encode
	return b.Bytes()
}

func object() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

func (t *Table) schema(defaults any) map[string]any {
	root := object()
	var required []string
	for _, k := range t.Keys {
		at := root
		parts := strings.Split(k.Name, ".")
		for _, part := range parts[:len(parts)-1] {
			props := at["properties"].(map[string]any)
			if props[part] == nil {
				props[part] = object()
			}
			at = props[part].(map[string]any)
		}
		leaf := k.schema()
		if k.Help != "" {
			leaf["description"] = k.Help
		}
		if defaults != nil {
			leaf["default"] = k.Of(defaults).JSON()
		}
		at["properties"].(map[string]any)[parts[len(parts)-1]] = leaf
		if k.Required {
			required = append(required, k.Name)
		}
	}
	if required != nil {
		root["required"] = required
	}
	return root
}

func (k *Key) schema() map[string]any {
	null := map[string]any{"type": "null"}
	if k.Records != nil {
		return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": k.Records.schema(nil)}, null}}
	}
	of, list := k.element()
	item := maps.Clone(kinds[of.Kind()].schema)
	switch s, own := reflect.New(of).Interface().(Schemer); {
	case own:
		item = s.SettingSchema()
	case k.Choices != nil:
		item = map[string]any{"enum": k.Choices}
	case item == nil:
		item = map[string]any{"type": "string"}
	case of.Kind() == reflect.String && k.table.Texts:
		item["minLength"] = 1
	}
	if k.Max != "" && of != duration {
		item["minimum"], item["maximum"] = k.min, k.max
	}
	if !list {
		return item
	}
	several, alone := map[string]any{"type": "array", "items": item}, item
	if !k.table.Texts { // so may several with commas
		several["uniqueItems"], alone = true, map[string]any{"type": "string"}
	}
	return map[string]any{"anyOf": []any{several, alone, null}}
}
