package datasets

import (
	_ "embed"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

//go:embed pad.yaml
var padFile []byte

// padPool holds the committed filler by medium; a test reads it all.
var padPool = text.Lists[map[memory.Medium][]Template]("pad.yaml", padFile)

// MaxPad is the most tokens that a segment is padded to: more than any window
// that a profile models.
const MaxPad = 1 << 18

// Pad returns ordinary sentences of a medium, as many as fit into the given
// number of tokens of four bytes: what makes a content long enough to reach
// compaction. They hold no value, no rule, and nothing worth remembering, and no
// sentence stands twice before all wordings have been tried. An unknown medium
// is filled like a file; more than MaxPad tokens are MaxPad. The same arguments
// give the same text.
func Pad(medium memory.Medium, seed uint64, tokens int) string {
	pool := (*padPool())[medium]
	if pool == nil {
		medium = memory.File
		pool = (*padPool())[medium]
	}
	var (
		room  = max(0, min(tokens, MaxPad)) * 4
		b     strings.Builder
		r     = NewRand(seed, "pad", string(medium))
		order = make([]int, len(pool))
		used  = make(map[uint64]bool, room/64)
		buf   []byte
		left  int // sentences until the next paragraph
	)
	for i := range order {
		order[i] = i
	}
	b.Grow(room)
	for n := 0; ; n++ {
		if n%len(pool) == 0 { // each template once, in a new order, before any comes again
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		t := pool[order[n%len(pool)]]
		var h uint64
		for range 8 {
			buf = t.Append(buf[:0], r)
			if h = text.Hash(buf); !used[h] {
				break
			}
		}
		gap := " "
		switch {
		case b.Len() == 0:
			gap = ""
		case medium == memory.Script || medium == memory.Slack:
			gap = "\n"
		case left == 0:
			gap = "\n\n"
		}
		if left == 0 {
			left = 3 + r.IntN(4)
		}
		left--
		if b.Len()+len(gap)+len(buf) > room {
			return b.String()
		}
		used[h] = true
		b.WriteString(gap)
		b.Write(buf)
	}
}
