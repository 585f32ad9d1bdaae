package seal

import (
	"context"
	"fmt"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Side is a record as a snapshot has it.
type Side struct {
	Seq         uint64        `json:"seq"`
	State       memory.State  `json:"state"`
	Origin      memory.Origin `json:"origin"`
	ContentHash string        `json:"content_hash,omitempty"`
	Preview     string        `json:"preview,omitempty"`
	Forgotten   bool          `json:"forgotten,omitempty"`
}

// Difference is a record in which two snapshots differ.
type Difference struct {
	Record string   `json:"record"`
	Type   string   `json:"type"` // Appear, Mutate, Relabel, Restate or Disappear
	New    []string `json:"new"`  // the fields that differ
	From   *Side    `json:"from,omitempty"`
	To     *Side    `json:"to,omitempty"`
}

// Diff lists the records in which two snapshots differ, in the order in which they
// changed. It costs what changed between them, not what they hold.
func (r *Replay) Diff(ctx context.Context, from, to store.Snapshot) ([]Difference, error) {
	out := []Difference{}
	seen := map[string]bool{}
	f := store.Filter{From: min(from.Seq, to.Seq) + 1, To: max(from.Seq, to.Seq)}
	var ids []string
	for v, err := range r.store.Versions(ctx, f) {
		if err != nil && v.Seq == 0 {
			return nil, fmt.Errorf("comparing snapshots %s and %s: %w", from.ID, to.ID, err)
		}
		if id := v.Audit.Record; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		chain, err := r.chain(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("comparing snapshots %s and %s: %w", from.ID, to.ID, err)
		}
		a, b := asOf(chain, from.Seq), asOf(chain, to.Seq)
		d := Difference{Record: id, From: side(a), To: side(b)}
		if a != nil && b != nil {
			d.New = news(a, b)
		}
		if d.Type = change(ifPresent(a), ifPresent(b)); d.Type != "" {
			out = append(out, d)
		}
	}
	return out, nil
}

func ifPresent(v *store.Version) *store.Version {
	if v != nil && present(v) {
		return v
	}
	return nil
}

// asOf is the version that stood when an entry of the journal was the last.
func asOf(chain []store.Version, seq uint64) *store.Version {
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].Seq <= seq {
			return &chain[i]
		}
	}
	return nil
}

func side(v *store.Version) *Side {
	if v == nil {
		return nil
	}
	return &Side{Seq: v.Seq, State: v.Record.State, Origin: v.Record.Origin, ContentHash: contentHash(v),
		Preview: preview(v), Forgotten: v.Forgotten}
}
