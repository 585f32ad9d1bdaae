package results

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyValue fills what a transcript is made of. Lists without anything in them are nil.
func anyValue(rt *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringOf(rapid.Rune()).Draw(rt, "text"))
	case reflect.Int, reflect.Int32:
		v.SetInt(int64(rapid.Int32().Draw(rt, "number")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, "truth"))
	case reflect.Struct:
		for i := range v.NumField() {
			anyValue(rt, v.Field(i))
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 2).Draw(rt, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				anyValue(rt, v.Index(i))
			}
		}
	default:
		rt.Fatalf("a %s in a transcript", v.Type())
	}
}

// nilled makes nil of empty lists, which a transcript does not tell apart.
func nilled(t *Transcript) *Transcript {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			if v.Len() == 0 {
				v.SetZero()
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(t).Elem())
	return t
}

func TestTranscriptsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var want Transcript
		anyValue(rt, reflect.ValueOf(&want).Elem())
		for i := range want.Sessions {
			want.Sessions[i].Phase = rapid.SampledFrom([]Phase{PhaseWrite, PhaseBetween, PhaseRetrieval}).Draw(rt, "phase")
		}
		head := []byte("head")
		line := want.Append(head)
		if !bytes.HasPrefix(line, head) {
			rt.Fatalf("%q is not behind what was there", line)
		}
		line = line[len(head):]
		if !json.Valid(line) || bytes.ContainsFunc(line, func(r rune) bool {
			return unicode.IsControl(r) || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'
		}) {
			rt.Fatalf("%q is not inert", line)
		}
		got, err := ParseTranscript(line)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(&want, nilled(got)); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
		was := &Trial{ID: want.Trial, Model: want.Model}
		is := &Trial{ID: rapid.String().Draw(rt, "trial"), Model: rapid.String().Draw(rt, "model")}
		again := AppendTranscriptOf(head, line, was, is)
		want.Trial, want.Model = is.ID, is.Model
		if whole := want.Append(head); !bytes.Equal(again, whole) {
			rt.Fatalf("of another trial\n%q, want\n%q", again, whole)
		}
	})
}

// What a model said is kept as far as JSON can.
func TestTranscriptsHoldWhatIsNoText(t *testing.T) {
	line := (&Transcript{Sessions: []Session{{Phase: PhaseWrite, Messages: []Message{{Content: "a\xffb\x7f\u0085\u00e9",
		Calls: []ToolCall{{Name: "t", Args: Args{{"x", "1"}, {"x", "2"}}}}}}}}}).Append(nil)
	if !utf8.Valid(line) || !bytes.Contains(line, []byte(`"a`+"\ufffd"+`b\u007f\u0085é"`)) ||
		!bytes.Contains(line, []byte(`{"x":"1","x":"2"}`)) {
		t.Errorf("%s", line)
	}
}

func TestTranscriptsOfOlderVersionsAreRead(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "transcript-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTranscript(b)
	if err != nil {
		t.Fatal(err)
	}
	var phases []Phase
	var calls, outside []int
	for _, s := range got.Sessions {
		phases, calls, outside = append(phases, s.Phase), append(calls, len(s.Decisions)), append(outside, len(s.Outside))
	}
	want := []any{[]Phase{PhaseWrite, PhaseRetrieval, PhaseBetween}, []int{4, 3, 1}, []int{3, 1, 1}, "yes"}
	if d := cmp.Diff(want, []any{phases, calls, outside, got.Judge[0].Verdict}); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if c := got.Sessions[1].Messages[1].Calls[0]; !c.Acts || !c.Vetoed {
		t.Errorf("%+v", c)
	}
	if c := got.Sessions[0].Messages[3].Calls; c[0].Acts || c[1].Args.String() != `{"n":"2"}` {
		t.Errorf("%+v", c)
	}
	// What is written of it anew says as much.
	again, err := ParseTranscript(got.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(nilled(got), nilled(again)); d != "" {
		t.Errorf("(-read +written and read):\n%s", d)
	}
}

func FuzzParseTranscript(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "transcript-1.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"sessions":[{"phase":"write","messages":[{"role":"user","parts":[{"text":"a","record":"r"}],"decisions":[{"seq":-7}]}]}]}`))
	f.Add([]byte(`{"sessions":[{}],"sessions":[{},{}],"memory":null,"decisions":[{"session":1},{"session":9},{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseTranscript(b)
		if err != nil {
			return
		}
		line := got.Append(nil)
		again, err := ParseTranscript(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if d := cmp.Diff(nilled(got), nilled(again)); d != "" {
			t.Errorf("(-read +written and read):\n%s", d)
		}
	})
}

func TestEightBytesThatStandForThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.ByteRange(' ', '~'), rapid.SampledFrom([]byte("\"\\<>&\x1f\x20\x7e\x7f\x80\xff"))), 8, 8).Draw(t, "bytes")
		odd := bytes.ContainsFunc(b, func(r rune) bool { return r == utf8.RuneError })
		for _, c := range b {
			odd = odd || !plain[c]
		}
		if plainFrom("so, "+string(b)+"!", 4) > 4 && odd {
			t.Fatalf("%q is taken to stand for itself", b)
		}
	})
	if plainFrom("a record and another", 2) != 18 {
		t.Error("letters are not seen to stand for themselves")
	}
}
