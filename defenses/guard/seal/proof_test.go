package seal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/defenses/guard/seal"
)

// mutations changes a proof in every way that leaves its statement the same or
// nearly so.
func mutations(p seal.Proof) map[string]seal.Proof {
	out := map[string]seal.Proof{}
	change := func(name string, f func(*seal.Proof)) {
		c := p
		c.Siblings = slices.Clone(p.Siblings)
		if p.Other != nil {
			other := *p.Other
			c.Other = &other
		}
		f(&c)
		out[name] = c
	}
	change("another id", func(c *seal.Proof) { c.ID += "x" })
	change("the claim turned round", func(c *seal.Proof) { c.Present = !c.Present })
	change("another content", func(c *seal.Proof) { c.Value[31] ^= 1 })
	change("index + 1", func(c *seal.Proof) { c.Index++ })
	change("index - 1", func(c *seal.Proof) { c.Index-- })
	change("size + 1", func(c *seal.Proof) { c.Size++ })
	change("size - 1", func(c *seal.Proof) { c.Size-- })
	change("a sibling more below", func(c *seal.Proof) { c.Siblings = append(c.Siblings, seal.Sibling{}) })
	change("a full sibling more below", func(c *seal.Proof) {
		c.Siblings = append(c.Siblings,
			seal.Sibling{Count: 1, Hash: c.Value})
	})
	change("a sibling more above", func(c *seal.Proof) { c.Siblings = slices.Insert(c.Siblings, 0, seal.Sibling{}) })
	change("300 siblings", func(c *seal.Proof) { c.Siblings = make([]seal.Sibling, 300) })
	if len(p.Siblings) > 0 {
		change("the last sibling gone", func(c *seal.Proof) { c.Siblings = c.Siblings[:len(c.Siblings)-1] })
		change("the first sibling gone", func(c *seal.Proof) { c.Siblings = c.Siblings[1:] })
		change("no siblings", func(c *seal.Proof) { c.Siblings = nil })
	}
	for i := range p.Siblings {
		change(fmt.Sprintf("sibling %d: hash", i), func(c *seal.Proof) { c.Siblings[i].Hash[0] ^= 0x80 })
		change(fmt.Sprintf("sibling %d: count", i), func(c *seal.Proof) { c.Siblings[i].Count++ })
		change(fmt.Sprintf("sibling %d: huge count", i), func(c *seal.Proof) { c.Siblings[i].Count += 1 << 63 })
		change(fmt.Sprintf("sibling %d: emptied", i), func(c *seal.Proof) {
			if c.Siblings[i] == (seal.Sibling{}) {
				c.Siblings[i].Count = 1
			} else {
				c.Siblings[i] = seal.Sibling{}
			}
		})
		if i > 0 && p.Siblings[i] != p.Siblings[i-1] {
			change(fmt.Sprintf("siblings %d and %d swapped", i-1, i), func(c *seal.Proof) {
				c.Siblings[i], c.Siblings[i-1] = c.Siblings[i-1], c.Siblings[i]
			})
		}
	}
	if p.Other != nil {
		change("no other record", func(c *seal.Proof) { c.Other = nil })
		change("another other key", func(c *seal.Proof) { c.Other.Key[31] ^= 1 })
		change("another other content", func(c *seal.Proof) { c.Other.Value[31] ^= 1 })
		change("the other is the record", func(c *seal.Proof) { c.Other.Key = seal.Key(c.ID) })
	} else {
		change("an other record", func(c *seal.Proof) { c.Other = &seal.Leaf{Key: seal.Key("r1"), Value: p.Value} })
	}
	return out
}

func TestEveryOtherProofIsRejected(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 31, 32, 33, 200} {
		tree := build(t, items(n))
		for i := range n + 20 {
			p, err := tree.Prove(fmt.Sprintf("r%d", i))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(tree.Root()); err != nil || p.Present != (i < n) {
				t.Fatalf("n=%d: %v, %+v", n, err, p)
			}
			for name, bad := range mutations(p) {
				err := bad.Verify(tree.Root())
				if err == nil { // the very proof of another id, which is true
					if own, _ := tree.Prove(bad.ID); bad.ID != p.ID && cmp.Equal(own, bad) {
						continue
					}
				}
				if !errors.Is(err, seal.ErrProof) {
					t.Errorf("n=%d, record r%d: accepted with %s: %v\n%+v", n, i, name, err, bad)
				}
			}
		}
	}
}

// parseProof reads a proof as a document does that holds one.
func parseProof(data []byte) (*seal.Proof, error) {
	var p seal.Proof
	return &p, seal.Decode(data, &p)
}

