package seal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Attr names an attribute of records by which a cohort or a timeline is formed.
type Attr string

// attrs are the attributes, with what a version has as a value of each; it has several
// sources.
var attrs = [...]struct {
	name Attr
	of   func(*store.Version) string
}{
	{"source", nil},
	{"class", func(v *store.Version) string { return v.Record.Origin.Class.String() }},
	{"medium", func(v *store.Version) string { return string(v.Record.Origin.Medium) }},
	{"principal", func(v *store.Version) string { return v.Record.Principal }},
	{"store", func(v *store.Version) string { return v.Record.Store }},
	{"key", func(v *store.Version) string { return v.Record.Key }},
	{"state", func(v *store.Version) string { return v.Record.State.String() }},
	{"scope", func(v *store.Version) string { return v.Record.Scope.String() }},
	{"signed-by", func(v *store.Version) string { return v.Record.SignedBy }},
	{"route", func(v *store.Version) string { return v.Route.String() }},
	{"cause", func(v *store.Version) string { return v.Cause.String() }},
	{"by", func(v *store.Version) string { return v.By }},
}

// Attrs lists the attributes.
func Attrs() []string {
	out := make([]string, len(attrs))
	for i := range attrs {
		out[i] = string(attrs[i].name)
	}
	return out
}

// Match is a condition on versions: an attribute has a value. The zero Match
// holds for every version; an empty value for none.
type Match struct {
	Attr  Attr
	Value string
}

// compile returns the condition, and narrows a filter to what a store can look up of it
// by itself.
func (m Match) compile(f *store.Filter) (holds func(*store.Version) bool, err error) {
	if m == (Match{}) {
		return func(*store.Version) bool { return true }, nil
	}
	at := slices.Index(Attrs(), string(m.Attr))
	if at < 0 {
		return nil, fmt.Errorf("unknown attribute %q: one of %s", m.Attr, strings.Join(Attrs(), ", "))
	}
	lookups := map[Attr]*string{"source": &f.AnySource, "principal": &f.Principal, "store": &f.Store, "key": &f.Key}
	if field, ok := lookups[m.Attr]; ok {
		*field, f.Whole = m.Value, true
	}
	return func(v *store.Version) bool {
		return m.Value != "" && (at == 0 && v.Record.From(m.Value) || at > 0 && attrs[at].of(v) == m.Value)
	}, nil
}

// Moment is a point of the past: a snapshot, or the change that made a version.
type Moment struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Snapshot string    `json:"snapshot,omitempty"` // its id
}

// previewSize is how many characters of a content stand in results.
const previewSize = 80

// Replay reads a store's past. Where it is over snapshots, it sees what they saw:
// a change that the next snapshot no longer shows did not happen. Otherwise each
// version is a moment of its own.
type Replay struct {
	store     *store.History
	snapshots []store.Snapshot
	over      bool
}

// NewReplay opens a store's past; overSnapshots says whether it is seen through
// the snapshots alone.
func NewReplay(ctx context.Context, st *store.History, overSnapshots bool) (*Replay, error) {
	snaps, err := snapshots(ctx, st)
	if err != nil {
		return nil, err
	}
	return &Replay{store: st, snapshots: snaps, over: overSnapshots}, nil
}

// Snapshots lists the snapshots, oldest first.
func (r *Replay) Snapshots() []store.Snapshot { return r.snapshots }

// after is the first snapshot that shows what was committed as seq.
func (r *Replay) after(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r.snapshots, seq,
		func(s store.Snapshot, seq uint64) int { return cmp.Compare(s.Seq, seq) })
	return i
}

// saw bounds the snapshots that show a version: from, included, to excluded.
func (r *Replay) saw(v *store.Version) (from, to int) {
	from, to = r.after(v.Seq), len(r.snapshots)
	if v.UntilSeq != 0 {
		to = r.after(v.UntilSeq)
	}
	return from, to
}

func snapshotMoment(s *store.Snapshot) Moment {
	return Moment{Seq: s.Seq, At: s.At, Snapshot: s.ID}
}

// moment is when a version was first seen, and false if it never was.
func (r *Replay) moment(v *store.Version) (Moment, bool) {
	if !r.over {
		return Moment{Seq: v.Seq, At: v.At}, true
	}
	from, to := r.saw(v)
	if from >= to {
		return Moment{}, false
	}
	return snapshotMoment(&r.snapshots[from]), true
}

func present(v *store.Version) bool { return v.Record.State != memory.Retired }

// contentHash is SHA-256 of a version's text in hexadecimal; empty where the text
// was erased.
func contentHash(v *store.Version) string {
	if v.Forgotten {
		return ""
	}
	h := sha256.Sum256([]byte(v.Record.Text))
	return hex.EncodeToString(h[:])
}

