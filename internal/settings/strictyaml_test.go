package settings

import (
	"errors"
	"strings"
	"testing"
)

func TestMistakesHaveTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\na: 2\n":                    "f.yaml:2:1: key \"a\" stands here again; it is already set on line 1",
		"a:\n  b: 1\n  b: 2\n":            "f.yaml:3:3: key \"b\" stands here again; it is already set on line 2",
		"? [a]\n: 1\n":                    "f.yaml:1:3: a key must be a plain word, found a list",
		"a: &x 1\nb: [*x]\n":              "f.yaml:2:5: aliases are not supported: write the value out",
		"a: 1\n---\n":                     "f.yaml:2:1: a second document begins here; a file holds one",
		"text":                            "f.yaml:1:1: expected `key: value` lines, found \"text\"",
		"[1, 2]":                          "f.yaml:1:1: expected `key: value` lines, found a list",
		"a: 1\n b: 2\n":                   "f.yaml:",
		"a: \"\n":                         "f.yaml:",
		"\x01":                            "f.yaml:",
		strings.Repeat("[", 100000):       "f.yaml:",
		strings.Repeat("a: b\n", MaxSize): "f.yaml: 1310720 bytes are too many",
	} {
		_, err := Parse("f.yaml", []byte(text))
		var e *Problem
		if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), want) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%.40q: %v, not %s", text, err, want)
		}
	}
}

func TestAnAliasBombIsRefusedWhole(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 9), ",") + "]\n"
	}
	if _, err := Parse("bomb.yaml", []byte(bomb)); err == nil {
		t.Error("accepted")
	}
}

func TestValuesComeInTheOrderOfTheFile(t *testing.T) {
	root, err := Parse("f.yaml", []byte("b: [1, two, 3.5]\na: true # why\nc:\n"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := root.Entries()
	if err != nil || len(entries) != 3 || entries[0].Key != "b" || entries[1].Key != "a" || entries[2].Key != "c" {
		t.Fatalf("%v %v", entries, err)
	}
	items, err := entries[0].Value.Items()
	if err != nil || len(items) != 3 {
		t.Fatal(items, err)
	}
	var got []string
	for _, n := range append(items, entries[1].Value, entries[2].Value) {
		text, typ, err := n.Scalar()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, typ+" "+text)
	}
	if s := strings.Join(got, ", "); s != "int 1, str two, float 3.5, bool true, null " {
		t.Error(s)
	}
	if _, _, err := entries[0].Value.Scalar(); err == nil {
		t.Error("a list is taken for one value")
	}
	if _, err := entries[1].Value.Items(); err == nil {
		t.Error("a value is taken for a list")
	}
	for _, empty := range []string{"", "# nothing\n", "~\n", "{}"} {
		root, err := Parse("f.yaml", []byte(empty))
		if err != nil {
			t.Errorf("%q: %v", empty, err)
			continue
		}
		if e, err := root.Entries(); err != nil || len(e) != 0 {
			t.Errorf("%q: %v %v", empty, e, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: [1]\nb: {c: d}\n")
	f.Add("a: &x 1\nb: *x\n")
	f.Fuzz(func(t *testing.T, s string) {
		root, err := Parse("f", []byte(s))
		if err != nil {
			return
		}
		if _, err := root.Entries(); err != nil {
			t.Errorf("a file that parses is no mapping: %v", err)
		}
	})
}
