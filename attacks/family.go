package attacks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/datasets"
)

// maxFamilyFile is the largest family file, in bytes.
const maxFamilyFile = 1 << 20

// Family is one template family: a grammar, values, and the skeleton of a case.
type Family struct {
	Name  string
	Split datasets.Split
	About string
	Label datasets.Label
	Class string // of an attack
	Kind  string // of a benign case
	Cases int
	Twins int // how many of the cases have a benign twin

	file    string
	lines   []string
	node    *yaml.Node // where errors of the whole family are shown
	version version
	twin    *version
}

// version is what makes a case: the family's own, or with the twin's changes.
type version struct {
	kind string // of a benign case
	// channel is C4 for a benign case whose legitimate memory is a skill, which
	// only agents that write skills can have; else empty.
	channel string
	values  []slot
	picks   map[string]table
	rules   map[string]rule
	fields  map[string]field // by path, such as domain or write[0].segments[1].text
	order   []string         // the paths, in the order of the file
}

type slot struct {
	name string
	spec spec
	at   *yaml.Node
}

// table is a list of records of which one is taken for each case. The field of
// a plain text has no name.
type table struct {
	rows []map[string]field
	at   *yaml.Node
}

type rule struct {
	alternatives []field
	at           *yaml.Node
}

// field is one text of the file, as a template.
type field struct {
	template datasets.Template
	plain    string // as it stands in the file
	at       *yaml.Node
	line     int // of the text, from 1; a block text begins below its node
}

// mistake is an error in a family file.
func mistake(file string, line, column int, what, remedy string) *datasets.Error {
	return &datasets.Error{File: file, Line: line, Column: column, What: what, Remedy: remedy}
}

// ownSeed compiles families that belong to no built-in set.
const ownSeed = 1

var isFamily = regexp.MustCompile(`(?m)^family:`)

// Open opens a set by name or file, as [datasets.Open] does, and besides that a
// family file, or a folder of them, whose cases it compiles. Such a set is held to
// the rules of the built-in ones.
func Open(ctx context.Context, nameOrFile string) (*datasets.Set, error) {
	st, err := os.Stat(nameOrFile)
	if err != nil || slices.Contains(datasets.Names(), nameOrFile) {
		return datasets.Open(ctx, nameOrFile)
	}
	var families []*Family
	states, err := LoadStates(nameOrFile)
	switch ext := filepath.Ext(nameOrFile); {
	case err != nil || states != nil:
	case st.IsDir():
		families, err = Load(nameOrFile)
	case st.Mode().IsRegular() && st.Size() <= maxFamilyFile && (ext == ".yaml" || ext == ".yml"):
		var data []byte
		if data, err = os.ReadFile(nameOrFile); err == nil && isFamily.Match(data) {
			families = make([]*Family, 1)
			families[0], err = Parse(nameOrFile, splitOf(nameOrFile), data)
		}
	}
	if err != nil {
		return nil, err
	}
	if families == nil && states == nil {
		return datasets.Open(ctx, nameOrFile)
	}
	cases, err := Compile(families, ownSeed)
	if states != nil {
		cases, err = CompileStates(states, ownSeed)
	}
	if err != nil {
		return nil, err
	}
	name := filepath.Base(nameOrFile)
	set, err := datasets.NewSet(strings.TrimSuffix(name, filepath.Ext(name)), cases)
	if err == nil {
		set.Builtin = true
	}
	return set, err
}

var isState = regexp.MustCompile(`(?m)^(solve|asks):`)

