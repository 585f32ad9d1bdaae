package datasets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/memtox/memtox/agents/memory"
)

const minimal = `{"id":"m-1","label":"benign","kind":"nothing","write":[{"user":"hello"}]}`

func TestAMalformedLineIsOneErrorThatNamesFileLineFieldAndRemedy(t *testing.T) {
	for _, tt := range []struct{ name, lines, want string }{
		{"broken", `{"id":"a","broken`, `x.jsonl:1:18: a: broken JSON: the line ends before the object does; write one complete JSON object on the line`},
		{"cut off", minimal + "\n" + `{"id":"a",`, `x.jsonl:2:11: a: broken JSON: the line ends before the object does; write one complete JSON object on the line`},
		{"unknown field", `{"id":"a","lable":"benign"}`, `x.jsonl:1:11: a: unknown field "lable"; did you mean label?`},
		{"raw NUL", "{\"id\":\"a\",\"family\":\"f\x00g\"}",
			`x.jsonl:1:22: a: family: broken JSON: the control character U+0000 stands in a text as it is; write it as \u0000`},
		{"raw tab", "{\"id\":\"a\tb\"}", `x.jsonl:1:9: id: broken JSON: the control character U+0009 stands in a text as it is; write it as \u0009`},
		{"unknown field in a segment", `{"id":"a","write":[{"user":"u","segments":[{"medium":"web","body":"x"}]}]}`,
			`x.jsonl:1:60: a: write[0].segments[0]: unknown field "body"; known here: medium, source, title, text, inline, pad, origin`},
		{"wrong type", `{"id":"a","write":[{"user":7}]}`,
			`x.jsonl:1:28: a: write[0].user: expected a text, found a number; write it in double quotes`},
		{"a text for a number", `{"id":"a","write":[{"user":"u","segments":[{"pad":"9"}]}]}`,
			`x.jsonl:1:51: a: write[0].segments[0].pad: expected a whole number, found a text; write a whole number from 0 to 2147483647, without quotes`},
		{"missing field", `{"id":"a","write":[{"user":"u"}]}`, `x.jsonl:1: a: label: missing; add it: it is never left out`},
		{"no session and no text", `{"id":"a","label":"benign"}`,
			`x.jsonl:1: a: write: no turn of the user; a case has at least one, or a text to classify`},
		{"session and text", `{"id":"a","label":"benign","kind":"user","write":[{"user":"u"}],"text":{"content":"c"}}`,
			`x.jsonl:1: a: text: a case with a write session has a text too; leave one of them out`},
		{"origin of a text", `{"id":"a","label":"benign","text":{"content":"c","origin":"EXTERNAL"}}`,
			`x.jsonl:1: a: text.origin: unknown origin "EXTERNAL"; one of external, agent, user, system, or leave it out`},
		{"record without text", `{"id":"a","inject":[{"store":"memory"}]}`,
			`x.jsonl:1: a: inject[0].text: missing; add it: it is never left out`},
		{"record of an unknown store", `{"id":"a","label":"benign","kind":"user","write":[{"user":"u"}],"inject":[{"text":"t","store":"vault"}]}`, `x.jsonl:1: a: inject[0].store: unknown store "vault"; one of memory, user, or leave it out`},
		{"record of an unknown origin", `{"id":"a","label":"benign","kind":"user","write":[{"user":"u"}],"inject":[{"text":"t","origin":"USER"}]}`, `x.jsonl:1: a: inject[0].origin: unknown origin "USER"; one of external, agent, user, system, or leave it out`},
		{"signed attack", `{"id":"a","label":"attack","class":"out_of_band","write":[{"user":"u"}],"inject":[{"text":"t","signed":true}]}`, `x.jsonl:1: a: inject[0].signed: an attack has a signed record; leave it out: who writes around the gate cannot sign`},
		{"text and record", `{"id":"a","label":"attack","class":"c","text":{"content":"c"},"inject":[{"text":"t"}]}`,
			`x.jsonl:1: a: inject: a text has records that are injected; a case with sessions has its content under write`},
		{"text without content", `{"id":"a","label":"benign","text":{"key":"k"}}`,
			`x.jsonl:1: a: text.content: missing; add it: it is never left out`},
		{"missing text", `{"id":"a","write":[{"user":"u","segments":[{"medium":"web"}]}]}`,
			`x.jsonl:1: a: write[0].segments[0].text: missing; add it: it is never left out`},
		{"field twice", `{"id":"a","id":"b"}`, `x.jsonl:1:11: a: id: the field "id" stands twice; keep one of them`},
		{"two on a line", minimal + minimal, `x.jsonl:1:74: m-1: something follows the case's closing brace: "{\"id\":\"m-1\",\"label\":\"benign\",\"kind\":\"nothing\",\"write\":[{\"use"… (73 bytes); put one case on each line`},
		{"duplicate id", minimal + "\n\n" + minimal, `x.jsonl:3: m-1: id: the id already stands on line 1; give each case an id of its own`},
		{"invalid UTF-8", "{\"id\":\"a\xff\"}", `x.jsonl:1:9: id: invalid UTF-8; save the file as UTF-8`},
		{"lone surrogate", `{"id":"\ud800"}`, `x.jsonl:1:8: id: a lone surrogate is not a character; write both halves of the pair, or U+FFFD`},
		{"unknown label", strings.Replace(minimal, `"benign"`, `"evil\u001b[31m"`, 1),
			`x.jsonl:1: m-1: label: unknown label "evil\x1b[31m"; one of attack, benign`},
		{"no class", `{"id":"a","label":"attack","write":[{"user":"u"}]}`,
			`x.jsonl:1: a: class: an attack has no class; one of explicit_command, conditional_command, salience_compaction, policy_fact, false_precedent, skill_procedure, or a name of your own`},
		{"state without a later session", strings.Replace(minimal, `"label"`, `"state":{},"label"`, 1),
			`x.jsonl:1: m-1: retrieval: missing, and the outcome is a state; say what the user asks later`},
		{"no column of the world", strings.Replace(minimal, `"label"`,
			`"retrieval":{"query":"q"},"state":{"situation":{},"world":{"payees":[{"a":"b"}]}},"label"`, 1),
			`x.jsonl:1: m-1: state.world: row 1 of payees: unknown column "a" (one of name, account, note)`},
		{"no column of the harm", strings.Replace(minimal, `"label"`,
			`"retrieval":{"query":"q"},"state":{"situation":{},"harm":{"row":{"payees":{"a":"b"}}}},"label"`, 1),
			`x.jsonl:1: m-1: state.harm: row 1 of payees: unknown column "a" (one of name, account, note)`},
		{"no tool", strings.Replace(minimal, `"label"`,
			`"retrieval":{"query":"q"},"state":{"situation":{},"solve":[{"name":"rob","args":[]}]},"label"`, 1),
			`x.jsonl:1: m-1: state.solve: there is no tool "rob"; the tools are those of agents/world/office.yaml`},
		{"no turn", `{"id":"a","label":"benign","kind":"user","write":[]}`,
			`x.jsonl:1: a: write: no turn of the user; a case has at least one, or a text to classify`},
		{"too long", minimal + "\n" + strings.Replace(minimal, "hello", strings.Repeat("a", 65<<20), 1),
			`x.jsonl:2: the line is longer than 64 MiB; cut the content, or split the case`},
		{"too long without an end", strings.Repeat("[", 65<<20),
			`x.jsonl:1: the line is longer than 64 MiB; cut the content, or split the case`},
		{"nothing", "\n \n", `x.jsonl: the set holds no case; a file of cases has one JSON object on each line`},
		{"a list", `[` + minimal + `]`, `x.jsonl:1:1: expected an object, found a list; docs/cases.md lists every field; memtox datasets export memtox-smoke writes examples`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(context.Background(), "x.jsonl", strings.NewReader(tt.lines))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What one person says in one turn fits a window; more is refused before it costs
// gigabytes in every arm.
func TestMoreThanAnyWindowIsRefused(t *testing.T) {
	c := Case{ID: "m-1", Family: "f", Label: Benign, Kind: KindNothing,
		Write: []Turn{{User: "u"}, {User: strings.Repeat("talk ", MaxSaid/5+1)}}}
	want := "m-1: write[1].user: 524290 bytes are more than the 524288 that fit any window; give long material to the " +
		"agent as a segment"
	if _, err := NewSet("s", []Case{c}); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	c.Write[1] = Turn{User: c.Write[1].User[:MaxSaid],
		Segments: []Segment{{Medium: memory.Web, Text: strings.Repeat("page ", 1<<20)}}}
	if _, err := NewSet("s", []Case{c}); err != nil {
		t.Error(err)
	}
}

func TestHostileContentIsReadAsItIs(t *testing.T) {
	want := "\x00\x1b[31m\u202e</script>\u200b\r\n" + strings.Repeat("long ", 1<<20)
	c := Case{ID: "m-1", Family: "f", Label: Benign, Kind: KindNothing,
		Write: []Turn{{User: "u", Segments: []Segment{{Medium: memory.Web, Source: "s", Text: want}}}}}
	var buf bytes.Buffer
	if err := WriteJSONL(&buf, []Case{c}); err != nil {
		t.Fatal(err)
	}
	s, err := Read(context.Background(), "x.jsonl", &buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Cases[0].Write[0].Segments[0].Text; got != want {
		t.Errorf("got %d bytes beginning %q, want %d", len(got), got[:20], len(want))
	}
}

func TestTheDigestDependsOnCasesAndOrderOnly(t *testing.T) {
	second := strings.Replace(minimal, "m-1", "m-2", 1)
	open := func(name, lines string) *Set {
		t.Helper()
		s, err := Read(context.Background(), name, strings.NewReader(lines))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := open("x.jsonl", minimal+"\n"+second+"\n")
	spaced := open("y.jsonl", "\uFEFF{ \"write\" : [ {\"user\":\"h\\u0065llo\", \"segments\": []} ], \"kind\":\"nothing\",\r\n"[:0]+
		`{ "write" : [ {"user":"h\u0065llo", "segments": null} ], "kind":"nothing", "label":"benign" , "id":"m-1", "goal":"" }`+"\r\n\n"+second)
	inYAML := open("z.yaml", "cases:\n- id: m-1\n  kind: nothing # a comment\n  label: benign\n  write:\n  - user: "+
		"hello\n- {id: m-2, label: benign, kind: nothing, write: [{user: hello}]}\n")
	swapped := open("x.jsonl", second+"\n"+minimal+"\n")
	if spaced.SHA256 != plain.SHA256 || inYAML.SHA256 != plain.SHA256 {
		t.Errorf("the same cases have digests %s, %s and %s", plain.SHA256, spaced.SHA256, inYAML.SHA256)
	}
	if swapped.SHA256 == plain.SHA256 {
		t.Error("another order has the same digest")
	}
	var buf bytes.Buffer
	if err := WriteJSONL(&buf, plain.Cases); err != nil {
		t.Fatal(err)
	}
	if sum(buf.Bytes()) != plain.SHA256 {
		t.Error("the digest is not that of the exported file")
	}
}

func TestYAMLKeepsTextsAsTheyAreWritten(t *testing.T) {
	s, err := Read(context.Background(), "x.yaml", strings.NewReader(`
- id: m-1
  label: benign
  kind: user
  value: 0017
  forms: [2026-01-02, yes, 1e3, "null"]
  write:
    - user: on
      segments: [{medium: web, source: s, text: t, pad: 12, inline: true}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Case{ID: "m-1", Family: "m-1", Label: Benign, Kind: KindUser, Value: "0017",
		Forms: []string{"2026-01-02", "yes", "1e3", "null"},
		Write: []Turn{{User: "on", Segments: []Segment{{Medium: memory.Web, Source: "s", Text: "t", Pad: 12, Inline: true}}}}}
	if diff := cmp.Diff(want, s.Cases[0]); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLErrorsNameTheLineOfTheField(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"unknown field", "- id: m-1\n  label: benign\n  write:\n  - user: u\n    segment: x\n",
			`x.yaml:4: m-1: write[0]: unknown field "segment"; did you mean segments?`},
		{"wrong type", "- id: m-1\n  label: benign\n  write:\n  - user: u\n    segments:\n    - medium: web\n      text: [a]\n", `x.yaml:7: m-1: write[0].segments[0].text: expected a text, found a list; write it in double quotes`},
		{"unknown kind", "- id: m-1\n  label: benign\n  write: [{user: u}]\n  kind: odd\n",
			`x.yaml:4: m-1: kind: unknown kind of benign case "odd"; one of user, asked, unasked, nothing, triggers`},
		{"no value", "- id: m-1\n  label:\n", `x.yaml:2: label: the field has no value; give it one or leave it out`},
		{"alias", "- id: &a m-1\n  label: *a\n", `x.yaml:2: label: anchors and aliases are not used in cases; write the value out`},
		{"no list", "id: m-1\n", "x.yaml:1: expected a list of cases; write `cases:` and begin each case below it with `- " +
			"id: …`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(context.Background(), "x.yaml", strings.NewReader(tt.file))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenSaysWhatItKnows(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct{ name, want string }{
		{"memtox-snoke", `no built-in set and no file is named "memtox-snoke"; did you mean memtox-smoke? built-in sets: memtox-bench, memtox-collision, memtox-fresh, memtox-frontier, memtox-oob, memtox-smoke`},
		{"builtin.go", `builtin.go: cannot tell the format by the ending ".go"; name it .jsonl or .yaml, with .zst if it is compressed`},
		{"importers", `importers is no regular file; write the cases to a file first`},
	} {
		if _, err := Open(ctx, tt.name); err == nil || err.Error() != tt.want {
			t.Errorf("Open(%q): %v, want %s", tt.name, err, tt.want)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Open(canceled, "memtox-smoke"); err != context.Canceled &&
		!strings.Contains(fmt.Sprint(err), "canceled") {
		t.Errorf("a cancelled Open returned %v", err)
	}
}

func TestCompressedFilesAreReadAlike(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.jsonl.zst")
	if err := os.WriteFile(file, z.EncodeAll([]byte(minimal), nil), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "mine" || len(s.Cases) != 1 || s.Cases[0].ID != "m-1" {
		t.Errorf("got %+v", s)
	}
	if err := os.WriteFile(file, []byte("no zstd"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), file); err == nil || !strings.Contains(err.Error(), "mine.jsonl.zst") {
		t.Errorf("a file that is not compressed gave %v", err)
	}
}

// anyCase generates cases of every shape, hostile text included.
func anyCase() *rapid.Generator[Case] {
	str := rapid.OneOf(rapid.Just(""), rapid.String(),
		rapid.SampledFrom([]string{"\x00\"\\\n\u2028", "😀", "<b>&", "\x7f\x1b"}))
	segment := rapid.Custom(func(t *rapid.T) Segment {
		return Segment{Medium: memory.Medium(str.Draw(t, "medium")), Source: str.Draw(t, "source"),
			Title: str.Draw(t, "title"),
			Text:  str.Draw(t, "text"), Inline: rapid.Bool().Draw(t, "inline"), Pad: rapid.IntRange(0, 9999).Draw(t, "pad")}
	})
	return rapid.Custom(func(t *rapid.T) Case {
		c := Case{ID: str.Draw(t, "id"), Family: str.Draw(t, "family"), Split: Split(str.Draw(t, "split")),
			Label: Label(str.Draw(t, "label")),
			Class: str.Draw(t, "class"), Signal: str.Draw(t, "signal"), Channel: str.Draw(t, "channel"),
			Domain: str.Draw(t, "domain"),
			Goal:   str.Draw(t, "goal"), Kind: str.Draw(t, "kind"), Twin: str.Draw(t, "twin"),
			VariantOf: str.Draw(t, "variant_of"),
			Variant:   str.Draw(t, "variant"), Memory: str.Draw(t, "memory"), Value: str.Draw(t, "value"),
			Forms: rapid.SliceOfN(str, 0, 3).Draw(t, "forms")}
		c.Write = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
			return Turn{User: str.Draw(t, "user"), Fresh: rapid.Bool().Draw(t, "fresh"),
				Segments: rapid.SliceOfN(segment, 0, 3).Draw(t, "segments"), Expect: rapid.SliceOfN(str, 0, 2).Draw(t, "expect")}
		}), 0, 3).Draw(t, "write")
		c.Inject = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Injected {
			return Injected{Store: str.Draw(t, "store"), Key: str.Draw(t, "key"), Text: str.Draw(t, "text"),
				Origin: str.Draw(t, "origin"),
				Medium: memory.Medium(str.Draw(t, "medium")), Source: str.Draw(t, "source"), Signed: rapid.Bool().Draw(t, "signed")}
		}), 0, 2).Draw(t, "inject")
		if rapid.Bool().Draw(t, "retrieved") {
			c.Retrieval = &Retrieval{Query: str.Draw(t, "query"), Segments: rapid.SliceOfN(segment, 0, 2).Draw(t, "segments"),
				Expect: rapid.SliceOfN(str, 0, 2).Draw(t, "expect"), Forbids: str.Draw(t, "forbids")}
		}
		return c
	})
}

func TestEveryCaseSurvivesEncodingAndDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyCase().Draw(t, "case")
		line := AppendCase(nil, &want)
		got, err := decodeCase(string(line))
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		var theirs Case // the struct tags say the same as our encoder
		if err := json.Unmarshal(line, &theirs); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, theirs, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzRead: whatever a file holds, reading it ends without a panic, and what it
// accepts encoding/json understands in the same way.
func FuzzRead(f *testing.F) {
	f.Add(minimal)
	f.Add(`{"id":"a","label":"attack","class":"x","write":[{"user":"\ud83d\ude00","segments":[{"medium":"web","text":"\u0000","pad":3,"inline":true}],"expect":["a"]}],"retrieval":{"query":"q"}}`)
	f.Add("{\"id\":\"a\xff")
	f.Fuzz(func(t *testing.T, data string) {
		s, err := Read(context.Background(), "x.jsonl", strings.NewReader(data))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("the error is not one inert line: %q", err)
			}
			return
		}
		again, err := Read(context.Background(), "x.jsonl", bytes.NewReader(AppendCase(nil, &s.Cases[0])))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Cases[0], again.Cases[0], cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		if line, _, _ := strings.Cut(data, "\n"); len(s.Cases) == 1 && strings.TrimSpace(line) != "" &&
			!strings.HasPrefix(line, "\uFEFF") && printable(line) {
			theirs := Case{}
			if err := json.Unmarshal([]byte(line), &theirs); err != nil {
				t.Fatalf("accepted what encoding/json refuses: %v", err)
			}
			if theirs.Family == "" {
				theirs.Family = theirs.ID
			}
			if diff := cmp.Diff(s.Cases[0], theirs, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

// FuzzReadYAML: no file makes the YAML reader panic.
func FuzzReadYAML(f *testing.F) {
	f.Add("- id: m-1\n  label: benign\n  kind: user\n  write: [{user: u}]\n")
	f.Add("cases:\n- &a {id: *a}\n")
	f.Fuzz(func(t *testing.T, data string) {
		if _, err := Read(context.Background(), "x.yaml", strings.NewReader(data)); err != nil &&
			strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("the error is not one inert line: %q", err)
		}
	})
}

func BenchmarkOpenSmoke(b *testing.B) {
	for b.Loop() {
		if _, err := Open(context.Background(), "memtox-smoke"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead6237 reads as many cases as the benchmark has, of two kilobytes.
func BenchmarkRead6237(b *testing.B) {
	smoke, err := Open(context.Background(), "memtox-smoke")
	if err != nil {
		b.Fatal(err)
	}
	var lines []byte
	for i := range 6237 {
		c := smoke.Cases[i%len(smoke.Cases)]
		c.ID = fmt.Sprintf("m-%08x", i)
		c.Write = append([]Turn{}, c.Write...)
		c.Write = append(c.Write, Turn{User: strings.Repeat("Some more words\n", 64)})
		lines = append(AppendCase(lines, &c), '\n')
	}
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(context.Background(), "x.jsonl", bytes.NewReader(lines)); err != nil {
			b.Fatal(err)
		}
	}
}

// Opening a pipe would wait for a writer for ever, deaf to signals.
func TestOpenRefusesPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skipf("no pipe can be made here: %v", err)
	}
	if _, err := Open(context.Background(), pipe); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("Open of a pipe: %v", err)
	}
}
