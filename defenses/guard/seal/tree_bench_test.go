package seal_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/memtox/memtox/defenses/guard/seal"
)

const millionLeaves = 1_000_000

var ofAMillion = sync.OnceValue(func() seal.Tree {
	t, err := (seal.Tree{}).Set(items(millionLeaves))
	if err != nil {
		panic(err)
	}
	return t
})

func BenchmarkBuild1M(b *testing.B) {
	list := items(millionLeaves)
	for b.Loop() {
		if _, err := (seal.Tree{}).Set(list); err != nil {
			b.Fatal(err)
		}
	}
}

// One record more, of whatever size of tree.
func BenchmarkSet(b *testing.B) {
	for _, n := range []int{1000, 100_000, millionLeaves} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tree := ofAMillion()
			if n < millionLeaves {
				tree = build(b, items(n))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := tree.Set(item(n + i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A snapshot after one more record: the tree brought up to date, its entry
// appended to the log, the log's checkpoint signed.
func BenchmarkSnapshot1M(b *testing.B) {
	tree := ofAMillion()
	signer, _ := keys(b, "memtox.test/bench")
	log := fill(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next, err := tree.Set(item(millionLeaves + i))
		if err != nil {
			b.Fatal(err)
		}
		e := &seal.Entry{Number: log.Len(), Name: "bench", Time: time.Unix(int64(i), 0), Size: next.Len(), Root: next.Root()}
		if err := log.Append(e); err != nil {
			b.Fatal(err)
		}
		root, err := log.Root(log.Len())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := (seal.Checkpoint{Origin: "bench", Size: log.Len(), Root: root}).Sign(signer); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProve1M(b *testing.B) {
	tree := ofAMillion()
	for name, id := range map[string]string{"present": "r777777", "absent": "x777777"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tree.Prove(id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify1M(b *testing.B) {
	tree := ofAMillion()
	for name, id := range map[string]string{"present": "r777777", "absent": "x777777"} {
		b.Run(name, func(b *testing.B) {
			p, err := tree.Prove(id)
			if err != nil {
				b.Fatal(err)
			}
			root := tree.Root()
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Verify(root); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The full root in memgar's mode, from entries in no order.
func BenchmarkMemgarRoot1M(b *testing.B) {
	list := make([]seal.MemgarEntry, millionLeaves)
	for i := range list {
		list[i] = seal.MemgarEntry{ID: fmt.Sprintf("e%d", i*7919%millionLeaves),
			ContentHash: hexSHA(fmt.Sprint("content-", i))}
	}
	for b.Loop() {
		if seal.NewMemgar(list).Root() == "" {
			b.Fatal("no root")
		}
	}
}