// LoadStates reads a family file of state cases, or every one of a folder and of its
// folders tune and report; nil where the first is none.
func LoadStates(path string) ([]*StateFamily, error) {
	files := []string{path}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		files = nil
		for _, under := range []string{"*.yaml", "tune/*.yaml", "report/*.yaml"} {
			more, err := filepath.Glob(filepath.Join(path, under))
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
	}
	var out []*StateFamily
	var errs []error
	for _, file := range files {
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() || st.Size() > maxFamilyFile ||
			filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".yml" {
			return nil, nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !isState.Match(data) {
			return nil, nil
		}
		f, err := ParseStates(file, splitOf(file), data)
		errs = append(errs, err)
		out = append(out, f)
	}
	return out, errors.Join(errs...)
}

// Load reads every family file of a folder and of its folders tune and report,
// each in the order of their names.
func Load(folder string) ([]*Family, error) {
	var families []*Family
	names := make(map[string]string)
	for _, under := range []string{"", string(datasets.Tune), string(datasets.Report)} {
		files, err := filepath.Glob(filepath.Join(folder, under, "*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("listing the families in %s: %w", folder, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading the family: %w", err)
			}
			f, err := Parse(file, splitOf(file), data)
			if err != nil {
				return nil, err
			}
			if other, ok := names[f.Name]; ok {
				return nil, mistake(file, 1, 1, fmt.Sprintf("a family %q is in %s already", f.Name, other),
					"rename one of the two files")
			}
			names[f.Name] = file
			families = append(families, f)
		}
	}
	if len(families) == 0 {
		return nil, &datasets.Error{File: folder, What: "no family file is there, nor in its folders tune and report",
			Remedy: "name a set, a file of cases, a family file or a folder of families"}
	}
	return families, nil
}

// splitOf is the split of a family file: the folder tune or report that it is in.
// A file elsewhere has none.
func splitOf(file string) datasets.Split {
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	split := datasets.Split(filepath.Base(filepath.Dir(file)))
	if split != datasets.Tune && split != datasets.Report {
		return ""
	}
	return split
}

// Parse reads a family from the text of a file.
func Parse(file string, split datasets.Split, data []byte) (f *Family, err error) {
	if len(data) > maxFamilyFile {
		return nil, mistake(file, 1, 1, "the file is larger than a megabyte", "split the family")
	}
	p := &familyParser{f: &Family{file: file, Split: split, lines: strings.Split(string(data), "\n")}}
	p.f.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		return nil, mistake(file, yamlLine(err), 1, fmt.Sprintf("broken YAML: %.200q", err),
			"mend it; a text that begins with { [ * & ! | > % @ or ` needs quotes")
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*datasets.Error)
			if !ok {
				panic(r)
			}
			f, err = nil, e
		}
	}()
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, mistake(file, 1, 1, "the file is empty", "see AUTHORING.md for the format")
	}
	p.family(doc.Content[0])
	return p.f, nil
}

// yamlLine takes the line out of the library's error.
func yamlLine(err error) int {
	line := 1
	if _, rest, ok := strings.Cut(err.Error(), "line "); ok {
		_, _ = fmt.Sscanf(rest, "%d", &line)
	}
	return line
}

type familyParser struct{ f *Family }

func (p *familyParser) fail(at *yaml.Node, what, remedy string) {
	panic(p.f.errorAt(at, what, remedy))
}

func (f *Family) errorAt(at *yaml.Node, what, remedy string) *datasets.Error {
	if at == nil {
		at = f.node
	}
	return mistake(f.file, max(1, at.Line), max(1, at.Column), what, remedy)
}

// errorIn returns an error at a byte of a field's text.
func (f *Family) errorIn(t field, offset int, what, remedy string) *datasets.Error {
	e := mistake(f.file, max(1, t.line), 1, what, remedy)
	if t.at == nil {
		return e
	}
	before := t.plain[:min(offset, len(t.plain))]
	column := offset - (strings.LastIndexByte(before, '\n') + 1)
	switch t.at.Style &^ yaml.TaggedStyle {
	case yaml.LiteralStyle:
		e.Line += strings.Count(before, "\n")
		if e.Line <= len(f.lines) {
			l := f.lines[e.Line-1]
			e.Column = len(l) - len(strings.TrimLeft(l, " ")) + column + 1
		}
	case yaml.FoldedStyle:
	default:
		e.Column = t.at.Column + column
		if t.at.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			e.Column++
		}
	}
	return e
}

