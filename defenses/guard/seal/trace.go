package seal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Change is one version of a record and what was new in it.
type Change struct {
	Seq         uint64       `json:"seq"`
	At          time.Time    `json:"at"`
	Cause       memory.Cause `json:"cause"`
	Route       memory.Route `json:"route,omitempty"`
	By          string       `json:"by,omitempty"`
	Why         string       `json:"why,omitempty"`
	State       memory.State `json:"state"`
	ContentHash string       `json:"content_hash,omitempty"`
	Preview     string       `json:"preview,omitempty"`
	New         []string     `json:"new"` // what differs from the version before: "content", "state", "origin" …
	Forgotten   bool         `json:"forgotten,omitempty"`
	Damaged     bool         `json:"damaged,omitempty"` // it is not what was committed
}

// How one record stands to another.
const (
	Derives    = "derives from" // its lineage names the other
	Supersedes = "supersedes"   // it took the other's place
)

// Node is a record or a segment that a trace reached.
type Node struct {
	Record  string `json:"record,omitempty"`
	Segment int    `json:"segment,omitempty"` // of the session that wrote the record it was reached from
	Depth   int    `json:"depth"`             // steps from the traced record
	// Relation is how the deriving one of the two stands to the other, Via the
	// record from which this one was reached.
	Relation  string        `json:"relation"`
	Via       string        `json:"via"`
	Origin    memory.Origin `json:"origin"`
	State     memory.State  `json:"state"`
	Preview   string        `json:"preview,omitempty"`
	Missing   bool          `json:"missing,omitempty"` // named, and not in the store
	Forgotten bool          `json:"forgotten,omitempty"`
	Damaged   bool          `json:"damaged,omitempty"` // it is not what was committed
}

// Trace is everything that is known of one record.
type Trace struct {
	Record     memory.Record `json:"record"`
	Changes    []Change      `json:"changes"`
	Appearance Appearance    `json:"appearance"`
	Back       []Node        `json:"derives_from"` // by depth
	Forward    []Node        `json:"derived"`      // by depth
	// More says that a limit cut Back or Forward.
	More bool `json:"more"`
}

// DefaultReach is how many nodes a trace follows each way.
const DefaultReach = 1000

// TraceRecord follows a record's lineage both ways, over every version that any
// record had: back to the segments that it came from, forward to all that derives
// from it. At most reach nodes are followed each way; 0 is DefaultReach. False
// says that there is no such record.
func (r *Replay) TraceRecord(ctx context.Context, id string, reach int) (Trace, bool, error) {
	if reach <= 0 {
		reach = DefaultReach
	}
	chain, err := r.chain(ctx, id)
	if err != nil || len(chain) == 0 {
		return Trace{}, false, err
	}
	t := Trace{Record: chain[len(chain)-1].Record}
	var before *store.Version
	for i := range chain {
		v := &chain[i]
		t.Changes = append(t.Changes, Change{Seq: v.Seq, At: v.At, Cause: v.Cause, Route: v.Route, By: v.By, Why: v.Why,
			State:       v.Record.State,
			ContentHash: contentHash(v), Preview: preview(v), New: news(before, v), Forgotten: v.Forgotten,
			Damaged: !v.Intact()})
		before = v
	}
	t.Appearance, _ = r.appearance(chain)
	moreBack, moreForward := false, false
	if t.Back, moreBack, err = r.walk(ctx, id, reach, r.sources); err != nil {
		return Trace{}, false, fmt.Errorf("tracing record %q back: %w", id, err)
	}
	if t.Forward, moreForward, err = r.walk(ctx, id, reach, r.derived); err != nil {
		return Trace{}, false, fmt.Errorf("tracing record %q forward: %w", id, err)
	}
	t.More = moreBack || moreForward
	return t, true, nil
}

