package importers

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

func write(t testing.TB, dir, name, content string) Input {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return Input{Name: name, Path: path}
}

// The parser takes nothing that encoding/json refuses, and what both take is the
// same.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,false,null,"x\u00e9\ud83d\ude00\n"]}`, `{"a":1,"a":2}`, `"\ud800"`,
		`01`, `1.`, `[1,]`, `{"a" 1}`, "\"\x01\"", "\"\xff\"", `[[[[]]]]`, ` {} `, `"\/"`, `-`, `1e`, `"\u12`, `{"":{"":""}}`,
		"\"a\\nb\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := newParser(s)
		v, ok, err := p.next()
		if err == nil && ok {
			_, more, err2 := p.next()
			if more || err2 != nil {
				return // several values
			}
		}
		valid := json.Valid([]byte(s))
		if err == nil && ok && !valid {
			t.Fatalf("takes %q, which is no JSON", s)
		}
		if err != nil && valid && utf8.ValidString(s) {
			var e *syntaxError
			if !errors.As(err, &e) || !strings.Contains(e.what, "twice") && !strings.Contains(e.what, "surrogate") &&
				!strings.Contains(e.what, "deeper") && !strings.Contains(e.what, "4,096") {
				t.Fatalf("refuses %q: %v", s, err)
			}
		}
		if err != nil || !ok {
			return
		}
		var b strings.Builder
		v.json(&b)
		var ours, theirs any
		if err := json.Unmarshal([]byte(s), &theirs); err != nil {
			return // a number out of range
		}
		if err := json.Unmarshal([]byte(b.String()), &ours); err != nil {
			t.Fatalf("%q is written as %q: %v", s, b.String(), err)
		}
		x, _ := json.Marshal(ours)
		y, _ := json.Marshal(theirs)
		if !bytes.Equal(x, y) {
			t.Fatalf("%q is read as %s, not %s", s, x, y)
		}
	})
}

// A mapping is parsed or refused with its place; whatever is parsed can be used on
// any record.
func FuzzMapping(f *testing.F) {
	for _, format := range FormatNames() {
		if data, ok := ReadyMapping(format); ok {
			f.Add(string(data), `{"a":"b"}`)
		}
	}
	f.Add("content: $.a\nlabel: attack\neach: $.b\nwhere: [{path: $.c, is: [x]}]\n", `{"a":"b","b":{"k":1},"c":"x"}`)
	f.Add("user: $.u\ncontent: $.a[0][\"x\"]\nlabel: $.l\nexpected_memory: {join: [$.a, '@key'], with: ' '}\neach: $\n",
		`{"l":1,"u":"q","a":[{"x":"https://a.example/b"}]}`)
	f.Add("label: $.l\nwrite:\n- {each: $.a, user: '@.x', fresh: '@.f', segments: {each: '@.s', text: '@', pad: 3}}\n- $.b\n"+
		"inject: {text: $.i}\nforms: {all: [$.i, $.l]}\nretrieval: {query: $.q}\ntwin: {where: [{path: $.q, present: true}], write: $.b}\n",
		`{"l":1,"a":[{"x":"hi","f":true,"s":["y",2]}],"b":[{"user":"u"}],"i":"z","q":"later"}`)
	f.Fuzz(func(t *testing.T, text, data string) {
		m, err := ParseMapping("m.yaml", []byte(text))
		if err != nil {
			var e *settings.Problem
			if !errors.As(err, &e) {
				t.Fatalf("%q: an error without a place: %v", text, err)
			}
			return
		}
		p := newParser(data)
		v, ok, err := p.next()
		if !ok || err != nil {
			return
		}
		x := &importing{m: m, used: m.used(), ledger: newLedger("jsonl", false), seen: map[[16]byte]int{},
			ids: map[string]int{}, texts: map[[16]byte]datasets.Label{}, variants: map[int]string{}, twins: map[int]string{}}
		x.convert = func(s *scope, c *made) error { return x.fill(s, c, &x.m.filling, "") }
		if err := x.mapped(record{file: "x", line: 1, object: 1, v: &v}); err == nil && x.ledger.Read != 1 {
			t.Fatalf("a record is neither read nor an error: %+v", x.ledger)
		}
	})
}

// Whatever a file holds, the import ends in cases that can be read back and a
// ledger that accounts for every object, or in an error with a place.
func FuzzJSONLines(f *testing.F) {
	for _, s := range []string{
		`{"text":"a","label":1}`, "\uFEFF{\"text\":\"a\",\"label\":\"benign\",\"class\":\"c\"}\n\n",
		`{"text":"a","label":1}{"text":"b","label":0}`,
		`[{"text":"a","label":true},{"text":[1],"label":false}]`, "{\"text\":\"\xff\",\"label\":1}", `{"text":"a"`,
		"\xff\xfe", `{"id":"x","text":"a","label":1}` + "\n" + `{"id":"x","text":"a","label":1}`,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, skip bool) {
		path := filepath.Join(dir, "x.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := ParseMapping("m.yaml", []byte("id: [$.id, '']\ncontent: $.text\nlabel: $.label\nclass: [$.class, x]\n"))
		if err != nil {
			t.Fatal(err)
		}
		cases, l, err := Import(t.Context(), Request{Format: "jsonl", Files: []Input{{"x.jsonl", path}}, Map: m,
			SkipInvalid: skip})
		if err != nil {
			var e *datasets.Error
			if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q: %v is no error with a place on one plain line", data, err)
			}
			return
		}
		if l.Read != len(l.Entries) || l.Read != l.Kept+l.Duplicates+l.Rejected+l.Filtered || l.Kept != len(cases) ||
			l.Kept != l.Attacks+l.Benign {
			t.Fatalf("%q: the ledger does not add up: %+v", data, l)
		}
		var b bytes.Buffer
		if err := datasets.WriteJSONL(&b, cases); err != nil {
			t.Fatal(err)
		}
		if _, err := datasets.Read(t.Context(), "c.jsonl", &b); err != nil {
			t.Fatalf("%q: the cases cannot be read back: %v", data, err)
		}
	})
}
