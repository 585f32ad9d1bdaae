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

type attr struct {
	name   Attr
	has    func(*store.Version, string) bool
	filter func(string) store.Filter // where a store can look it up by itself
}

// attrs says whether a version has a value of an attribute.
var attrs = [...]attr{
	{"source", func(v *store.Version, s string) bool { return v.Record.From(s) },
		func(s string) store.Filter { return store.Filter{AnySource: s} }},
	{"class", func(v *store.Version, s string) bool { return v.Record.Origin.Class.String() == s }, nil},
	{"medium", func(v *store.Version, s string) bool { return string(v.Record.Origin.Medium) == s }, nil},
	{"principal", func(v *store.Version, s string) bool { return v.Record.Principal == s },
		func(s string) store.Filter { return store.Filter{Principal: s} }},
	{"store", func(v *store.Version, s string) bool { return v.Record.Store == s },
		func(s string) store.Filter { return store.Filter{Store: s} }},
	{"key", func(v *store.Version, s string) bool { return v.Record.Key == s },
		func(s string) store.Filter { return store.Filter{Key: s} }},
	{"state", func(v *store.Version, s string) bool { return v.Record.State.String() == s }, nil},
	{"scope", func(v *store.Version, s string) bool { return v.Record.Scope.String() == s }, nil},
	{"signed-by", func(v *store.Version, s string) bool { return v.Record.SignedBy == s }, nil},
	{"route", func(v *store.Version, s string) bool { return v.Route.String() == s }, nil},
	{"cause", func(v *store.Version, s string) bool { return v.Cause.String() == s }, nil},
	{"by", func(v *store.Version, s string) bool { return v.By == s }, nil},
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

// compile returns the condition, and what a store can look up of it by itself.
func (m Match) compile() (holds func(*store.Version) bool, f *store.Filter, err error) {
	if m == (Match{}) {
		return func(*store.Version) bool { return true }, nil, nil
	}
	for _, a := range attrs {
		if a.name != m.Attr {
			continue
		}
		if a.filter != nil {
			own := a.filter(m.Value)
			f = &own
		}
		return func(v *store.Version) bool { return m.Value != "" && a.has(v, m.Value) }, f, nil
	}
	return nil, nil, fmt.Errorf("unknown attribute %q: one of %s", m.Attr, strings.Join(Attrs(), ", "))
}

// Moment is a point of the past: a snapshot, or the change that made a version.
type Moment struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Snapshot string    `json:"snapshot,omitempty"` // its id
}

// DefaultPreview is how many characters of a content stand in results.
const DefaultPreview = 80

