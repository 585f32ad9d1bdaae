package attacks

import (
	"context"
	"fmt"
	"strconv"

	"github.com/memtox/memtox/datasets"
)

// mostTried bounds how many earlier wordings a rewriter is shown.
const mostTried = 6

// reword lets the rewriter word the claim anew and spends a query on it. An answer
// without the value is no variant and takes no query.
func (h *hunt) reword(ctx context.Context) error {
	claim, ok := ClaimOf(h.c)
	if !ok {
		h.o.Rewrite = nil
		return nil
	}
	said, err := h.o.Rewrite(ctx, claim, h.c.Value, h.tried[max(0, len(h.tried)-mostTried):])
	if err != nil {
		return fmt.Errorf("rewriting a claim: %w", err)
	}
	h.asked++
	if !datasets.Holds(said, h.c.Value) || h.over() {
		return nil
	}
	h.tried = append(h.tried, said)
	v, ok := Reword(h.c, RewriterPrefix+strconv.Itoa(h.asked), said)
	if !ok {
		return nil
	}
	return h.query(ctx, v, nil)
}
