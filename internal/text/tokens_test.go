package text

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	in := "Don't SEND 1,000.50 to INV-4471: v1.2, snake_case, Übung’s 日本 'quoted' 3.14. x"
	want := "don't/word send/word 1,000.50/number to/word inv/word 4471/number v1/mixed 2/number snake_case/word " +
		"übung’s/word 日/ideograph 本/ideograph quoted/word 3.14/number x/word"
	var got []string
	for _, tok := range Tokens(in) {
		got = append(got, fmt.Sprintf("%s/%s", tok.Text, tok.Kind))
		if strings.ToLower(in[tok.Start:tok.End]) != tok.Text {
			t.Errorf("span of %q is %q", tok.Text, in[tok.Start:tok.End])
		}
	}
	if g := strings.Join(got, " "); g != want {
		t.Errorf("got  %s\nwant %s", g, want)
	}
}

func checkTokens(t interface{ Fatalf(string, ...any) }, s string) {
	at := 0
	for _, tok := range Tokens(s) {
		if tok.Start < at || tok.End <= tok.Start || tok.End > len(s) || tok.Text == "" || tok.Kind == 0 {
			t.Fatalf("Tokens(%+q): bad token %+v after %d", s, tok, at)
		}
		at = tok.End
	}
}

func TestTokenSpansAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkTokens(t, hostileText().Draw(t, "s")) })
}

func TestFormsOfOneWordShareAStem(t *testing.T) {
	for _, family := range []string{
		"policy policies",
		"relate relates relation relational",
		"run runs running",
		"use uses used using",
		"verify verifies verified verification verifying",
		"apply applies applied application applying",
		"remember remembers remembered remembering",
		"memory memories memorize",
		"organize organizes organized organization",
		"secure secures secured security securely",
		"approve approves approved approval approving",
		"instruct instructs instruction instructions",
		"transfer transfers transferred transferring",
		"agree agrees agreed agreeing",
		"activate activates activation activated",
		"invoice invoices invoiced",
		"deploy deploys deployed deploying",
		"previous previously",
		"prefer prefers preferred preference preferences",
		"user users user's",
	} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if Stem(w) != Stem(words[0]) {
				t.Errorf("%s has the stem %s, %s has %s", words[0], Stem(words[0]), w, Stem(w))
			}
		}
	}
	for _, pair := range []string{"sing sin", "news new", "red reed", "police polite", "account count", "universe unit",
		"password pass", "bring bred", "port portal", "address add"} {
		a, b, _ := strings.Cut(pair, " ")
		if Stem(a) == Stem(b) {
			t.Errorf("%s and %s share the stem %s", a, b, Stem(a))
		}
	}
}

func TestStemIsAPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.OneOf(rapid.StringMatching(`[a-z]{0,14}(ing|ed|ies|s|ly|ation|er|'s)?`), rapid.String()).Draw(t, "w")
		if s := Stem(w); !strings.HasPrefix(w, s) || w != "" && s == "" {
			t.Fatalf("Stem(%q) = %q", w, s)
		}
	})
}

func TestStopwords(t *testing.T) {
	for _, w := range strings.Fields("the of wouldn't because themselves and you're") {
		if !IsStopword(w) {
			t.Errorf("%s is no stopword", w)
		}
	}
	for _, w := range strings.Fields("password invoice never remember tulip always") {
		if IsStopword(w) {
			t.Errorf("%s is a stopword", w)
		}
	}
	if !(Weight("the") < Weight("time") && Weight("time") < Weight("account") && Weight("account") < Weight("tulip")) {
		t.Errorf("weights do not rise with rarity: the %v, time %v, account %v, tulip %v", Weight("the"), Weight("time"),
			Weight("account"), Weight("tulip"))
	}
}
