package guard_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/memtox/memtox/defenses/guard"
)

var update = flag.Bool("update", false, "write policy.schema.json and the tables of docs/guard.md")

func TestSchemaIsCommitted(t *testing.T) {
	want := guard.Schema()
	if *update {
		if err := os.WriteFile("policy.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("policy.schema.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("policy.schema.json is not that of the settings (%v): go test ./defenses/guard -run 'Schema|Reference' "+
			"-update", err)
	}
}

// The parser and the schema accept and refuse the same files, but for mistakes
// that a schema cannot tell.
func TestSchemaAgreesWithTheParser(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(guard.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(src string) bool {
		var v any
		if err := yaml.Load([]byte(src), &v); err != nil {
			return false
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v) == nil
	}
	sources := []string{amgQuickstart, "{}\n", "extends: strict\nmode: strip\n", "protected_keys: one.key\n", "rules:\n",
		"decoy_endpoints: []\n",
		"rate: {writes: 10, window: 1m30s}\n", "rate: {window: 0}\n", "cooldown: {window: 5m, similarity: 0.9}\n",
		"scopes: {USER: TOOL_ACTION_ALLOWED}\n",
		"rules:\n  - {name: a, on: [contradiction, exfiltration], action: quarantine, min_severity: critical, keys: " +
			"['a.*', b]}\n",
		"rate: {writes: 1.5}\n", "rate: {writes: -1}\n", "rate: {writes: ten}\n", "rate: {window: soon}\n",
		"rate: {window: 7}\n", "rate: [1]\n",
		"cooldown: {similarity: 0.1}\n", "mode: [block]\n", "rules: block\n", "rules: [{name: 1, action: block}]\n",
		"rules: [{name: a, action: block, on: []}]\n",
		"size: {max: 1}\n", "decoy_endpoints: [1]\n", "decoy_endpoints: ['']\n", "high_risk: {intents: [theft]}\n",
		"authority: {staged: shown}\n"}
	for _, name := range guard.Presets() {
		b, err := os.ReadFile("presets/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, string(b))
	}
	for src := range mistakes {
		sources = append(sources, src)
	}
	good, bad := 0, 0
	for _, src := range sources {
		_, err := guard.ParsePolicy("p.yaml", []byte(src))
		ok := accepts(src)
		if err == nil {
			good++
		} else {
			bad++
		}
		if err != nil && ok && (strings.Contains(err.Error(), "bad glob") || strings.Contains(err.Error(), "two rules") ||
			strings.Contains(err.Error(), "stands here again") || strings.Contains(err.Error(), "names no check")) {
			continue // beyond a schema
		}
		if ok != (err == nil) {
			t.Errorf("%q: the schema accepts it: %t, the parser says: %v", src, ok, err)
		}
	}
	if good < 10 || bad < 20 {
		t.Errorf("only %d good and %d bad files were compared", good, bad)
	}
}

// The tables of the documentation are those of the code.
func TestReferenceIsCommitted(t *testing.T) {
	const file, from, to = "../../docs/guard.md", "<!-- tables: go test ./defenses/guard -run Reference -update -->\n",
		"<!-- end of tables -->\n"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), from)
	_, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no tables between its two marks", file)
	}
	tables, err := guard.Reference()
	if err != nil {
		t.Fatal(err)
	}
	want := head + from + "\n" + tables + "\n" + to + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(doc) {
		t.Errorf("the tables of %s are not those of the code: go test ./defenses/guard -run Reference -update", file)
	}
}
