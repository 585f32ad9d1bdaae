package seal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memtox/memtox/defenses/guard/seal"
)

func hexSHA(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// value is what a test's tree commits to of a content.
func value(content string) seal.Hash { return sha256.Sum256([]byte("\x04" + content)) }

func item(i int) map[string]seal.Hash {
	return map[string]seal.Hash{fmt.Sprintf("r%d", i): value(fmt.Sprintf("content %d", i))}
}

func items(n int) map[string]seal.Hash {
	out := map[string]seal.Hash{}
	for i := range n {
		maps.Copy(out, item(i))
	}
	return out
}

func build(t testing.TB, records map[string]seal.Hash) seal.Tree {
	t.Helper()
	tree, err := (seal.Tree{}).Set(records)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// The file was computed from the formulas of the package comment by a few lines
// of Python, not by this package.
func TestRootsAreThoseOfTheDocumentedFormulas(t *testing.T) {
	var list []struct {
		N    int
		Root string
	}
	readJSON(t, "testdata/tree.json", &list)
	for _, v := range list {
		if got := build(t, items(v.N)).Root().String(); got != v.Root {
			t.Errorf("n=%d: root %s, want %s", v.N, got, v.Root)
		}
	}
}

// pages is a store of pages in a map.
type pages map[seal.Hash][]byte

func (p pages) Page(h seal.Hash) ([]byte, error) {
	b, ok := p[h]
	if !ok {
		return nil, errors.New("no such page")
	}
	return b, nil
}

func (p pages) put(h seal.Hash, b []byte) error { p[h] = b; return nil }

// A tree is what its records are: whatever the order of writes, and
// whether it is in memory or reads pages, root, look-ups, proofs and
// differences are those of a map.
func TestTreeIsAMapWithProofs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := map[string]string{}
		store := pages{}
		var tree, before seal.Tree
		old := map[string]string{}
		must := func(err error) {
			if err != nil {
				r.Fatal(err)
			}
		}
		ids := rapid.IntRange(0, rapid.SampledFrom([]int{3, 60, 400}).Draw(r, "ids"))
		for range rapid.IntRange(0, 300).Draw(r, "steps") {
			id := fmt.Sprintf("r%d", ids.Draw(r, "id"))
			var err error
			switch rapid.IntRange(0, 11).Draw(r, "what") {
			case 0:
				tree, err = tree.Save(store, store.put)
			case 1:
				before, old = tree, maps.Clone(want)
			default:
				content := rapid.StringN(0, 2, 4).Draw(r, "content")
				tree, err = tree.Set(map[string]seal.Hash{id: value(content)})
				want[id] = content
			}
			must(err)
		}
		expect := map[string]seal.Hash{}
		for id, content := range want {
			expect[id] = value(content)
		}
		fresh, err := (seal.Tree{}).Set(expect)
		must(err)
		if fresh.Root() != tree.Root() || tree.Len() != uint64(len(want)) {
			r.Fatalf("root %s of %d records, built at once %s of %d", tree.Root(), tree.Len(), fresh.Root(), len(want))
		}
		got := map[string]seal.Hash{}
		must(seal.Diff(seal.Tree{}, tree, func(c seal.TreeChange) error { got[c.ID] = c.New; return nil }))
		if d := cmp.Diff(expect, got); d != "" {
			r.Fatal(d)
		}
		keys := slices.SortedFunc(maps.Keys(want), func(a,
			b string) int {
			return strings.Compare(seal.Key(a).String(), seal.Key(b).String())
		})
		for i := range 401 {
			id := fmt.Sprintf("r%d", i)
			p, err := tree.Prove(id)
			must(err)
			must(p.Verify(tree.Root()))
			content, there := want[id]
			if p.Present != there || there && p.Value != value(content) {
				r.Fatalf("record %s: proof %+v", id, p)
			}
			index := slices.IndexFunc(keys, func(k string) bool { return seal.Key(k).String() >= seal.Key(id).String() })
			if index < 0 {
				index = len(keys)
			}
			if p.Index != uint64(index) || p.Size != uint64(len(keys)) {
				r.Fatalf("record %s: index %d of %d, want %d of %d", id, p.Index, p.Size, index, len(keys))
			}
		}
		wantDiff, gotDiff := map[string][2]bool{}, map[string][2]bool{}
		for id := range maps.Keys(want) {
			if c, ok := old[id]; !ok || c != want[id] {
				wantDiff[id] = [2]bool{ok, true}
			}
		}
		must(seal.Diff(before, tree, func(c seal.TreeChange) error {
			gotDiff[c.ID] = [2]bool{!c.Old.IsZero(), !c.New.IsZero()}
			return nil
		}))
		must(seal.Diff(tree, before, func(c seal.TreeChange) error {
			if gotDiff[c.ID] != [2]bool{!c.New.IsZero(), !c.Old.IsZero()} {
				r.Fatalf("record %s differs one way only", c.ID)
			}
			return nil
		}))
		if d := cmp.Diff(wantDiff, gotDiff); d != "" {
			r.Fatal(d)
		}
	})
}

