package inert

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWhatActsIsShown(t *testing.T) {
	for _, c := range []struct{ in, text, markdown string }{
		{"plain text", "plain text", "plain text"},
		{"Grüße, 東京 👍", "Grüße, 東京 👍", "Grüße, 東京 👍"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\\x1b\[31mred\\x1b\[0m`},
		{"a\u202eb\u200bc\ufeff", `a\u202eb\u200bc\ufeff`, `a\\u202eb\\u200bc\\ufeff`},
		{"tag\U000E0041", `tag\U000e0041`, `tag\\U000e0041`},
		{"nul\x00 \x9b31m \xff", `nul\x00 \x9b31m \xff`, `nul\\x00 \\x9b31m \\xff`},
		{"c1 \u009b31m", `c1 \u009b31m`, `c1 \\u009b31m`},
		{"a\nb\tc\rd\u2028e", `a\nb\tc\rd\u2028e`, `a\\nb\\tc\\rd\\u2028e`},
		{`<script>alert("1")</script>`, `<script>alert("1")</script>`, `&lt;script&gt;alert("1")&lt;/script&gt;`},
		{"=HYPERLINK(1)", "=HYPERLINK(1)", `\=HYPERLINK(1)`},
		{"  @SUM(1)", "  @SUM(1)", `  &#64;SUM(1)`},
		{"a|b [x](https://e.example) ![i](j) @team", "a|b [x](https://e.example) ![i](j) @team",
			`a\|b \[x\](https:&#47;&#47;e.example) !\[i\](j) &#64;team`},
		{"1. one", "1. one", `1\. one`},
		{"12", "12", "12"},
		{"- a", "- a", `\- a`},
		{"", "", ""},
	} {
		for name, got := range map[string][2]string{"Text": {Text(c.in), c.text}, "Markdown": {Markdown(c.in), c.markdown}} {
			if got[0] != got[1] {
				t.Errorf("%s(%q) = %q, want %q", name, c.in, got[0], got[1])
			}
		}
	}
}

func TestNothingThatDoesNotPrintIsLeft(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text")
		for _, out := range []string{Text(s), Markdown(s)} {
			if !utf8.ValidString(out) {
				rt.Fatalf("%q: not UTF-8: %q", s, out)
			}
			for _, r := range out {
				if !unicode.IsGraphic(r) {
					rt.Fatalf("%q: %U is left in %q", s, r, out)
				}
			}
		}
		if Text(Text(s)) != Text(s) {
			rt.Fatalf("Text is not done after one time: %q", s)
		}
	})
}

func TestJSONKeepsItsValueOnATerminal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.String().Draw(rt, "text") + "\u2028\u009b1m\u202e\u200b\U000e0041\x7f"
		b, err := json.Marshal(map[string]string{want: want})
		if err != nil {
			rt.Fatal(err)
		}
		var shown strings.Builder
		w := Terminal(&shown)
		for rest := append(b, "\r\n\t\n"...); len(rest) > 0; { // in pieces that part characters
			n := min(len(rest), rapid.IntRange(1, 9).Draw(rt, "piece"))
			if _, err := w.Write(rest[:n]); err != nil {
				rt.Fatal(err)
			}
			rest = rest[n:]
		}
		if whole := string(JSON(b)) + "\r\n\t\n"; shown.String() != whole {
			rt.Fatalf("in pieces %q, whole %q", shown.String(), whole)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(shown.String()), &got); err != nil || got[want] != want || len(got) != 1 {
			rt.Fatalf("%q became %q: %v", want, got, err)
		}
		for _, r := range strings.TrimSpace(shown.String()) {
			if !unicode.IsGraphic(r) {
				rt.Fatalf("%U is left in %q", r, shown.String())
			}
		}
	})
	if got := string(JSON([]byte("\"\x9b1m\r\""))); got != `"\ufffd1m\u000d"` {
		t.Errorf("bytes that are no UTF-8, and a return: %s", got)
	}
}

func TestClipKeepsWholeCharacters(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"short", 10, "short"}, {"exactly", 7, "exactly"}, {"too long", 5, "too …"}, {"äöüß", 4, "äöüß"},
		{"äöüßx", 4, "äöü…"}} {
		if got := Clip(c.in, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
	if got := Clip(strings.Repeat("x", 10<<20), 20); len(got) != 19+len("…") {
		t.Errorf("a huge text was clipped to %d bytes", len(got))
	}
}
