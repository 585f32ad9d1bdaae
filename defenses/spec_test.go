package defenses_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/builtin"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]defenses.Spec{
		"keyword":                          {Kind: "keyword"},
		"keyword@input":                    {Kind: "keyword", Place: defenses.Input},
		"keyword:strict@read":              {Kind: "keyword", Argument: "strict", Place: defenses.Read},
		"strict=guard:strict.yaml":         {Name: "strict", Kind: "guard", Argument: "strict.yaml"},
		"guard:a@2.yaml":                   {Kind: "guard", Argument: "a@2.yaml"},
		"guard:a@2.yaml@act":               {Kind: "guard", Argument: "a@2.yaml", Place: defenses.Act},
		"exec:python guard.py --a=b,c":     {Kind: "exec", Argument: "python guard.py --a=b,c"},
		"x=exec:A=1 ./guard@write":         {Name: "x", Kind: "exec", Argument: "A=1 ./guard", Place: defenses.Write},
		"http://user@host.example/p?q=1,2": {Kind: "http", Argument: "//user@host.example/p?q=1,2"},
		"judge:openai:gpt-oss-120b@read":   {Kind: "judge", Argument: "openai:gpt-oss-120b", Place: defenses.Read},
		"exec:mail me@example.org":         {Kind: "exec", Argument: "mail me@example.org"},
		"chain:a=b.yaml":                   {Kind: "chain", Argument: "a=b.yaml"},
		"v1.2_a+b-c=chain:/etc/x:y.yaml@act": {Name: "v1.2_a+b-c", Kind: "chain", Argument: "/etc/x:y.yaml",
			Place: defenses.Act},
	} {
		got, err := defenses.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q is written back as %q", text, got.String())
		}
	}
}

func TestParseErrorsNameTheMistakeAndItsRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"":              "write [name=]kind",
		"  ":            "write [name=]kind",
		"=keyword":      `the name "" must be`,
		"a b=keyword":   `the name "a b" must be`,
		"x=":            "no defense is named",
		":strict":       "no defense is named",
		"keyword:":      "nothing follows the colon",
		"keyword@wrte":  `did you mean "write"?`,
		"keyword@":      "unknown place",
		"guard:a@later": "unknown place",
	} {
		if _, err := defenses.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %q", text, err, want)
		}
	}
}

func TestListsAreNotSplitBehindACommandAddressOrModel(t *testing.T) {
	for list, want := range map[string][]string{
		"":                                     nil,
		"none, keyword@input ,guard":           {"none", "keyword@input", "guard"},
		"none,,guard,":                         {"none", "guard"},
		"none,exec:sh -c 'a,b',guard":          {"none", "exec:sh -c 'a,b',guard"},
		"none,x=exec:a,b=c":                    {"none", "x=exec:a,b=c"},
		"http://h/?a=1,2,keyword":              {"http://h/?a=1,2,keyword"},
		"judge:a,b":                            {"judge:a,b"},
		"strict=guard:exec:x.yaml,keyword":     {"strict=guard:exec:x.yaml", "keyword"},
		"a=keyword,b=judge:m,c":                {"a=keyword", "b=judge:m,c"},
		"executive:a,keyword":                  {"executive:a", "keyword"},
		"keyword@read,https://h.example/x,y z": {"keyword@read", "https://h.example/x,y z"},
	} {
		if got := defenses.SplitList(list); !slices.Equal(got, want) {
			t.Errorf("SplitList(%q) = %q, want %q", list, got, want)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	r := builtin.New()
	for spec, want := range map[string][]string{
		"sinned":           {`unknown defense "sinned"`, `did you mean "signed"?`, "known: none, block-all"},
		"zzzzzz":           {`unknown defense "zzzzzz"`, "known: none, block-all"},
		"none:x":           {"takes no argument", `leave out ":x"`},
		"none=signed":      {`the name "none" is that of a control`},
		"none@input":       {"screens nothing", "leave out @input"},
		"chain:":           {"nothing follows the colon"},
		"chain":            {"needs a file"},
		"chain:nofile.yml": {"reading the chain file", "nofile.yml"},
	} {
		_, err := r.Build(spec, defenses.Env{})
		if err == nil {
			t.Errorf("Build(%q) succeeds", spec)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("Build(%q): %v, want %q", spec, err, w)
			}
		}
	}
	for _, spec := range []string{"x=http://user:secret@127.0.0.1/p", "https://secret@host/",
		"http:http://host/x?key=secret", "x=http://user:se/cret@host:80", "http://a:se?cret@host"} {
		if _, err := r.Build(spec, defenses.Env{}); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("Build(%q): %v; want an error without the secret", spec, err)
		}
	}
	var all []defenses.Built
	for _, spec := range defenses.SplitList("signed,a=signed,signed@read") {
		b, err := r.Build(spec, defenses.Env{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if all[0].Name != "signed" || all[1].Name != "a" || all[2].Name != "signed@read" {
		t.Errorf("names %q, %q, %q", all[0].Name, all[1].Name, all[2].Name)
	}
	if all[0].Canonical != all[1].Canonical || all[0].Canonical == all[2].Canonical {
		t.Errorf("canonical texts %q, %q, %q: the first two decide alike, the third does not", all[0].Canonical,
			all[1].Canonical, all[2].Canonical)
	}
}

func TestEveryDefenseSaysWhatItIsAndCosts(t *testing.T) {
	r := builtin.New()
	for _, i := range r.Infos() {
		if i.Idea == "" || i.Cost == "" || len(i.Screens) == 0 && i.Name != "none" && !i.Within {
			t.Errorf("%+v", i)
		}
	}
	if !slices.Equal(r.Names()[:4], []string{"none", "block-all", "no-memory", "origin-only"}) {
		t.Errorf("names %q", r.Names())
	}
}

func TestRegisteringTwicePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a second registration is taken")
		}
	}()
	r := builtin.New()
	r.Register(defenses.Info{Name: "none"}, nil)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a=b:c@read", "exec:x@y", "@", "=", ":", "x=exec:", "guard:a@b@input"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := defenses.Parse(s)
		if err != nil {
			return
		}
		again, err := defenses.Parse(spec.String())
		if err != nil || again != spec {
			t.Errorf("%q is %+v, written back %+v, %v", s, spec, again, err)
		}
		defenses.SplitList(s)
	})
}
