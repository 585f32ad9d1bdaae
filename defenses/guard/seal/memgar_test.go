package seal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/defenses/guard/seal"
)

// vectors reads a file of memgar's own outputs, which are not part of the
// repository.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("MEMTOX_SHARED_DATA")
	if dir == "" {
		t.Skip("MEMTOX_SHARED_DATA is unset: it names the folder with memgar-vectors/" + name)
	}
	readJSON(t, filepath.Join(dir, "memgar-vectors", name), into)
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

type memgarTree struct {
	N       int
	Root    string
	Depth   int
	Entries [][2]string
	Levels  [][]string
	Proofs  []seal.MemgarProof
}

func (v *memgarTree) build() *seal.Memgar {
	var list []seal.MemgarEntry
	if v.Entries == nil {
		for i := range v.N {
			list = append(list, seal.MemgarEntry{ID: fmt.Sprintf("e%d", i), ContentHash: hexSHA(fmt.Sprintf("content-%d", i))})
		}
	}
	for _, e := range v.Entries {
		list = append(list, seal.MemgarEntry{ID: e[0], ContentHash: e[1]})
	}
	return seal.NewMemgar(list)
}

func (v *memgarTree) check(t *testing.T) {
	t.Helper()
	m := v.build()
	if m.Root() != v.Root {
		t.Errorf("n=%d: root %s, want %s", v.N, m.Root(), v.Root)
	}
	for _, want := range v.Proofs {
		got, ok := m.Prove(want.EntryID)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("n=%d, entry %q: %s", v.N, want.EntryID, diff)
		}
		if ok, err := got.Verify(seal.MemgarExpect{EntryID: &want.EntryID, Root: &v.Root}); !ok || err != nil {
			t.Errorf("n=%d: our own proof of %q: %v %v", v.N, want.EntryID, ok, err)
		}
	}
}

// The file was computed from the formulas of the package comment by a few lines
// of Python, not by this package.
func TestMemgarTreeByHand(t *testing.T) {
	var list []memgarTree
	readJSON(t, "testdata/memgar.json", &list)
	for _, v := range list {
		v.check(t)
		m := v.build()
		if depth := len(v.Levels) - 1; m.Depth() != depth {
			t.Errorf("depth %d, want %d", m.Depth(), depth)
		}
		for _, e := range v.Entries {
			p, ok := m.Prove(e[0])
			if !ok || !slices.Contains(v.Levels[0], p.LeafHash) {
				t.Errorf("entry %q: leaf %s", e[0], p.LeafHash)
			}
		}
	}
}

func TestMemgarTreeEqualsMemgars(t *testing.T) {
	var file struct {
		Trees      []memgarTree
		Tricky     memgarTree `json:"tricky_ids"`
		Duplicates memgarTree `json:"duplicate_ids"`
		Verify     []struct {
			Name   string
			Proof  seal.MemgarProof
			Expect struct {
				ID      *string `json:"expected_entry_id"`
				Content *string `json:"expected_content_hash"`
				Root    *string `json:"expected_root"`
			} `json:"expected"`
			Result    *bool   `json:"memgar_result"`
			Exception *string `json:"memgar_exception"`
		} `json:"verify_cases"`
	}
	vectors(t, "merkle.json", &file)
	if len(file.Trees) != 7 || len(file.Verify) != 19 {
		t.Fatalf("%d trees and %d verifications", len(file.Trees), len(file.Verify))
	}
	for _, v := range append(file.Trees, file.Tricky, file.Duplicates) {
		v.check(t)
		if m := v.build(); v.N > 0 && m.Depth() != v.Depth {
			t.Errorf("n=%d: depth %d, want %d", v.N, m.Depth(), v.Depth)
		}
	}
	for _, c := range file.Verify {
		ok, err := c.Proof.Verify(seal.MemgarExpect{EntryID: c.Expect.ID, ContentHash: c.Expect.Content, Root: c.Expect.Root})
		if (err != nil) != (c.Exception != nil) || err == nil && ok != *c.Result {
			t.Errorf("%s: %v %v, memgar: %v %v", c.Name, ok, err, c.Result, c.Exception)
		}
	}
}