// entries returns the entries of a mapping, which may have the known names only.
// nil lets any name pass that {name} could have.
func (p *familyParser) entries(n *yaml.Node, what string, known []string) (keys []*yaml.Node, values []*yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, what+" is not a list of name: value", "see AUTHORING.md for the format")
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			p.fail(k, fmt.Sprintf("%q stands twice in %s", k.Value, what), "keep one of them")
		}
		seen[k.Value] = true
		if known != nil && !slices.Contains(known, k.Value) {
			p.fail(k, fmt.Sprintf("unknown name %q in %s", k.Value, what), "one of "+strings.Join(known, ", "))
		}
		if known == nil && (!datasets.IsName(k.Value) || strings.Contains(k.Value, ".")) {
			p.fail(k, fmt.Sprintf("%q cannot be a name", k.Value), "use small letters, digits and _")
		}
		keys, values = append(keys, k), append(values, v)
	}
	return keys, values
}

// scalar returns a text that is no template.
func (p *familyParser) scalar(n *yaml.Node, what string) string {
	switch {
	case n.Kind == yaml.MappingNode:
		p.fail(n, what+" is read by YAML as a mapping", `put a text that begins with { in quotes: "{name} …"`)
	case n.Kind == yaml.SequenceNode:
		p.fail(n, what+" is read by YAML as a list", `put a text that begins with [ in quotes: "[a|b] …"`)
	case n.Kind != yaml.ScalarNode:
		p.fail(n, what+" is an alias", "write it out")
	case strings.TrimSpace(n.Value) == "" || n.Tag == "!!null":
		p.fail(n, what+" is empty", "give it a text or leave it out")
	}
	return n.Value
}

// oneOf returns a text that is one of a list.
func (p *familyParser) oneOf(n *yaml.Node, what string, known ...string) string {
	s := p.scalar(n, what)
	if !slices.Contains(known, s) {
		p.fail(n, fmt.Sprintf("unknown %s %q", what, s), "one of "+strings.Join(known, ", "))
	}
	return s
}

func (p *familyParser) template(n *yaml.Node, what string) field {
	s := strings.TrimRight(p.scalar(n, what), "\n")
	t := field{plain: s, at: n, line: n.Line}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		t.line++
	}
	return p.parse(t)
}

func (p *familyParser) parse(t field) field {
	tmpl, err := datasets.Parse(t.plain)
	if err != nil {
		e := err.(*datasets.PatternError)
		panic(p.f.errorIn(t, e.Offset, e.What, e.Remedy))
	}
	t.template = tmpl
	return t
}

func (p *familyParser) count(n *yaml.Node, what string, most int) int {
	var k int
	if err := n.Decode(&k); err != nil || k < 0 || k > most {
		p.fail(n, fmt.Sprintf("%s is %.20q", what, n.Value), fmt.Sprintf("a whole number from 0 to %d", most))
	}
	return k
}

func (p *familyParser) family(n *yaml.Node) {
	f := p.f
	f.node = n
	f.version = version{fields: make(map[string]field), picks: make(map[string]table), rules: make(map[string]rule)}
	seen := make(map[string]*yaml.Node)
	keys, values := p.entries(n, "the family", []string{"family", "about", "label", "class", "kind", "channel", "domain",
		"goal", "cases", "values", "pick", "rules", "case", "twin"})
	for i, k := range keys {
		v := values[i]
		seen[k.Value] = v
		switch k.Value {
		case "family":
			if p.scalar(v, "family") != f.Name {
				p.fail(v, fmt.Sprintf("the family is called %q and its file %q", v.Value, f.Name), "give both the same name")
			}
		case "about":
			f.About = p.scalar(v, "about")
		case "label":
			f.Label = datasets.Label(p.oneOf(v, "label", string(datasets.Attack), string(datasets.Benign)))
		case "class":
			f.Class = p.oneOf(v, "class", append(datasets.Classes(), datasets.OutOfBand)...)
		case "kind":
			f.Kind = p.oneOf(v, "kind", datasets.Kinds()...)
			f.version.kind = f.Kind
		case "channel":
			f.version.channel = p.oneOf(v, "channel of a benign case", "C4")
		case "domain", "goal":
			p.set(&f.version, k.Value, v)
		case "cases":
			f.Cases = p.count(v, "cases", 500)
		case "values", "pick", "rules", "case":
			p.section(&f.version, k.Value, v)
		}
	}
	for _, name := range []string{"family", "label", "domain", "cases", "case"} {
		if seen[name] == nil {
			p.fail(n, "the family has no "+name, "add it")
		}
	}
	switch {
	case f.Cases == 0:
		p.fail(n, "the family has no cases", "write cases: 20")
	case f.Label == datasets.Attack && (f.Class == "" || f.Kind != "" || seen["channel"] != nil || seen["goal"] == nil):
		p.fail(n, "an attack has a class and a goal, and no kind or channel", "write class: and goal:")
	case f.Label == datasets.Benign && (f.Kind == "" || f.Class != "" || seen["goal"] != nil || seen["twin"] != nil):
		p.fail(n, "a benign family has a kind, and no class, goal or twin",
			"write kind:; a twin is part of the attack's file")
	}
	p.check(&f.version, nil)
	if twin := seen["twin"]; twin != nil {
		p.twin(twin)
	}
}

