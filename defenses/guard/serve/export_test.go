package serve

import (
	"context"

	"github.com/memtox/memtox/agents/memory"
)

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