// preview is the beginning of a version's text.
func preview(v *store.Version) string {
	n := 0
	for i := range v.Record.Text {
		if n == previewSize {
			return v.Record.Text[:i]
		}
		n++
	}
	return v.Record.Text
}

func (r *Replay) chain(ctx context.Context, id string) ([]store.Version, error) {
	var out []store.Version
	for v, err := range r.store.Versions(ctx, store.Filter{ID: id}) {
		if err != nil && !torn(&v) {
			return nil, fmt.Errorf("reading the versions of record %q: %w", id, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// torn reports whether a version that came with an error is one that the store
// shows and cannot read. It then counts as an empty one that is not intact: a
// damaged record must not hide all others. [Ledger.Verify] names it.
func torn(v *store.Version) bool {
	v.Record.ID = v.Audit.Record
	return v.Seq > 0
}

// Appearance says when a record was seen.
type Appearance struct {
	Record    string  `json:"record"`
	First     Moment  `json:"first"`
	Last      Moment  `json:"last"`
	Snapshots int     `json:"snapshots"` // how many show it
	Lifespan  float64 `json:"lifespan_seconds"`
}

// appearance is false for a record that was never seen. Over versions the last
// moment is when it was retired, or that of its last version.
func (r *Replay) appearance(chain []store.Version) (Appearance, bool) {
	var a Appearance
	seen := false
	for i := range chain {
		v := &chain[i]
		from, to := r.saw(v)
		if present(v) {
			a.Snapshots += max(0, to-from)
		}
		first, ok := r.moment(v)
		if !ok || !present(v) {
			if ok && seen && !r.over {
				a.Last = first
			}
			continue
		}
		if !seen {
			a.Record, a.First, seen = v.Record.ID, first, true
		}
		a.Last = first
		if r.over {
			a.Last = snapshotMoment(&r.snapshots[to-1])
		}
	}
	a.Lifespan = a.Last.At.Sub(a.First.At).Seconds()
	return a, seen
}

// visit shows the versions that a condition or else a filter names, and those of the
// same records that the condition does not, oldest first, with the entry of the first of
// the record and whether the condition holds, until yield returns false.
func (r *Replay) visit(ctx context.Context, m Match, f store.Filter,
	yield func(v *store.Version, first uint64, holds bool) bool) error {
	holds, err := m.compile(&f)
	if err != nil {
		return err
	}
	first := map[string]uint64{}
	for v, err := range r.store.Versions(ctx, f) {
		if err != nil && !torn(&v) {
			return fmt.Errorf("reading versions: %w", err)
		}
		if _, ok := first[v.Record.ID]; !ok {
			first[v.Record.ID] = v.Seq
		}
		if !yield(&v, first[v.Record.ID], holds(&v)) {
			return nil
		}
	}
	return nil
}

// Member is a record of a cohort.
type Member struct {
	Record      string       `json:"record"`
	Value       string       `json:"value"` // of the attribute
	First       Moment       `json:"first"` // first seen with that value
	ContentHash string       `json:"content_hash"`
	Preview     string       `json:"preview"`
	State       memory.State `json:"state"` // in the last version with that value

	order uint64
}

// Cohort lists the records that ever had a value of an attribute, in the order in
// which they were first seen with it: what else did this source write?
func (r *Replay) Cohort(ctx context.Context, m Match) ([]Member, error) {
	members := []Member{}
	index := map[string]int{}
	err := r.visit(ctx, m, store.Filter{}, func(v *store.Version, first uint64, holds bool) bool {
		at, ok := r.moment(v)
		if !ok || !holds || !present(v) {
			return true
		}
		i, known := index[v.Record.ID]
		if !known {
			i = len(members)
			index[v.Record.ID] = i
			members = append(members, Member{Record: v.Record.ID, Value: m.Value, First: at, order: first})
		}
		c := &members[i]
		c.ContentHash, c.Preview, c.State = contentHash(v), preview(v), v.Record.State
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("forming the cohort of %s %q: %w", m.Attr, m.Value, err)
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.First.Seq, b.First.Seq), cmp.Compare(a.order, b.order))
	})
	return members, nil
}

// Hit is a content in which a text was found.
type Hit struct {
	Record string `json:"record"`
	Moment
	ContentHash string       `json:"content_hash"`
	Preview     string       `json:"preview"`
	State       memory.State `json:"state"`
	// Until is when the version was replaced; zero while it is current.
	Until time.Time `json:"until,omitzero"`
	// Snapshots that show it: the first and the last.
	From string `json:"from_snapshot,omitempty"`
	To   string `json:"to_snapshot,omitempty"`

	order uint64
}

// Search finds a text in everything that was ever stored: once a version, or,
// over snapshots, once a snapshot that shows it. Letters match whatever their
// case unless exact. At most limit hits are returned; 0 is no limit. More says
// that there are others.
func (r *Replay) Search(ctx context.Context, part string, exact bool, limit int) (hits []Hit, more bool, err error) {
	var filter store.Filter
	plain := strings.ToLower
	if exact {
		plain = strings.Clone
		if !r.over { // else the first version of each record counts
			filter.Contains = part
		}
	}
	part = plain(part)
	hits = []Hit{}
	err = r.visit(ctx, Match{}, filter, func(v *store.Version, first uint64, _ bool) bool {
		if v.Forgotten || !present(v) || !strings.Contains(plain(v.Record.Text), part) {
			return true
		}
		h := Hit{Record: v.Record.ID, Moment: Moment{Seq: v.Seq, At: v.At}, ContentHash: contentHash(v),
			Preview: preview(v), State: v.Record.State, Until: v.Until, order: first}
		from, to := r.saw(v)
		if from < to {
			h.From, h.To = r.snapshots[from].ID, r.snapshots[to-1].ID
		}
		if !r.over {
			hits = append(hits, h)
			return limit == 0 || len(hits) <= limit
		}
		// Over snapshots hits do not come in order: all are needed before they are cut.
		for i := from; i < to; i++ {
			h.Moment = snapshotMoment(&r.snapshots[i])
			hits = append(hits, h)
		}
		return true
	})
	if err != nil {
		return nil, false, fmt.Errorf("searching: %w", err)
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.order, b.order))
	})
	if limit > 0 && len(hits) > limit {
		return hits[:limit], true, nil
	}
	return hits, false, nil
}