func TestOneMoreRecordCostsTheLogarithm(t *testing.T) {
	// Pages that a changed record writes are the nodes on its way.
	for _, n := range []int{1000, 10_000, 100_000} {
		store := pages{}
		tree, err := build(t, items(n)).Save(store, store.put)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0
		for i := range 50 {
			changed, err := tree.Set(item(n + i))
			if err != nil {
				t.Fatal(err)
			}
			written := 0
			if _, err := changed.Save(store, func(seal.Hash, []byte) error { written++; return nil }); err != nil {
				t.Fatal(err)
			}
			worst = max(worst, written)
		}
		if worst < 4 || worst > 24 {
			t.Errorf("n=%d: one record more writes %d pages", n, worst)
		}
	}
}

func TestDiffOfTwoLargeTreesReadsOnlyWhatDiffers(t *testing.T) {
	store := pages{}
	a, err := build(t, items(20_000)).Save(store, store.put)
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Set(map[string]seal.Hash{"r77": value("other")})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = b.Save(store, store.put); err != nil {
		t.Fatal(err)
	}
	reads := 0
	count := countingPages{store, &reads}
	var got []string
	err = seal.Diff(seal.Open(a.Root(), a.Len(), count), seal.Open(b.Root(), b.Len(), count),
		func(c seal.TreeChange) error {
			got = append(got, c.ID)
			return nil
		})
	if err != nil || !slices.Equal(got, []string{"r77"}) || reads > 60 {
		t.Errorf("%v, %v, %d pages read", got, err, reads)
	}
}

type countingPages struct {
	pages
	reads *int
}

func (c countingPages) Page(h seal.Hash) ([]byte, error) { *c.reads++; return c.pages.Page(h) }

func TestDamagedPagesAreNamed(t *testing.T) {
	store := pages{}
	tree, err := build(t, items(1500)).Save(store, store.put)
	if err != nil {
		t.Fatal(err)
	}
	walk := func() error { return seal.Diff(seal.Tree{}, tree, func(seal.TreeChange) error { return nil }) }
	if err := walk(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.SortedFunc(maps.Keys(store),
		func(a, b seal.Hash) int { return strings.Compare(a.String(), b.String()) }) {
		page := store[name]
		for kind, bad := range map[string][]byte{
			"a bit":     flip(page, rng.IntN(8*len(page))),
			"cut short": page[:len(page)-1],
			"longer":    append(slices.Clone(page), 0),
			"empty":     {},
		} {
			store[name] = bad
			if err := walk(); !errors.Is(err, seal.ErrDamaged) || !strings.Contains(err.Error(), name.String()) {
				t.Fatalf("page %s, %s: %v", name, kind, err)
			}
		}
		delete(store, name)
		if err := walk(); err == nil || !strings.Contains(err.Error(), name.String()) {
			t.Fatalf("without page %s: %v", name, err)
		}
		store[name] = page
	}
}

func flip(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i/8] ^= 1 << (i % 8)
	return b
}
