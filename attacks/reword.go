package attacks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/datasets"
)

// mostTried bounds how many earlier wordings a rewriter is shown.
const mostTried = 6

// mustHold is what another wording of a claim has to hold: its value, or all that a
// state's claim has.
func mustHold(c *datasets.Case, claim string) []string {
	if c.State == nil {
		return []string{c.Value}
	}
	return slices.DeleteFunc(kept(c), func(v string) bool { return !datasets.Holds(claim, v) })
}

// reword lets the rewriter word the claim anew and spends a query on it. An answer
// without what the claim must hold is no variant and takes no query.
func (h *hunt) reword(ctx context.Context) error {
	claim, ok := ClaimOf(h.c)
	if !ok {
		h.o.Rewrite = nil
		return nil
	}
	needs := mustHold(&h.c, claim)
	said, err := h.o.Rewrite(ctx, claim, strings.Join(needs, " and "), h.tried[max(0, len(h.tried)-mostTried):])
	if err != nil {
		return fmt.Errorf("rewriting a claim: %w", err)
	}
	h.asked++
	if said == "" || slices.ContainsFunc(needs, func(v string) bool { return !datasets.Holds(said, v) }) || h.over() {
		return nil
	}
	h.tried = append(h.tried, said)
	v, ok := Reword(h.c, RewriterPrefix+strconv.Itoa(h.asked), said)
	if !ok {
		return nil
	}
	return h.query(ctx, v, nil)
}