// What happens in a timeline.
const (
	Appear    = "appear"
	Mutate    = "mutate"    // another content
	Relabel   = "relabel"   // the same content under another origin, lineage, principal, scope or signature
	Restate   = "restate"   // another state
	Disappear = "disappear" // retired, or no longer of the cohort
)

// Event is one thing that happened.
type Event struct {
	Moment
	Record      string       `json:"record"`
	Type        string       `json:"type"`
	ContentHash string       `json:"content_hash,omitempty"`
	Preview     string       `json:"preview,omitempty"`
	State       memory.State `json:"state"`
	Cause       memory.Cause `json:"cause"`
	By          string       `json:"by,omitempty"`
	Why         string       `json:"why,omitempty"`

	order uint64
}

// Timeline lists what happened to the records that match, oldest first: within a
// moment what appeared and changed, in the order of first commits, then what
// disappeared, by id. At most the newest limit events are returned; 0 is no
// limit. More says that there are older ones.
func (r *Replay) Timeline(ctx context.Context, m Match, limit int) (events []Event, more bool, err error) {
	last := map[string]*store.Version{} // those that matched, and were present
	err = r.visit(ctx, m, store.Filter{}, func(v *store.Version, first uint64, holds bool) bool {
		at, ok := r.moment(v)
		if !ok {
			return true
		}
		is := v
		if !holds || !present(v) {
			is = nil
		}
		e := Event{Moment: at, Record: v.Record.ID, Type: change(last[v.Record.ID], is), ContentHash: contentHash(v),
			Preview: preview(v), State: v.Record.State, Cause: v.Cause, By: v.By, Why: v.Why, order: first}
		if last[v.Record.ID] = is; e.Type == Disappear {
			e.ContentHash, e.Preview = "", ""
		}
		if e.Type != "" {
			events = append(events, e)
		}
		return true
	})
	if err != nil {
		return nil, false, fmt.Errorf("drawing a timeline: %w", err)
	}
	gone := func(e *Event) int {
		if e.Type == Disappear {
			return 1
		}
		return 0
	}
	slices.SortFunc(events, func(a, b Event) int {
		c := cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(gone(&a), gone(&b)))
		if c == 0 && a.Type == Disappear {
			c = cmp.Compare(a.Record, b.Record)
		}
		return cmp.Or(c, cmp.Compare(a.order, b.order))
	})
	if limit > 0 && len(events) > limit {
		return events[len(events)-limit:], true, nil
	}
	return events, false, nil
}

// change is what happened between two versions of a record, nil where it was not
// there; "" is nothing.
func change(was, is *store.Version) string {
	switch {
	case was == nil && is == nil:
		return ""
	case was == nil:
		return Appear
	case is == nil:
		return Disappear
	case contentHash(was) != contentHash(is):
		return Mutate
	case was.Record.State != is.Record.State:
		return Restate
	case len(news(was, is)) > 0:
		return Relabel
	}
	return ""
}
