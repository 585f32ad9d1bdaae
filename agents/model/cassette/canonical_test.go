package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawJSON draws a value and writes it with white space and its members in some
// order.
func drawJSON(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	sp := func() string { return space.Draw(t, "space") }
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		b, _ := json.Marshal(rapid.String().Draw(t, "string"))
		return sp() + string(b) + sp()
	case 1:
		return sp() + rapid.SampledFrom([]string{"1", "-0.5e+7", "true", "null", `"\"}{[]\\"`, "{}", "[]"}).Draw(t,
			"literal") + sp()
	case 2:
		var parts []string
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			parts = append(parts, drawJSON(t, depth-1))
		}
		return sp() + "[" + strings.Join(parts, ",") + sp() + "]"
	}
	var parts []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "messages", "é", ""}), 0, 5,
		rapid.ID[string]).Draw(t, "names") {
		b, _ := json.Marshal(name)
		parts = append(parts, sp()+string(b)+sp()+":"+drawJSON(t, depth-1))
	}
	return "{" + strings.Join(parts, ",") + sp() + "}"
}

// The canonical form means the same, is its own canonical form, and does not
// depend on white space or order.
func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawJSON(t, 4)
		got := canonical([]byte(in))
		var want, have any
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &have); err != nil || !reflect.DeepEqual(want, have) {
			t.Fatalf("%s\nbecomes %s (%v)", in, got, err)
		}
		if again := canonical(got); !bytes.Equal(again, got) {
			t.Fatalf("%s is not canonical: %s", got, again)
		}
		if bytes.ContainsAny(stripStrings(got), " \n\t") {
			t.Fatalf("%s holds white space", got)
		}
	})
	for i := range 50 {
		parts := []string{`"a":{"y":1, "x":[2]}`, `"b": null`, `"messages":[{"role":"user","content":"x"}]`, `"z":"a,b"`}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if got := string(canonical([]byte("{" + strings.Join(parts, " , ") +
			"}"))); got != `{"a":{"x":[2],"y":1},"b":null,"messages":[{"content":"x","role":"user"}],"z":"a,b"}` {
			t.Fatalf("%q becomes %s", parts, got)
		}
	}
}

func stripStrings(b []byte) []byte {
	var out []byte
	in := false
	for i := 0; i < len(b); i++ {
		switch {
		case in && b[i] == '\\':
			i++
		case b[i] == '"':
			in = !in
		case !in:
			out = append(out, b[i])
		}
	}
	return out
}

// What is no JSON stays as it is; text that is nested on purpose takes no
// quadratic time.
func TestCanonicalHostile(t *testing.T) {
	for _, in := range []string{"", "{", `{"a"`, "hello", "\x00", strings.Repeat("[", 20000)} {
		if got := string(canonical([]byte(in))); got != in {
			t.Errorf("%.40q becomes %.40q", in, got)
		}
	}
	deep := strings.Repeat(`{"b":1,"a":`, 9000) + `"` + strings.Repeat("x", 4<<20) + `"` + strings.Repeat("}", 9000)
	if got := canonical([]byte(deep)); len(got) != len(deep) {
		t.Errorf("%d bytes become %d", len(deep), len(got))
	}
}

func TestOperation(t *testing.T) {
	for in, want := range map[string]string{
		"http://h/v1/chat/completions":                      "POST /chat/completions",
		"http://h/v1/x?api-version=2&key=secret&b=1":        "POST /x?api-version=2&b=1&key=",
		"http://h/other/x?ts=17&TOKEN=secret&sig=secret%2F": "POST /other/x?TOKEN=&sig=&ts=",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := operation(&http.Request{Method: "POST", URL: u}, "/v1"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if hashOf("POST /x", []byte("1")) == hashOf("POST /x1", nil) {
		t.Error("the hash runs operation and body together")
	}
}

func BenchmarkCanonical(b *testing.B) {
	var s strings.Builder
	s.WriteString(`{"model":"m","seed":1,"messages":[`)
	for i := range 40 {
		fmt.Fprintf(&s, `{"role":"user","content":%q},`, strings.Repeat("some words ", 40))
		_ = i
	}
	s.WriteString(`{}]}`)
	in := []byte(s.String())
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		canonical(in)
	}
}