// twin reads the changes that make the benign twin.
func (p *familyParser) twin(n *yaml.Node) {
	f := p.f
	f.Twins = f.Cases
	base := &f.version
	v := version{values: slices.Clone(base.values), picks: maps.Clone(base.picks), rules: maps.Clone(base.rules),
		fields: maps.Clone(base.fields), order: slices.Clone(base.order)}
	p.drop(&v, "goal")
	keys, values := p.entries(n, "twin", []string{"kind", "channel", "cases", "domain", "values", "pick", "rules", "case"})
	changed := false
	for i, k := range keys {
		switch k.Value {
		case "kind":
			v.kind = p.oneOf(values[i], "kind", datasets.Kinds()...)
			if v.kind == datasets.KindNothing || v.kind == datasets.KindTriggers {
				// Nothing is stored, so nothing is asked of memory later, unless
				// the twin says so below.
				for _, path := range []string{"memory", "value"} {
					p.drop(&v, path)
				}
				p.dropAll(&v, "forms", "retrieval")
			}
		case "channel":
			v.channel = p.oneOf(values[i], "channel of a benign case", "C4")
		case "cases":
			f.Twins = p.count(values[i], "cases", f.Cases)
		}
	}
	for i, k := range keys {
		switch k.Value {
		case "domain":
			p.set(&v, k.Value, values[i])
		case "values", "pick", "rules", "case":
			changed = true
			p.section(&v, k.Value, values[i])
		}
	}
	if v.kind == "" || !changed {
		p.fail(n, "the twin has no kind or changes nothing", "say its kind, and which rules, values or fields make it benign")
	}
	p.check(&v, base)
	f.twin = &v
}

// section reads values, pick, rules or case into a version; what stands there
// already is replaced.
func (p *familyParser) section(v *version, name string, n *yaml.Node) {
	if name == "case" {
		p.skeleton(v, n)
		return
	}
	keys, values := p.entries(n, name, nil)
	for i, k := range keys {
		switch at := values[i]; name {
		case "values":
			sp, err := parseSpec(p.scalar(at, "the value "+k.Value))
			if err != nil {
				what, remedy, _ := strings.Cut(err.Error(), "; ")
				p.fail(at, what, remedy)
			}
			s := slot{k.Value, sp, k}
			if old := slices.IndexFunc(v.values, func(o slot) bool { return o.name == s.name }); old >= 0 {
				v.values[old] = s
			} else {
				v.values = append(v.values, s)
			}
		case "pick":
			v.picks[k.Value] = p.table(k, at)
		case "rules":
			v.rules[k.Value] = p.rule(k, at)
		}
	}
}

func (p *familyParser) table(k, n *yaml.Node) table {
	t := table{at: k}
	if n.Kind != yaml.SequenceNode || len(n.Content) < 2 {
		p.fail(n, k.Value+" is not a list of two texts or records or more", "write - text, or - {name: text, …}")
	}
	for _, row := range n.Content {
		if row.Kind == yaml.ScalarNode && n.Content[0].Kind == yaml.ScalarNode {
			t.rows = append(t.rows, map[string]field{"": p.template(row, k.Value)})
			continue
		}
		keys, values := p.entries(row, "a record of "+k.Value, nil)
		record := make(map[string]field)
		for i, c := range keys {
			record[c.Value] = p.template(values[i], c.Value)
		}
		for name := range record {
			if len(t.rows) > 0 && (t.rows[0][name].at == nil || len(record) != len(t.rows[0])) {
				p.fail(row, "the records of "+k.Value+" have different names", "give each record the same names")
			}
		}
		t.rows = append(t.rows, record)
	}
	return t
}