// news names what differs between two versions.
func news(before, v *store.Version) []string {
	if before == nil {
		return []string{"record"}
	}
	a, b := &before.Record, &v.Record
	out := []string{}
	for _, f := range [...]struct {
		name string
		same bool
	}{
		{"content", a.Text == b.Text},
		{"state", a.State == b.State},
		{"origin", a.Origin == b.Origin},
		{"lineage", slices.Equal(a.Lineage, b.Lineage)},
		{"principal", a.Principal == b.Principal},
		{"asked", a.Asked == b.Asked},
		{"scope", a.Scope == b.Scope},
		{"signature", slices.Equal(a.Signature, b.Signature) && a.SignedBy == b.SignedBy},
		{"parent", a.Parent == b.Parent},
		{"fact time", a.ValidFrom.Equal(b.ValidFrom) && a.ValidTo.Equal(b.ValidTo)},
		{"intents", slices.Equal(a.Intents, b.Intents)},
		{"trust", a.Trust == b.Trust || a.Trust != nil && b.Trust != nil && *a.Trust == *b.Trust},
	} {
		if !f.same {
			out = append(out, f.name)
		}
	}
	return out
}

// walk goes breadth first from a record; next gives a record's neighbours.
func (r *Replay) walk(ctx context.Context, id string, reach int,
	next func(context.Context, string) ([]Node, error)) (out []Node, more bool, err error) {
	out = []Node{}
	seen := map[string]bool{id: true}
	for queue := []Node{{Record: id}}; len(queue) > 0; queue = queue[1:] {
		via := queue[0]
		nodes, err := next(ctx, via.Record)
		if err != nil {
			return nil, false, err
		}
		for _, n := range nodes {
			if n.Record != "" && seen[n.Record] {
				continue
			}
			if len(out) == reach {
				return out, true, nil
			}
			n.Depth, n.Via = via.Depth+1, via.Record
			out = append(out, n)
			if n.Record != "" {
				seen[n.Record] = true
				queue = append(queue, n)
			}
		}
	}
	return out, false, nil
}

// sources are what a record derives from and what it superseded, over all its
// versions.
func (r *Replay) sources(ctx context.Context, id string) ([]Node, error) {
	chain, err := r.chain(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []Node
	type link struct {
		segment int
		record  string
	}
	seen := map[link]bool{}
	for i := range chain {
		rec := &chain[i].Record
		var nodes []Node
		for _, l := range rec.Lineage {
			nodes = append(nodes, Node{Record: l.Record, Segment: l.Segment, Relation: Derives, Origin: l.Origin})
		}
		if rec.Parent != "" {
			nodes = append(nodes, Node{Record: rec.Parent, Relation: Supersedes})
		}
		for _, n := range nodes {
			k := link{n.Segment, n.Record}
			if seen[k] {
				continue
			}
			seen[k] = true
			if n.Record != "" {
				if err := r.describe(ctx, &n); err != nil {
					return nil, err
				}
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// describe fills in what the store knows of a node's record now.
func (r *Replay) describe(ctx context.Context, n *Node) error {
	v, intact, err := r.current(ctx, n.Record)
	if n.Missing = v.Seq == 0; n.Missing || err != nil {
		return err
	}
	n.Origin, n.State, n.Preview, n.Forgotten, n.Damaged = v.Record.Origin, v.Record.State, preview(&v), v.Forgotten, !intact
	return nil
}

// current is a record as it stands, even where it was changed from outside, and
// whether it is what was committed. One that is not there has no Seq.
func (r *Replay) current(ctx context.Context, id string) (v store.Version, intact bool, err error) {
	for have, err := range r.store.Versions(ctx, store.Filter{ID: id, Current: true}) {
		if err != nil && have.Seq == 0 {
			return v, false, fmt.Errorf("reading record %q: %w", id, err)
		}
		v, intact = have, err == nil && have.Intact()
	}
	return v, intact, nil
}

// derived are the records that derive from a record or superseded it, over all
// their versions, in the order of the log.
func (r *Replay) derived(ctx context.Context, id string) ([]Node, error) {
	var out []Node
	at := map[string]int{}
	for v, err := range r.store.Versions(ctx, store.Filter{Cites: id}) {
		if err != nil && !torn(&v) {
			return nil, fmt.Errorf("looking for what derives from record %q: %w", id, err)
		}
		relation := Supersedes
		if slices.ContainsFunc(v.Record.Lineage, func(l memory.Link) bool { return l.Record == id }) {
			relation = Derives
		}
		i, ok := at[v.Record.ID]
		if ok {
			if relation == Derives {
				out[i].Relation = Derives
			}
			continue
		}
		n := Node{Record: v.Record.ID, Relation: relation}
		if err := r.describe(ctx, &n); err != nil {
			return nil, err
		}
		at[v.Record.ID] = len(out)
		out = append(out, n)
	}
	return out, nil
}
