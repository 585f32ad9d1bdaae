package seal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/text"
)

// Suspects says what an incident is about.
type Suspects struct {
	IDs []string // records that are known to be bad
	// Since adds everything external that came into the store at this time or
	// later; zero adds nothing.
	Since time.Time
	// Cohort adds every record that one of the bad ones' sources ever wrote.
	Cohort bool
	// Protected are globs of keys that are never withheld.
	Protected []string
	Why       string // for the log; never the content
	// DryRun says what would be done and does nothing.
	DryRun bool
}

// Incident is the report of a response, in its four steps.
type Incident struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Why    string    `json:"why,omitempty"`
	DryRun bool      `json:"dry_run,omitempty"`

	Pinpoint   Pinpoint     `json:"pinpoint"`
	Quarantine Act          `json:"quarantine"` // the bad records
	Isolate    Act          `json:"isolate"`    // what derives from them
	Rederive   []Rederivate `json:"rederive"`
}

// Pinpoint is the first step: when it began, with what, from where.
type Pinpoint struct {
	Began Moment    `json:"began"` // when the first of the bad records was committed
	Bad   []Suspect `json:"bad"`
	// Sources are where the bad records come from.
	Sources []Source `json:"sources"`
	// Safe is the last entry of the journal before it began, Records how many
	// records sessions could see then: what reads can be held to meanwhile.
	Safe    Moment `json:"safe"`
	Records int    `json:"safe_records"`
	// Snapshot is the last one before it began, or "": what Rollback takes.
	Snapshot string `json:"safe_snapshot,omitempty"`
}

// Suspect is a bad record.
type Suspect struct {
	Record      string        `json:"record"`
	First       Moment        `json:"first"`
	Cause       memory.Cause  `json:"cause"`
	Route       memory.Route  `json:"route,omitempty"`
	By          string        `json:"by,omitempty"`
	Origin      memory.Origin `json:"origin"`
	State       memory.State  `json:"state"` // before the response
	Because     string        `json:"because"`
	ContentHash string        `json:"content_hash,omitempty"`
	Preview     string        `json:"preview,omitempty"`
	Snapshots   int           `json:"snapshots"` // how many show it
}

// Source is where bad records come from.
type Source struct {
	Source string       `json:"source"`
	Class  memory.Class `json:"class"`
	Bad    int          `json:"bad"` // of the bad records
	All    int          `json:"all"` // of all that it ever wrote
}