// rule reads the alternatives of a rule: the items of a list, or the lines of a
// text.
func (p *familyParser) rule(k, n *yaml.Node) rule {
	r := rule{at: k}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			r.alternatives = append(r.alternatives, p.template(item, "an alternative of "+k.Value))
		}
	} else {
		text := p.scalar(n, "the rule "+k.Value)
		if n.Style&yaml.FoldedStyle != 0 {
			p.fail(n, "a folded text joins its lines", "use | : each line is one alternative; or a list")
		}
		line := n.Line
		if n.Style&yaml.LiteralStyle != 0 {
			line++
		}
		for i, s := range strings.Split(text, "\n") {
			if strings.TrimSpace(s) != "" {
				r.alternatives = append(r.alternatives, p.parse(field{plain: s, at: n, line: line + i}))
			}
		}
	}
	if len(r.alternatives) == 0 {
		p.fail(n, "the rule "+k.Value+" has no alternative", "write one a line, or a list")
	}
	return r
}

// parts are the fields of a case that hold others: how errors call one, and what it
// may hold.
var parts = map[string]struct {
	one   string
	list  bool
	names []string
}{
	"write":     {"a turn", true, []string{"user", "segments", "expect"}},
	"inject":    {"a record", true, []string{"store", "key", "text", "origin", "medium", "source", "signed"}},
	"segments":  {"a segment", true, []string{"medium", "source", "title", "text", "inline", "pad"}},
	"retrieval": {"retrieval", false, []string{"query", "segments", "expect", "forbids"}},
}

// skeleton reads the fields of the case.
func (p *familyParser) skeleton(v *version, n *yaml.Node) {
	keys, values := p.entries(n, "case", []string{"write", "inject", "memory", "value", "forms", "retrieval"})
	for i, k := range keys {
		p.dropAll(v, k.Value)
		p.fill(v, k.Value, k.Value, values[i])
	}
}

