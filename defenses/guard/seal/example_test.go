package seal_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/memtox/memtox/defenses/guard/seal"
)

// A snapshot is a tree that was kept. Its root, which somebody noted elsewhere,
// is all that it takes to check what was in it.
func Example() {
	digest := func(record string) seal.Hash { return sha256.Sum256([]byte(record)) }
	monday, _ := seal.Tree{}.Set(map[string]seal.Hash{"r1": digest("all of r1"), "r2": digest("all of r2")})
	tuesday, _ := monday.Set(map[string]seal.Hash{"r3": digest("all of r3")})

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
