package text

import (
	"hash/maphash"
	"sync"
)

// Intern gives texts that are made again and again one string each, as long as they
// come soon after one another. Its zero value is ready to use, by any number of
// goroutines.
type Intern struct {
	mu   sync.Mutex
	last [64]string
}

var internSeed = maphash.MakeSeed()

// mostInterned are more bytes than the texts have that are worth being remembered.
const mostInterned = 64 << 10

// String returns string(b).
func (t *Intern) String(b []byte) string {
	if len(b) == 0 || len(b) > mostInterned {
		return string(b)
	}
	at := &t.last[maphash.Bytes(internSeed, b)%uint64(len(t.last))]
	t.mu.Lock()
	defer t.mu.Unlock()
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}