// fill reads a field and all that it holds.
func (p *familyParser) fill(v *version, path, name string, n *yaml.Node) {
	part, nested := parts[name]
	isList := n.Kind == yaml.SequenceNode && (len(n.Content) > 0 || name == "segments")
	inside := func(path string, n *yaml.Node) {
		keys, values := p.entries(n, part.one, part.names)
		for i, k := range keys {
			p.fill(v, path+"."+k.Value, k.Value, values[i])
		}
	}
	switch texts := name == "forms" || name == "expect"; {
	case texts && !isList:
		p.fail(n, path+" is not a list of texts", `write ["{name}"]`)
	case part.list && !isList:
		p.fail(n, name+" is not a list", "begin each entry with - "+part.names[0]+":")
	case texts:
		for i, item := range n.Content {
			p.set(v, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case part.list:
		for i, item := range n.Content {
			inside(fmt.Sprintf("%s[%d]", path, i), item)
		}
	case nested:
		inside(path, n)
	default:
		p.set(v, path, n)
	}
}

func (p *familyParser) set(v *version, path string, n *yaml.Node) {
	if _, ok := v.fields[path]; !ok {
		v.order = append(v.order, path)
	}
	v.fields[path] = p.template(n, path)
}

func (p *familyParser) drop(v *version, path string) {
	delete(v.fields, path)
	v.order = slices.DeleteFunc(v.order, func(s string) bool { return s == path })
}

// dropAll removes every field under the given ones.
func (p *familyParser) dropAll(v *version, paths ...string) {
	for _, under := range paths {
		for _, path := range slices.Clone(v.order) {
			if strings.HasPrefix(path, under+".") || strings.HasPrefix(path, under+"[") {
				p.drop(v, path)
			}
		}
	}
}

// definition is what a name of a version stands for.
type definition struct {
	at    *yaml.Node
	value *slot
	// inside are the texts that {name} or {name.part} stands for, unless it is a value.
	inside func(part string) []field
}

// check resolves every reference of a version, finds circles, and for the
// family's own version names that nothing uses.
func (p *familyParser) check(v, base *version) {
	defs := make(map[string]definition)
	define := func(name string, d definition) {
		if defs[name].at != nil {
			p.fail(d.at, fmt.Sprintf("the name %q stands for two things", name), "rename one of them")
		}
		defs[name] = d
	}
	for i := range v.values {
		s := &v.values[i]
		of := defs[s.spec.at].value
		if s.spec.at != "" && (of == nil || !slices.Contains(s.spec.kind.At, of.spec.kind.Name)) {
			p.fail(s.at, fmt.Sprintf("%s is at %q, which is no %s above it", s.name, s.spec.at,
				strings.Join(s.spec.kind.At, ", ")), "name a value that stands before it")
		}
		define(s.name, definition{at: s.at, value: s})
	}
	for _, name := range slices.Sorted(maps.Keys(v.picks)) {
		t := v.picks[name]
		define(name, definition{at: t.at, inside: func(part string) (list []field) {
			for _, row := range t.rows {
				if row[part].at != nil {
					list = append(list, row[part])
				}
			}
			return list
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(v.rules)) {
		r := v.rules[name]
		define(name, definition{at: r.at, inside: func(part string) []field {
			if part != "" {
				return nil
			}
			return r.alternatives
		}})
	}
	used := make(map[string]bool)
	state := make(map[string]int) // 1 while a rule's references are followed, 2 afterwards
	var follow func(t field)
	follow = func(t field) {
		for _, ref := range t.template.Refs() {
			name, part, dotted := strings.Cut(ref.Name, ".")
			used[name] = true
			fail := func(remedy, format string, args ...any) {
				panic(p.f.errorIn(t, ref.Offset, fmt.Sprintf(format, args...), remedy))
			}
			d, ok := defs[name]
			if !ok {
				fail("define it, or mend the name", "nothing is called {%s}", name)
			}
			if d.value != nil {
				kind := &d.value.spec.kind
				if parts := sampleParts(kind); dotted && !slices.Contains(parts, part) {
					fail("define it, or mend the name", "a %s has no .%s, only %v", kind.Name, part, parts)
				}
				continue
			}
			inside := d.inside(part)
			if len(inside) == 0 {
				fail("define it, or mend the name", "{%s} is nothing that %s has", ref.Name, name)
			}
			switch state[ref.Name] {
			case 0:
				state[ref.Name] = 1
				for _, a := range inside {
					follow(a)
				}
				state[ref.Name] = 2
			case 1:
				fail("break the circle", "{%s} refers to itself", ref.Name)
			}
		}
	}
	for _, path := range v.order {
		follow(v.fields[path])
	}
	for _, s := range v.values {
		if s.spec.at != "" && used[s.name] {
			used[s.spec.at] = true
		}
	}
	if _, ok := v.fields["write[0].user"]; !ok {
		p.fail(p.f.node, "the case has no write[0].user", "write case: write: - user: …")
	}
	if base != nil {
		return // the twin need not use everything that its attack uses
	}
	whole := strings.Join(p.f.lines, "\n")
	for _, name := range slices.SortedFunc(maps.Keys(defs), func(a, b string) int {
		return cmp.Compare(defs[a].at.Line, defs[b].at.Line)
	}) {
		if !used[name] && !strings.Contains(whole, "{"+name) && !strings.Contains(whole, "{^"+name) {
			p.fail(defs[name].at, fmt.Sprintf("nothing uses {%s}", name), "use it or take it out") // nor does the twin
		}
	}
}

// sampleParts lists the parts that values of a kind have.
func sampleParts(k *Kind) []string {
	g := &generator{r: datasets.NewRand(1), split: datasets.Tune, used: make(registry), words: lists()}
	return slices.Sorted(maps.Keys(k.draw(g, value{}).parts))
}
