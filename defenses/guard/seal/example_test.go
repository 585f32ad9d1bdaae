package seal_test

import (
	"fmt"

	"github.com/memtox/memtox/defenses/guard/seal"
)

// A snapshot is a tree that was kept. Its root, which somebody noted elsewhere,
// is all that it takes to check what was in it.
func Example() {
	monday, _ := seal.Tree{}.Set(
		seal.Item{ID: "r1", Content: []byte("encoding of r1")},
		seal.Item{ID: "r2", Content: []byte("encoding of r2")},
	)
	tuesday, _ := monday.Set(seal.Item{ID: "r3", Content: []byte("encoding of r3")})

	absent, _ := monday.Prove("r3")
	there, _ := tuesday.Prove("r3")
	fmt.Println("monday: ", absent.Present, absent.Verify(monday.Root()))
	fmt.Println("tuesday:", there.Present, there.Verify(tuesday.Root()))

	there.Index++
	fmt.Println(there.Verify(tuesday.Root()) != nil)
	// Output:
	// monday:  false <nil>
	// tuesday: true <nil>
	// true
}