// Act is what the second and third steps did.
type Act struct {
	Records  []string `json:"records"`           // withheld now
	Already  []string `json:"already,omitempty"` // no session could see them before
	Kept     []string `json:"kept,omitempty"`    // protected: a person has to decide
	Restored []string `json:"restored,omitempty"`
	// Seq undoes the act, Snapshot was taken just before it; zero where nothing
	// was to be done.
	Seq      uint64 `json:"seq,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
}

// Rederivate is a record whose lineage touches a bad one: it has to be derived
// again, from what remains.
type Rederivate struct {
	Record  string       `json:"record"`
	State   memory.State `json:"state"` // after the response
	Touches []string     `json:"touches"`
	Depth   int          `json:"depth"` // steps from a bad record
	// Remains is its lineage without what is bad or derives from it. Empty means
	// that nothing is left to derive it from.
	Remains memory.Lineage `json:"remains"`
	Preview string         `json:"preview,omitempty"`
}

// Respond answers an incident. It pinpoints the bad records and when they came;
// quarantines them, bringing back what they superseded; isolates every record that
// derives from one, over any number of steps; and lists what has to be derived
// again. Both acts are appended to the log and can be undone.
func Respond(ctx context.Context, st *store.History, curator *store.Curator, by string, now time.Time,
	s Suspects) (*Incident, error) {
	r, err := NewReplay(ctx, st, false)
	if err != nil {
		return nil, err
	}
	out := &Incident{At: now, By: by, Why: s.Why, DryRun: s.DryRun, Rederive: []Rederivate{}}
	bad, err := out.pinpoint(ctx, r, s)
	if err != nil {
		return nil, fmt.Errorf("pinpointing: %w", err)
	}
	derived, err := r.taint(ctx, bad)
	if err != nil {
		return nil, fmt.Errorf("following lineage: %w", err)
	}
	why := s.Why
	if why == "" {
		why = "incident"
	}
	if out.Quarantine, err = r.withhold(ctx, curator, s, bad, out.Pinpoint.Began.At, why); err != nil {
		return nil, fmt.Errorf("quarantining: %w", err)
	}
	var ids []string
	for _, d := range derived {
		ids = append(ids, d.Record)
	}
	if out.Isolate, err = r.withhold(ctx, curator, s, ids, out.Pinpoint.Began.At,
		why+": derives from a quarantined record"); err != nil {
		return out, fmt.Errorf("isolating: %w", err)
	}
	for _, d := range derived {
		v, _, err := r.current(ctx, d.Record)
		if err != nil {
			return out, fmt.Errorf("listing what is to be derived again: %w", err)
		}
		d.State, d.Preview = v.Record.State, preview(&v)
		out.Rederive = append(out.Rederive, d)
	}
	return out, nil
}

// pinpoint finds the bad records and when they came.
func (out *Incident) pinpoint(ctx context.Context, r *Replay, s Suspects) ([]string, error) {
	p := &out.Pinpoint
	p.Bad, p.Sources = []Suspect{}, []Source{}
	because := map[string]string{}
	var ids []string
	add := func(id, why string) {
		if because[id] == "" {
			because[id] = why
			ids = append(ids, id)
		}
	}
	for _, id := range s.IDs {
		add(id, "named")
	}
	if !s.Since.IsZero() {
		f := store.Filter{Since: s.Since, Causes: []memory.Cause{memory.CauseWrite, memory.CauseSeed, memory.CauseInject,
			memory.CauseApprove}}
		for v, err := range r.store.Versions(ctx, f) {
			if err != nil && v.Seq == 0 {
				return nil, err
			}
			if v.Record.Origin.Class == memory.External && present(&v) {
				add(v.Audit.Record, "external, since "+s.Since.UTC().Format(time.RFC3339))
			}
		}
	}
	wrote, err := r.bySource(ctx)
	if err != nil {
		return nil, err
	}
	suspects := len(ids)            // the rest are their cohort, whose own other sources are not suspected
	for i := 0; i < len(ids); i++ { // ids grows while it is read
		id := ids[i]
		chain, err := r.chain(ctx, id)
		if err != nil {
			return nil, err
		}
		if len(chain) == 0 {
			return nil, fmt.Errorf("record %q: %w", text.Clip(id, 80), memory.ErrNotFound)
		}
		first, last := &chain[0], &chain[len(chain)-1]
		a, _ := r.appearance(chain)
		at := Moment{Seq: first.Seq, At: first.At}
		p.Bad = append(p.Bad, Suspect{Record: id, First: at, Cause: first.Cause, Route: first.Route, By: first.By,
			Origin: last.Record.Origin, State: last.Record.State,
			Because: because[id], ContentHash: contentHash(last), Preview: preview(last), Snapshots: a.Snapshots})
		if p.Began.Seq == 0 || at.Seq < p.Began.Seq {
			p.Began = at
		}
		counted := map[int]bool{}
		for _, o := range last.Record.AppendOrigins(nil) {
			members := wrote[o.Source]
			// What a person or the operator said is no cohort of an attacker.
			if s.Cohort && o.Class < memory.User && i < suspects {
				for _, m := range members {
					add(m, "from the same source as "+id)
				}
			}
			at := slices.IndexFunc(p.Sources, func(have Source) bool { return have.Source == o.Source && have.Class == o.Class })
			if at < 0 {
				at = len(p.Sources)
				p.Sources = append(p.Sources, Source{Source: o.Source, Class: o.Class, All: len(members)})
			}
			if !counted[at] { // it may have reached us by two ways
				counted[at] = true
				p.Sources[at].Bad++
			}
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("nothing is suspected: no record is named, and none came since")
	}
	for _, snap := range r.snapshots {
		if snap.Seq < p.Began.Seq {
			p.Snapshot = snap.ID
		}
	}
	if p.Began.Seq > 1 {
		safe := p.Began.Seq - 1
		for a, err := range r.store.Log(ctx, store.Filter{From: safe, To: safe}) {
			if err != nil {
				return nil, err
			}
			p.Safe = Moment{Seq: a.Seq, At: a.At}
		}
		for v, err := range r.store.AsOf(ctx, store.Point{Seq: safe}) {
			if err != nil && v.Seq == 0 {
				return nil, err
			}
			if v.Record.State.Visible() {
				p.Records++
			}
		}
	}
	return ids, nil
}

// bySource is the cohort of every source, by id.
func (r *Replay) bySource(ctx context.Context) (map[string][]string, error) {
	out, had := map[string][]string{}, map[[2]string]bool{}
	for v, err := range r.store.Versions(ctx, store.Filter{}) {
		if err != nil && !torn(&v) {
			return nil, fmt.Errorf("reading every record: %w", err)
		}
		if !present(&v) {
			continue
		}
		for _, l := range append(memory.Lineage{{Origin: v.Record.Origin}}, v.Record.Lineage...) {
			if k := [2]string{l.Origin.Source, v.Record.ID}; k[0] != "" && !had[k] {
				had[k] = true
				out[k[0]] = append(out[k[0]], k[1])
			}
		}
	}
	return out, nil
}

// taint follows lineage from bad records to everything that derives from them, in
// the order of distance.
func (r *Replay) taint(ctx context.Context, bad []string) ([]Rederivate, error) {
	depth := map[string]int{}
	for _, id := range bad {
		depth[id] = 0
	}
	touches := map[string][]string{}
	found := slices.Clone(bad)
	for i := 0; i < len(found); i++ { // found grows while it is read
		via := found[i]
		nodes, err := r.derived(ctx, via)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			far, known := depth[n.Record]
			if n.Relation != Derives || known && far == 0 { // a bad one itself
				continue
			}
			touches[n.Record] = append(touches[n.Record], via)
			if !known {
				depth[n.Record] = depth[via] + 1
				found = append(found, n.Record)
			}
		}
	}
	var out []Rederivate
	for _, id := range found[len(bad):] {
		v, _, err := r.current(ctx, id)
		if err != nil {
			return nil, err
		}
		d := Rederivate{Record: id, Touches: touches[id], Depth: depth[id], Remains: memory.Lineage{}}
		for _, l := range v.Record.Lineage {
			if _, tainted := depth[l.Record]; !tainted || l.Record == "" {
				d.Remains = append(d.Remains, l)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// withhold quarantines records, and says which no session could see anyway.
func (r *Replay) withhold(ctx context.Context, curator *store.Curator, s Suspects, ids []string, began time.Time,
	why string) (Act, error) {
	a := Act{Records: []string{}}
	if len(ids) == 0 {
		return a, nil
	}
	what := store.Suspicion{IDs: ids, Since: began, Protected: s.Protected, Restore: true, DryRun: true}
	done, err := curator.Quarantine(ctx, what, why)
	if err == nil && !s.DryRun && len(done.Changed) > 0 {
		what.DryRun = false
		done, err = curator.Quarantine(ctx, what, why)
	}
	if err != nil {
		return a, err
	}
	a.Seq, a.Snapshot, a.Restored = done.Seq, done.Snapshot, done.Revived
	for _, k := range done.Kept {
		a.Kept = append(a.Kept, k.Record)
	}
	for _, id := range ids {
		if slices.Contains(done.Changed, id) {
			a.Records = append(a.Records, id)
		} else if v, _, err := r.current(ctx, id); err != nil {
			return a, err
		} else if !v.Record.State.Visible() && v.Record.State != memory.Held {
			a.Already = append(a.Already, id)
		}
	}
	return a, nil
}
