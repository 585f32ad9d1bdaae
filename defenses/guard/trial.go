package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
)

// trial is what the guard remembers of a trial, or of a deployment since it
// started. It follows Committed alone: a verdict changes nothing, for a later
// gate of a chain may refuse what this one allowed.
//
// It is bounded, whatever is written, and costs nothing until the first commit.
type trial struct {
	policy *Policy
	writes times // of the last moments
	young  map[slot]*history
	old    map[slot]*history
	recent []recent // a ring once it is full
	oldest int
}

// slot is a key of a store.
type slot struct{ store, key string }

// history is what is known of one key.
type history struct {
	sizes   [8]int32 // of its last contents, in bytes; a ring
	seen    int      // contents so far
	changes times
}

// maxSlots bounds the keys that a generation remembers. The keys that were not
// written while the young generation filled up are forgotten.
const maxSlots = 4096

// maxKeyBytes bounds the keys that are remembered: what is longer is no slot.
const maxKeyBytes = 512

func (t *trial) history(s slot) *history {
	if h := t.young[s]; h != nil {
		return h
	}
	return t.old[s]
}

// keep returns the history of a slot to write to.
func (t *trial) keep(s slot) *history {
	if h := t.young[s]; h != nil {
		return h
	}
	h := t.old[s]
	if h == nil {
		h = new(history)
	}
	if t.young == nil || len(t.young) >= maxSlots {
		t.old, t.young = t.young, make(map[slot]*history, 8)
	}
	t.young[s] = h
	return h
}

// committed is told of every change.
func (t *trial) committed(c memory.Change, now time.Time) {
	seed := c.Route == memory.RouteSeed // was there before: no burst, no churn
	if !seed {
		t.writes.add(now, t.policy.Rate)
	}
	if !seed && c.Op != memory.Remove && (t.policy.Cooldown.Window > 0 || t.policy.SelfReinforcement.Writes > 0) {
		t.remember(&c.Record, now)
	}
	if len(c.Record.Key) > maxKeyBytes || c.Op == memory.Add && unnamed(&c.Record) {
		return // it is no slot, or has the name that a new entry gets
	}
	h := t.keep(slot{c.Record.Store, c.Record.Key})
	if !seed {
		h.changes.add(now, t.policy.RapidChange)
	}
	if c.Op != memory.Remove && c.Record.State.Visible() {
		h.sizes[h.seen%len(h.sizes)] = int32(min(len(c.Record.Text), 1<<30))
		h.seen++
	}
}

// unnamed reports whether a record has the key that an entry without one gets.
func unnamed(r *memory.Record) bool {
	rest, ok := strings.CutPrefix(r.Key, r.Store)
	return ok && len(rest) == len(r.ID)+1 && rest[0] == '/' && rest[1:] == r.ID
}

// median is the median size of the last contents, 0 for none.
func (h *history) median() int {
	n := min(h.seen, len(h.sizes))
	if n == 0 {
		return 0
	}
	sorted := h.sizes
	slices.Sort(sorted[:n])
	return int(sorted[n/2])
}

// times are the moments of the last events, no more than a rate needs.
type times struct{ at []time.Time }

func (t *times) add(now time.Time, r Rate) {
	if r.Writes == 0 || r.Window == 0 {
		return
	}
	keep := 0
	for keep < len(t.at) && (now.Sub(t.at[keep]) >= r.Window || len(t.at)-keep >= r.Writes) {
		keep++
	}
	if keep > 0 {
		t.at = t.at[:copy(t.at, t.at[keep:])]
	}
	t.at = append(t.at, now)
}

// full reports whether one event more would be too many.
func (t *times) full(now time.Time, r Rate) bool {
	if r.Writes == 0 || r.Window == 0 || len(t.at) < r.Writes {
		return false
	}
	return now.Sub(t.at[len(t.at)-r.Writes]) < r.Window
}