// Replay reads a store's past. Where it is over snapshots, it sees what they saw:
// a change that the next snapshot no longer shows did not happen. Otherwise each
// version is a moment of its own.
type Replay struct {
	// Preview is how many characters of a content stand in results; 0 is
	// DefaultPreview.
	Preview int

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

// sawFrom and sawTo bound the snapshots that show a version: from, included, to
// excluded.
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

func (r *Replay) preview(v *store.Version) string { return clip(v.Record.Text, r.previewSize()) }

func (r *Replay) previewSize() int { return cmp.Or(r.Preview, DefaultPreview) }

func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
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

// visit shows every version of every record of which some version may match,
// each record's oldest first, with the entry of the record's first version and
// whether this one matches.
func (r *Replay) visit(ctx context.Context, m Match,
	yield func(v *store.Version, first uint64, matches bool) error) error {
	holds, filter, err := m.compile()
	if err != nil {
		return err
	}
	if filter == nil {
		first := map[string]uint64{}
		for v, err := range r.store.Versions(ctx, store.Filter{}) {
			if err != nil && !torn(&v) {
				return fmt.Errorf("reading versions: %w", err)
			}
			if _, ok := first[v.Record.ID]; !ok {
				first[v.Record.ID] = v.Seq
			}
			if err := yield(&v, first[v.Record.ID], holds(&v)); err != nil {
				return err
			}
		}
		return nil
	}
	seen := map[string]bool{}
	var ids []string
	for v, err := range r.store.Versions(ctx, *filter) {
		if err != nil && !torn(&v) {
			return fmt.Errorf("reading versions: %w", err)
		}
		if id := v.Record.ID; !seen[id] && holds(&v) {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		chain, err := r.chain(ctx, id)
		if err != nil {
			return err
		}
		for i := range chain {
			if err := yield(&chain[i], chain[0].Seq, holds(&chain[i])); err != nil {
				return err
			}
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
	byID := map[string]*Member{}
	var out []*Member
	err := r.visit(ctx, m, func(v *store.Version, first uint64, matches bool) error {
		if !matches || !present(v) {
			return nil
		}
		at, ok := r.moment(v)
		if !ok {
			return nil
		}
		c := byID[v.Record.ID]
		if c == nil {
			c = &Member{Record: v.Record.ID, Value: m.Value, First: at, order: first}
			byID[v.Record.ID] = c
			out = append(out, c)
		}
		c.ContentHash, c.Preview, c.State = contentHash(v), r.preview(v), v.Record.State
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("forming the cohort of %s %q: %w", m.Attr, m.Value, err)
	}
	slices.SortFunc(out, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.First.Seq, b.First.Seq), cmp.Compare(a.order, b.order))
	})
	members := make([]Member, len(out))
	for i, c := range out {
		members[i] = *c
	}
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
}

// Search finds a text in everything that was ever stored: once a version, or,
// over snapshots, once a snapshot that shows it. Letters match whatever their
// case unless exact. At most limit hits are returned; 0 is no limit. More says
// that there are others.
func (r *Replay) Search(ctx context.Context, part string, exact bool, limit int) (hits []Hit, more bool, err error) {
	filter := store.Filter{}
	found := func(s string) bool { return strings.Contains(strings.ToLower(s), part) }
	if exact {
		if !r.over { // else the first version of each record counts
			filter.Contains = part
		}
		found = func(s string) bool { return strings.Contains(s, part) }
	} else {
		part = strings.ToLower(part)
	}
	hits = []Hit{}
	type ordered struct {
		Hit
		first uint64
	}
	var list []ordered
	first := map[string]uint64{}
	for v, err := range r.store.Versions(ctx, filter) {
		if err != nil && !torn(&v) {
			return nil, false, fmt.Errorf("searching every version: %w", err)
		}
		if _, ok := first[v.Record.ID]; !ok {
			first[v.Record.ID] = v.Seq
		}
		if v.Forgotten || !present(&v) || !found(v.Record.Text) {
			continue
		}
		h := Hit{Record: v.Record.ID, Moment: Moment{Seq: v.Seq, At: v.At}, ContentHash: contentHash(&v),
			Preview: r.preview(&v), State: v.Record.State, Until: v.Until}
		from, to := r.saw(&v)
		if from < to {
			h.From, h.To = r.snapshots[from].ID, r.snapshots[to-1].ID
		}
		if !r.over {
			list = append(list, ordered{h, v.Seq})
		} else {
			for i := from; i < to; i++ {
				h.Moment = snapshotMoment(&r.snapshots[i])
				list = append(list, ordered{h, first[v.Record.ID]})
			}
		}
		// Over versions the hits come in order; over snapshots all are needed
		// before they can be cut.
		if limit > 0 && !r.over && len(list) > limit {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq),
			cmp.Compare(a.first, b.first))
	})
	for _, h := range list {
		if limit > 0 && len(hits) == limit {
			return hits, true, nil
		}
		hits = append(hits, h.Hit)
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
	type state struct {
		version store.Version
		there   bool
	}
	last := map[string]*state{}
	err = r.visit(ctx, m, func(v *store.Version, first uint64, matches bool) error {
		at, ok := r.moment(v)
		if !ok {
			return nil
		}
		was := last[v.Record.ID]
		if was == nil {
			was = &state{}
			last[v.Record.ID] = was
		}
		is := matches && present(v)
		e := Event{Moment: at, Record: v.Record.ID, ContentHash: contentHash(v), Preview: r.preview(v), State: v.Record.State,
			Cause: v.Cause, By: v.By, Why: v.Why, order: first}
		switch {
		case is && !was.there:
			e.Type = Appear
		case !is && was.there:
			e.Type, e.ContentHash, e.Preview = Disappear, "", ""
		case is && contentHash(&was.version) != e.ContentHash:
			e.Type = Mutate
		case is && was.version.Record.State != v.Record.State:
			e.Type = Restate
		case is && relabelled(&was.version.Record, &v.Record):
			e.Type = Relabel
		}
		was.version, was.there = *v, is
		if e.Type != "" {
			events = append(events, e)
		}
		return nil
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

func relabelled(a, b *memory.Record) bool {
	return a.Origin != b.Origin || a.Principal != b.Principal || a.Scope != b.Scope || a.Asked != b.Asked ||
		a.SignedBy != b.SignedBy || !slices.Equal(a.Signature, b.Signature) || !slices.Equal(a.Lineage, b.Lineage) ||
		!slices.Equal(a.Intents, b.Intents)
}
