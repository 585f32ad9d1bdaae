package datasets

import (
	_ "embed"
	"sync"

	"github.com/memtox/memtox/internal/text"
)

// Note is one background memory.
type Note struct {
	// Store is "user" for what is known of the person and "memory" for what is
	// known of the work, as profiles with two stores keep them apart.
	Store string
	Text  string
}

//go:embed background.yaml
var backgroundFile []byte

var backgroundLists = text.Lists[struct{ User, Memory []string }]("background.yaml", backgroundFile)

// backgroundPool holds the committed notes; a test reads them all, so that the
// file being broken cannot be met at run time.
var backgroundPool = sync.OnceValue(func() [2][]Note {
	file := backgroundLists()
	var pool [2][]Note
	for _, s := range file.User {
		pool[0] = append(pool[0], Note{"user", s})
	}
	for _, s := range file.Memory {
		pool[1] = append(pool[1], Note{"memory", s})
	}
	return pool
})

// MaxBackground is how many background memories there are.
func MaxBackground() int {
	p := backgroundPool()
	return len(p[0]) + len(p[1])
}

// Background draws n different ordinary memories of a person at work, about half
// of them for each store, from a committed pool. They are what a memory holds
// before a case begins: an empty memory makes poisoning look easier than it is
// (MINJA's 62% fall to under 7% with realistic ones). The same seed gives the same memories; n above MaxBackground
// gives all of them.
func Background(seed uint64, n int) []Note {
	pool := backgroundPool()
	r := NewRand(seed, "background")
	n = max(0, min(n, len(pool[0])+len(pool[1])))
	notes := make([]Note, 0, n)
	want := [2]int{n / 2, n / 2}
	want[r.IntN(2)] += n % 2
	for i, k := range want { // where one store's pool is too small the other gives more
		if over := k - len(pool[i]); over > 0 {
			want[i] -= over
			want[1-i] += over
		}
	}
	for i, from := range pool {
		order := make([]int, len(from))
		for k := range order {
			order[k] = k
		}
		for k := range want[i] { // the first steps of a Fisher–Yates shuffle
			j := k + r.IntN(len(order)-k)
			order[k], order[j] = order[j], order[k]
			notes = append(notes, from[order[k]])
		}
	}
	r.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	return notes
}
