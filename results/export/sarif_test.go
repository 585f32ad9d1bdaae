package export_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/memtox/memtox/results/export"
)

var rules = []export.Rule{{ID: "memtox/a", Short: "A thing {0} is [bad](1)."},
	{ID: "memtox/b\x1b", Short: "Another.", Help: "Mend it."}}

func TestHostileFindingsMeetTheSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	s, err := c.Compile("testdata/sarif-2.1.0-subset.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"plain", "[click](http://evil.example)", "{0} {{1}} }{", "\x00\x1b[31m\n\u202e\xff",
		"](", "]](((", strings.Repeat("{", 7)} {
		var b bytes.Buffer
		err := export.WriteSARIF(&b, export.Tool{Name: "memtox " + text, Version: "v1", URI: "https://memtox.example/x"},
			rules, []export.Finding{
				{Rule: "memtox/a", Level: export.Error, Message: text, File: "dir/" + text + "/gate.yaml", Line: 3, Name: text,
					Identity: []string{text}, Properties: map[string]any{"x": text}},
				{Rule: "memtox/b\x1b", Level: export.Note, Message: text, File: "/abs/" + text, Identity: []string{text, ""}},
			})
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%q: %v\n%s", text, err, b.String())
		}
		if bytes.ContainsAny(b.Bytes(), "\x00\x1b") {
			t.Errorf("%q: a control character is in the log", text)
		}
	}
}

func TestNothingFoundIsALogAndAnUnknownRuleAnError(t *testing.T) {
	var b bytes.Buffer
	if err := export.WriteSARIF(&b, export.Tool{Name: "memtox"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct{ Results []any }
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil || len(log.Runs) != 1 || log.Runs[0].Results == nil {
		t.Errorf("%v %s", err, b.String())
	}
	if err := export.WriteSARIF(&b, export.Tool{Name: "memtox"}, rules, []export.Finding{{Rule: "memtox/c"}}); err == nil {
		t.Error("a finding of an unknown rule was written")
	}
}

func TestFingerprintsTellIdentitiesApart(t *testing.T) {
	seen := map[string][]string{}
	for _, id := range [][]string{nil, {""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"1:a"}, {"a1:b"}} {
		f := export.Fingerprint(id)
		if len(f) != 64 || seen[f] != nil {
			t.Errorf("%q and %q have the fingerprint %s", id, seen[f], f)
		}
		seen[f] = append([]string{}, id...)
	}
	// A change of this value would open every finding anew.
	if got := export.Fingerprint([]string{"limit", "memtox-bench v1"}); got != "017e8835511b1b3cbfbdfd6be49f52e9599378baefa63bb7e8cdd0d08c18ab11" {
		t.Errorf("the fingerprint is %s", got)
	}
}