// What memgar's verifier lets through (its malleable and forged cases) has no
// counterpart here.
func TestMemgarsMalleableProofsAreRejectedHere(t *testing.T) {
	tree := build(t, items(5))
	p, err := tree.Prove("r2")
	if err != nil {
		t.Fatal(err)
	}
	data, err := seal.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := parseProof(data); err != nil || again.Verify(tree.Root()) != nil {
		t.Fatal(err)
	}
	s := string(data)
	hash := p.Siblings[0].Hash.String()
	for name, bad := range map[string]string{
		"upper case hexadecimal": strings.Replace(s, hash, strings.ToUpper(hash), 1),
		"a space in a hash":      strings.Replace(s, hash, hash[:32]+" "+hash[33:], 1),
		"no hexadecimal":         strings.Replace(s, hash, "zz"+hash[2:], 1),
		"a shorter hash":         strings.Replace(s, hash, hash[2:], 1),
		"space between":          strings.Replace(s, `,"index"`, `, "index"`, 1),
		"another order":          strings.Replace(s, `{"id":"r2","present":true,`, `{"present":true,"id":"r2",`, 1),
		"an unknown field":       strings.Replace(s, `{"id"`, `{"note":"","id"`, 1),
		"a field twice":          strings.Replace(s, `{"id":"r2"`, `{"id":"r1","id":"r2"`, 1),
		"another case of names":  strings.Replace(s, `"index"`, `"Index"`, 1),
		"an escaped letter":      strings.Replace(s, `"r2"`, "\"\\u00722\"", 1),
		"null for a field":       strings.Replace(s, `,"siblings"`, `,"other":null,"siblings"`, 1),
		"trailing data":          s + "{}",
		"a trailing newline":     s + "\n",
		"no newline":             strings.TrimSpace(s),
		"a fraction":             strings.Replace(s, `"size":5`, `"size":5.0`, 1),
		"an array":               "[" + strings.TrimSpace(s) + "]\n",
		"nothing":                "",
	} {
		if bad == s {
			t.Fatalf("%s changes nothing", name)
		}
		if _, err := parseProof([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// A root that the proof brings along is worth nothing: there is no such
	// field, and Verify asks for one.
	forged := build(t, map[string]seal.Hash{"r2": value("forged")})
	q, err := forged.Prove("r2")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Verify(tree.Root()); !errors.Is(err, seal.ErrProof) {
		t.Error(err)
	}
	// No id can run into its content, whatever separators it holds.
	if a, b := build(t, map[string]seal.Hash{"src:x": value("y|z")}),
		build(t, map[string]seal.Hash{"src:x|y": value("z")}); a.Root() == b.Root() {
		t.Error("two records, one root")
	}
}

func TestAProofIsWrittenInASCII(t *testing.T) {
	id := "日本\u202e\u009b\x7f\U0001f600\x1b"
	tree := build(t, map[string]seal.Hash{id: value("c")})
	p, err := tree.Prove(id)
	if err != nil {
		t.Fatal(err)
	}
	data, err := seal.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range data[:len(data)-1] {
		if c < ' ' || c >= 0x7f {
			t.Fatalf("%q", data)
		}
	}
	if again, err := parseProof(data); err != nil || again.ID != id || again.Verify(tree.Root()) != nil {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestAProofOfAnIDThatIsNoTextIsRefused(t *testing.T) {
	tree := build(t, map[string]seal.Hash{"r\xff": value("c")})
	p, err := tree.Prove("r\xff")
	if err != nil || p.Verify(tree.Root()) != nil {
		t.Fatal(err)
	}
	if _, err := seal.Encode(p); err == nil {
		t.Error("written as JSON, which cannot hold it")
	}
}

func FuzzParseProof(f *testing.F) {
	tree := build(f, items(70))
	genuine := map[string]string{}
	for i := range 90 {
		p, err := tree.Prove(fmt.Sprintf("r%d", i))
		if err != nil {
			f.Fatal(err)
		}
		data, err := seal.Encode(p)
		if err != nil {
			f.Fatal(err)
		}
		genuine[p.ID] = string(data)
		if i%9 == 0 {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"id":"","present":false,"index":0,"size":0,"siblings":[]}` + "\n"))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseProof(data)
		if err != nil {
			return
		}
		again, err := seal.Encode(p)
		if err != nil || string(again) != string(data) {
			t.Fatalf("read %q, writes %q: %v", data, again, err)
		}
		if p.Verify(tree.Root()) != nil {
			return
		}
		want, ok := genuine[p.ID]
		if !ok { // another id: its proof is the one that the tree gives
			q, err := tree.Prove(p.ID)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := seal.Encode(q)
			want = string(w)
		}
		if want != string(data) {
			t.Fatalf("a second proof of %q: %s", p.ID, data)
		}
	})
}

func FuzzMemgarProof(f *testing.F) {
	m := seal.NewMemgar([]seal.MemgarEntry{{ID: "a", ContentHash: hexSHA("1")}, {ID: "b", ContentHash: hexSHA("2")},
		{ID: "c", ContentHash: hexSHA("3")}})
	for _, id := range []string{"a", "c"} {
		p, _ := m.Prove(id)
		data, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"siblings":[[0,"zz"],[1," 0 a"]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p seal.MemgarProof
		if json.Unmarshal(data, &p) != nil {
			return
		}
		root := m.Root()
		ok, err := p.Verify(seal.MemgarExpect{Root: &root})
		if q, there := m.Prove(p.EntryID); ok && err == nil && there && q.ContentHash != p.ContentHash {
			t.Fatalf("other content for %q", p.EntryID)
		}
	})
}

// FuzzPage reads hostile pages: a tree over them answers or fails, within
// bounds, and never gives a proof that does not hold.
func FuzzPage(f *testing.F) {
	store := pages{}
	tree, err := build(f, items(100)).Save(store, store.put)
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range store {
		f.Add(p, uint64(100))
	}
	f.Add([]byte{1, 0, 0}, uint64(1))
	f.Fuzz(func(t *testing.T, page []byte, size uint64) {
		hostile := seal.Open(tree.Root(), size, anyPage(page))
		visited := 0
		_ = seal.Diff(seal.Tree{}, hostile, func(seal.TreeChange) error {
			if visited++; visited > 1000 {
				t.Fatal("one page says more than a thousand records")
			}
			return nil
		})
		if p, err := hostile.Prove("r1"); err == nil && size > 0 {
			if err := p.Verify(tree.Root()); err != nil {
				t.Fatalf("a proof from a page that passed does not hold: %v", err)
			}
		}
	})
}

type anyPage []byte

func (p anyPage) Page(seal.Hash) ([]byte, error) { return p, nil }
