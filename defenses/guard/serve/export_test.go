package serve

import (
	"context"
	"strconv"

	"github.com/memtox/memtox/agents/memory"
)

// PerPlace makes a question count as one more for each so many bytes, until what it
// returns is called.
func PerPlace(bytes int) (restore func()) {
	was := perPlace
	perPlace = bytes
	return func() { perPlace = was }
}

// Known is how many entries that waited are known after so many.
func Known(n int) int {
	c := &confirmed{known: map[[32]byte]string{}}
	for i := range n {
		c.remember(&memory.Record{ID: "r", Text: strconv.Itoa(i)})
	}
	return len(c.known)
}

// Bound makes the client forget its context when that has more contents.
func (c *Client) Bound(contents int) { c.most = contents }

// BoundLength makes the client forget its context when that has more bytes.
func (c *Client) BoundLength(bytes int) { c.mostLen = bytes }

// Holds is how many bytes the client's conversation remembers.
func (c *Client) Holds() (bytes int) {
	_ = c.session.Do(context.Background(), func(m *memory.Memory) error {
		_, bytes, _ = m.Context()
		return nil
	})
	return bytes
}
