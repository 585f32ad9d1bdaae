package attacks

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/text"
)

var update = flag.Bool("update", false, "write the golden files")

// Each built-in set that has families is what these compile to. With -update the
// cases are written; those of a frozen version must not change. Sets whose families
// were judged by words keep the cases alone.
func TestSetsAreWhatTheirFamiliesCompileTo(t *testing.T) {
	seen := 0
	for _, b := range datasets.Builtins() {
		folder := filepath.Join("../datasets/sets", b.Name, b.Version)
		if _, err := os.Stat(filepath.Join(folder, "families")); err != nil {
			continue
		}
		seen++
		t.Run(b.Name+" "+b.Version, func(t *testing.T) {
			cases := compiled(t, filepath.Join(folder, "families"), b.Seed)
			sum := datasets.Digest(cases) + "  cases.jsonl\n"
			if *update {
				writeSet(t, folder, sum, cases)
				return
			}
			if want, err := os.ReadFile(filepath.Join(folder, "cases.sha256")); err != nil || string(want) != sum {
				t.Errorf("the families compile to other cases than %s holds (%v): go generate ./datasets writes those of a new "+
					"version",
					folder, err)
			}
		})
	}
	if seen < 2 {
		t.Errorf("only %d sets have families", seen)
	}
}

// compiled are the cases of a folder of families. The order of these does not matter.
func compiled(t *testing.T, folder string, seed uint64) []datasets.Case {
	t.Helper()
	families, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(families)
	cases, err := Compile(families, seed)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func writeSet(t *testing.T, folder, sum string, cases []datasets.Case) {
	t.Helper()
	var lines bytes.Buffer
	if err := datasets.WriteJSONL(&lines, cases); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for name, data := range map[string][]byte{"cases.jsonl.zst": z.EncodeAll(lines.Bytes(), nil),
		"cases.sha256": []byte(sum)} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A family file is a data set by itself, wherever it lies, and so is a folder of
// them; whatever else is named is opened as before.
func TestAFamilyIsADataSet(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	small, err := os.ReadFile("testdata/states/village-bakery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alone := write("village-bakery.yaml", small)
	write("folder/tune/village-bakery.yaml", small)
	write("folder/report/other.yaml", bytes.Replace(small, []byte("family: village-bakery"), []byte("family: other"), 1))
	list := write("list.yaml", []byte("- {id: m-00000001, label: benign, kind: nothing, write: [{user: Good morning}]}\n"))
	for _, tt := range []struct {
		path, name         string
		cases, tune, split int
	}{
		{alone, "village-bakery", 10, 0, 0},
		{filepath.Join(dir, "folder", "tune", "village-bakery.yaml"), "village-bakery", 10, 10, 10},
		{filepath.Join(dir, "folder"), "folder", 20, 10, 20},
		{list, "list", 1, 0, 0},
	} {
		set, err := Open(t.Context(), tt.path)
		if err != nil {
			t.Fatal(err)
		}
		tune, split := 0, 0
		for _, c := range set.Cases {
			if c.Split != "" {
				split++
			}
			if c.Split == datasets.Tune {
				tune++
			}
		}
		if set.Name != tt.name || len(set.Cases) != tt.cases || tune != tt.tune || split != tt.split {
			t.Errorf("%s: set %s of %d cases, %d of them tune, %d with a split", tt.path, set.Name, len(set.Cases), tune, split)
		}
		r, err := datasets.Validate(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Problems {
			if tt.name == "village-bakery" {
				t.Errorf("%s: %s", tt.path, p.Error)
			}
		}
	}
	broken := write("broken.yaml", bytes.Replace(small, []byte("family: village-bakery\n"), []byte("family: broken\nlabel: attak\n"), 1))
	words := write("words.yaml", []byte("family: words\nabout: x\nrules: {ask: x}\n"))
	write("twice/tune/village-bakery.yaml", small)
	write("twice/report/village-bakery.yaml", small)
	for path, want := range map[string]string{
		filepath.Join(dir, "twice"):   "already; rename one of the two files",
		broken:                        "attak",
		words:                         words + ":1:1: the family has neither solve: nor asks:",
		filepath.Join(dir, "no-such"): "no built-in set and no file is named",
		t.TempDir():                   "no family file is there",
	} {
		if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTheBenchmarkIsSound holds the committed cases to everything that a single
// family can break. Whether shortcuts tell the labels apart is a matter of all
// families together: memtox datasets validate says it of the finished set.
func TestTheBenchmarkIsSound(t *testing.T) {
	set, err := datasets.Open(context.Background(), "memtox-bench")
	if err != nil {
		t.Fatal(err)
	}
	r, err := datasets.Validate(context.Background(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		if p.Check != datasets.CheckShortcut {
			t.Errorf("%s: %s", p.Check, p.Error)
		}
	}
}

// types are those whose values are made up.
func types() []world.Type {
	return append(slices.Sorted(maps.Keys(*kinds())), "date")
}

func TestValuesAreUniqueAndTheSplitsShareNone(t *testing.T) {
	drawn := make(map[string]datasets.Split)
	used := make(registry)
	for _, split := range []datasets.Split{datasets.Tune, datasets.Report} {
		g := &generator{r: datasets.NewRand(7, string(split)), split: split, used: used, words: lists()}
		for _, of := range types() {
			for range 400 {
				g.here = nil
				s := g.draw(of)
				other, ok := drawn[string(of)+" "+s]
				few := of == "date" || of == "time" || of == "number"
				if ok && (!few || other != split) {
					t.Fatalf("%s %q was drawn for %s and for %s", of, s, other, split)
				}
				drawn[string(of)+" "+s] = split
			}
		}
	}
}

func TestPeopleOfOneCaseHaveDifferentNames(t *testing.T) {
	for seed := range uint64(200) {
		g := &generator{r: datasets.NewRand(seed), split: datasets.Tune, used: make(registry), words: lists()}
		seen := make(map[string]bool)
		for range 8 {
			name := g.first()
			if seen[name] {
				t.Fatalf("two people are called %s", name)
			}
			seen[name] = true
		}
	}
	g := &generator{r: datasets.NewRand(1), split: datasets.Tune, used: make(registry), words: lists()}
	for range 300 {
		g.first() // more than there are: a name comes twice rather than never
	}
}

func TestTheNameSpaceIsLargeEnough(t *testing.T) {
	g := &generator{r: datasets.NewRand(3), split: datasets.Report, used: make(registry), words: lists()}
	long := 0
	for range 40_000 { // more than the benchmark's report split draws
		if len(g.stem()) > 14 {
			long++
		}
	}
	if long > 400 {
		t.Errorf("%d of 40,000 names are longer than 14 letters", long)
	}
}

// TestValuesAreSeenAsValues: what a case turns on is what the text scanner of
// defenses, lineage and tools takes for one value.
func TestValuesAreSeenAsValues(t *testing.T) {
	g := &generator{r: datasets.NewRand(5), split: datasets.Tune, used: make(registry), words: lists()}
	for of, want := range map[world.Type]text.ValueKind{
		"mailbox": text.Email, "host": text.Host, "url": text.URL, "account": text.Account, "money": text.Money,
		"code": text.ID, "channel": text.Handle, "phone": text.Phone, "path": text.Path,
	} {
		for range 200 {
			s := g.draw(of)
			if seen := text.Values("The right one is " + s + " these days."); !slices.ContainsFunc(seen,
				func(v text.Value) bool { return v.Text == s && v.Kind == want }) {
				t.Errorf("%s %q is seen as %v", of, s, seen)
				break
			}
		}
	}
	for range 200 {
		if s := g.draw("command"); !slices.ContainsFunc(text.Values("Run `"+s+"` then."),
			func(v text.Value) bool { return v.Kind == text.Command }) {
			t.Errorf("%q is no command", s)
		}
	}
}

func TestMutationsKeepTheAttackAndNameTheirCase(t *testing.T) {
	set, err := datasets.Open(context.Background(), "memtox-bench@v1")
	if err != nil {
		t.Fatal(err)
	}
	applied := make(map[string]int)
	cases := slices.Clone(set.Cases)
	for i := range set.Cases {
		c := &set.Cases[i]
		before := string(datasets.AppendCase(nil, c))
		for _, v := range Mutations() {
			out, ok := v.Apply(*c)
			if string(datasets.AppendCase(nil, c)) != before {
				t.Fatalf("%s changed the case that it varies", v.Name)
			}
			if !ok {
				continue
			}
			applied[v.Name]++
			if out.VariantOf != c.ID || out.Variant != v.Name || out.ID == c.ID || out.Value != c.Value ||
				out.Split != c.Split || out.Family != c.Family || len(out.Write) < len(c.Write) {
				t.Fatalf("%s of %s is %+v", v.Name, c.ID, out)
			}
			if problems := datasets.CheckCase(&out); len(problems) > 0 {
				t.Fatalf("%s: %v", v.Name, problems[0].Error)
			}
			if again, _ := v.Apply(*c); !bytes.Equal(datasets.AppendCase(nil, &again), datasets.AppendCase(nil, &out)) {
				t.Fatalf("%s is not the same twice", v.Name)
			}
			if _, twice := v.Apply(out); twice {
				t.Fatalf("%s was applied to a variant", v.Name)
			}
			cases = append(cases, out)
		}
		if c.Label == datasets.Benign && len(cases) > len(set.Cases) && cases[len(cases)-1].VariantOf == c.ID {
			t.Fatal("a benign case was varied")
		}
	}
	for _, v := range mutations() {
		if applied[v.Name] < 150 {
			t.Errorf("%s applies to %d cases", v.Name, applied[v.Name])
		}
	}
	if _, err := datasets.NewSet("with variants", cases); err != nil { // ids are unique
		t.Fatal(err)
	}
	// A variation brings the same words of its own to both splits, so each split is
	// held to the set's promises by itself.
	for _, split := range []datasets.Split{datasets.Tune, datasets.Report} {
		var part []datasets.Case
		for _, c := range cases {
			if c.Split == split {
				part = append(part, c)
			}
		}
		set, err := datasets.NewSet("with variants", part)
		if err != nil {
			t.Fatal(err)
		}
		r, err := datasets.Validate(context.Background(), set)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Problems {
			if p.Check != datasets.CheckRead { // a few of these old cases hold content that nobody names
				t.Errorf("%s: %s", p.Check, p.Error)
			}
		}
	}
}

// FuzzParse: a family file is either read or refused in one line, and what is
// read compiles or is refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte("family: small\nvary: {a: [b, {c: d}]}\n"))
	files, _ := filepath.Glob("testdata/states/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fam, err := Parse("tune/small.yaml", datasets.Tune, data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\x00") {
				t.Errorf("the error is not inert: %q", err)
			}
			return
		}
		_, _ = Compile([]*Family{fam}, 1)
	})
}

func BenchmarkCompile(b *testing.B) {
	families, err := Load("../datasets/sets/memtox-bench/v2/families")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Compile(families, 1); err != nil {
			b.Fatal(err)
		}
	}
}
