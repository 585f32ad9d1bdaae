package datasets

import (
	"slices"
	"strings"
	"testing"
)

func expand(t *testing.T, s string) []string {
	t.Helper()
	tmpl, err := ParseTemplate(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	var all []string
	for seed := range uint64(200) {
		got, err := tmpl.Expand(NewRand(seed), func(name string) (string, error) { return "<" + name + ">", nil })
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(all, got) {
			all = append(all, got)
		}
	}
	slices.Sort(all)
	return all
}

func TestExpansion(t *testing.T) {
	for _, tt := range []struct {
		template string
		want     []string
	}{
		{"", []string{""}},
		{"plain", []string{"plain"}},
		{"[a|b] c", []string{"a c", "b c"}},
		{"[|very ]small", []string{"small", "very small"}},
		{"[a|[b|c]d]", []string{"a", "bd", "cd"}},
		{"[INFO] [{x}] [ ]", []string{"[INFO] [<x>] [ ]"}},
		{"| a | b |", []string{"| a | b |"}},
		{"[a|b", nil},
		{"see [1", []string{"see [1"}},
		{"{name_1} ]", []string{"<name_1> ]"}},
		{"[[x] a|b]", []string{"[x] a", "b"}},
	} {
		if tt.want == nil {
			if _, err := ParseTemplate(tt.template); err == nil {
				t.Errorf("%q has no error", tt.template)
			}
			continue
		}
		if got := expand(t, tt.template); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.template, got, tt.want)
		}
	}
}

func TestBrokenTemplatesAreRefused(t *testing.T) {
	for _, s := range []string{"ab {c", "ab {A}", "{}", "x [a|{]", "[a|b", "{a.b}", strings.Repeat("[", 20)} {
		if _, err := ParseTemplate(s); err == nil {
			t.Errorf("%q has no error", s)
		}
	}
}

func TestCapital(t *testing.T) {
	for in, want := range map[string]string{"": "", "éa": "Éa", "Ab": "Ab", "1": "1"} {
		if got := Capital(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestRandStaysTheSameForEver(t *testing.T) {
	// The first outputs of SplitMix64 for the state 1234567, as published with
	// Java's reference code.
	r := &Rand{1234567}
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := r.Uint64(); got != want {
			t.Errorf("output %d: %d, want %d", i, got, want)
		}
	}
	if NewRand(1, "a", "b").Uint64() == NewRand(1, "ab").Uint64() {
		t.Error("labels run into each other")
	}
	count := make([]int, 6)
	r = NewRand(9)
	for range 60_000 {
		count[r.IntN(6)]++
	}
	for i, n := range count {
		if n < 9_500 || n > 10_500 {
			t.Errorf("%d came %d times of 60,000", i, n)
		}
	}
}

// FuzzTemplate: any template either parses and expands or is refused.
func FuzzTemplate(f *testing.F) {
	f.Add("The [east|north] {stair.x} \\[ [INFO")
	f.Fuzz(func(t *testing.T, s string) {
		tmpl, err := ParseTemplate(s)
		if err != nil {
			return
		}
		if _, err := tmpl.Expand(NewRand(1), func(name string) (string, error) { return name, nil }); err != nil {
			t.Error(err)
		}
	})
}
