package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/internal/text"
)

// Curator does what a person or an incident response does to a store. Every act
// appends to the log, with who and why, and rewrites nothing; only Forget erases,
// and leaves a tombstone. An act on several records is one batch behind a snapshot
// of its own, so it can be taken back with Undo or Rollback.
//
// It belongs to one goroutine. It asks and tells no gate: a [memory.Memory] over the
// same store learns of its changes before its next decision.
type Curator struct {
	store *History
	by    string
	now   func() time.Time
}

// NewCurator returns a curator of a store, who acts in the name of by. The clock is
// time.Now if it is nil.
func NewCurator(s *History, by string, now func() time.Time) *Curator {
	if now == nil {
		now = time.Now
	}
	return &Curator{store: s, by: by, now: now}
}

// Outcome is what an act on several records did.
type Outcome struct {
	Seq      uint64   `json:"seq"`      // its entry of the log: what Undo takes
	Snapshot string   `json:"snapshot"` // taken just before
	Changed  []string `json:"changed"`  // records with a new version, in the order of the log
	// Revived are those among Changed that no session could see before and
	// sessions can see now.
	Revived []string `json:"revived,omitempty"`
	// Kept are records that the act was about and left as they were.
	Kept []Kept `json:"kept,omitempty"`
}

// Kept is a record that an act left as it was, and why.
type Kept struct {
	Record string `json:"record"`
	Why    string `json:"why"`
}

func (o *Outcome) keep(id, why string, args ...any) {
	o.Kept = append(o.Kept, Kept{id, fmt.Sprintf(why, args...)})
}

// step is one record's change.
type step struct {
	prior *memory.Record // as it is now
	now   memory.Record
}

// act commits an operation.
func (c *Curator) act(ctx context.Context, cause memory.Cause, why string, target uint64, steps []step,
	out Outcome) (Outcome, error) {
	b := memory.Batch{At: c.now(), Cause: cause, Route: memory.RouteOperator, By: c.by, Why: why, Target: target,
		Snapshot: &memory.SnapshotName{Reason: cause.String()}}
	for _, s := range steps {
		b.Records = append(b.Records, s.now)
	}
	done, err := c.store.Commit(ctx, &b)
	if err != nil {
		return Outcome{}, fmt.Errorf("%s: %w", cause, err)
	}
	out.Seq, out.Snapshot = done.First, done.Snapshot
	out.change(steps)
	return out, nil
}

func (o *Outcome) change(steps []step) {
	for _, s := range steps {
		o.Changed = append(o.Changed, s.now.ID)
		if s.now.State.Visible() && !s.prior.State.Visible() {
			o.Revived = append(o.Revived, s.now.ID)
		}
	}
}

// Snapshot gives the state of the store a name.
func (c *Curator) Snapshot(ctx context.Context, name, reason string) (Snapshot, error) {
	done, err := c.store.Commit(ctx, &memory.Batch{At: c.now(), Cause: memory.CauseSnapshot, By: c.by,
		Snapshot: &memory.SnapshotName{Name: name, Reason: reason}})
	if err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	return c.store.FindSnapshot(ctx, done.Snapshot)
}

// version returns the last version of a record up to an entry of the log (0: the
// current one).
func (c *Curator) version(ctx context.Context, id string, to uint64) (last Version, ok bool, err error) {
	for v, err := range c.store.Versions(ctx, Filter{ID: id, To: to, Current: to == 0}) {
		if err != nil {
			return Version{}, false, err
		}
		last, ok = v, true
	}
	return last, ok, nil
}

// never is a record as it is once it counts as never having held: retired, with an
// empty fact time.
func never(r memory.Record) memory.Record {
	r.State, r.ValidTo = memory.Retired, r.ValidFrom
	return r
}

// back is the step that makes a record again what it was as of an entry of the log, and
// what it is now. One that came later counts as never having held.
func (c *Curator) back(ctx context.Context, id string, seq uint64) (s step, now Version, err error) {
	now, _, err = c.version(ctx, id, 0)
	s = step{&now.Record, never(now.Record)}
	if err == nil && seq > 0 {
		then, known, failed := c.version(ctx, id, seq)
		if err = failed; known {
			s.now = then.Record
		}
	}
	return s, now, err
}

// Rollback brings the store back to the state as of a point in system time (its
// Fact does not count): records that came later are retired and count as never
// having held, all others are again as they were, in the state that they had then.
// A record that was quarantined since is therefore seen again: Outcome.Revived
// names such. What was forgotten stays forgotten.
func (c *Curator) Rollback(ctx context.Context, p Point, why string) (Outcome, error) {
	last, err := c.store.Last(ctx)
	to := uint64(0)
	if err == nil {
		to, err = c.store.at(ctx, p)
	}
	switch {
	case err != nil:
		return Outcome{}, fmt.Errorf("rollback: %w", err)
	case p.Seq == 0 && p.System.IsZero():
		return Outcome{}, errors.New("rollback: to when? Give a snapshot, a sequence number or a system time")
	case to > last:
		return Outcome{}, fmt.Errorf("rollback: the log ends at entry %d, before entry %d", last, to)
	}
	var out Outcome
	var steps []step
	seen := make(map[string]struct{})
	for v, err := range c.store.Versions(ctx, Filter{From: to + 1}) {
		if err != nil {
			return Outcome{}, fmt.Errorf("rollback: %w", err)
		}
		id := v.Record.ID
		if _, ok := seen[id]; ok {
			continue
		}
		seen[id] = struct{}{}
		s, now, err := c.back(ctx, id, to)
		switch {
		case err != nil:
			return Outcome{}, fmt.Errorf("rollback: %w", err)
		case now.Forgotten:
			out.keep(id, "it was forgotten")
		case !sameRecord(&s.now, s.prior):
			steps = append(steps, s)
		}
	}
	return c.act(ctx, memory.CauseRollback, why, to, steps, out)
}

func sameRecord(a, b *memory.Record) bool {
	return string(a.AppendCanonical(nil)) == string(b.AppendCanonical(nil))
}

// Undo takes one group of changes back, named by the number of its first entry
// (Outcome.Seq). A record that has changed again since is kept as it is.
func (c *Curator) Undo(ctx context.Context, group uint64, why string) (Outcome, error) {
	var out Outcome
	var steps []step
	found := false
	for a, err := range c.store.Log(ctx, Filter{From: group}) {
		if err != nil {
			return Outcome{}, fmt.Errorf("undo: %w", err)
		}
		if a.Group != group {
			break
		}
		if found = true; a.Cause == memory.CauseForget {
			return Outcome{}, &settings.Problem{What: fmt.Sprintf("entry %d is a forgetting, which cannot be undone", group)}
		}
		if a.Record == "" {
			continue
		}
		s, now, err := c.back(ctx, a.Record, a.Seq-1)
		switch {
		case err != nil:
			return Outcome{}, fmt.Errorf("undo: %w", err)
		case now.Seq != a.Seq:
			out.keep(a.Record, "it has changed since, by entry %d (%s)", now.Seq, now.Cause)
		default:
			steps = append(steps, s)
		}
	}
	if !found {
		return Outcome{}, fmt.Errorf("undo: no group of changes begins at entry %d: %w", group, memory.ErrNotFound)
	}
	return c.act(ctx, memory.CauseUndo, why, group, steps, out)
}

// Suspicion names records to quarantine.
type Suspicion struct {
	// Since names what came into the store, or was approved, at this system time
	// or later. Zero is always.
	Since time.Time
	// IDs narrow it to these records; none is every record.
	IDs []string
	// If narrows it further; nil is every record.
	If func(Version) bool
	// Protected are globs of keys that are kept, whatever the rest says.
	Protected []string
	// Restore brings back what the quarantined records superseded, where it is
	// from before Since and nothing else is live under the key.
	Restore bool
	// DryRun says what would be done, and does nothing.
	DryRun bool
}

// Quarantine withholds records from every session and keeps them for review.
func (c *Curator) Quarantine(ctx context.Context, s Suspicion, why string) (Outcome, error) {
	var out Outcome
	var steps []step
	came := []memory.Cause{memory.CauseWrite, memory.CauseSeed, memory.CauseInject, memory.CauseApprove}
	filters := []Filter{{Since: s.Since, Causes: came}}
	if len(s.IDs) > 0 {
		filters = filters[:0]
		for _, id := range s.IDs {
			_, ok, err := c.version(ctx, id, 0)
			if err == nil && !ok {
				err = memory.ErrNotFound
			}
			if err != nil {
				return Outcome{}, fmt.Errorf("quarantine: record %q: %w", text.Clip(id, 80), err)
			}
			filters = append(filters, Filter{ID: id, Since: s.Since, Causes: came})
		}
	}
	protected := Globs(s.Protected)
	taken := make(map[string]bool)
	for _, f := range filters {
		for v, err := range c.store.Versions(ctx, f) {
			id := v.Record.ID
			if err == nil && taken[id] {
				continue
			}
			taken[id] = true
			var now Version
			if err == nil {
				now, _, err = c.version(ctx, id, 0)
			}
			switch st := now.Record.State; {
			case err != nil:
				return Outcome{}, fmt.Errorf("quarantine: %w", err)
			case !st.Visible() && st != memory.Held, s.If != nil && !s.If(now):
			case protected(now.Record.Key):
				out.keep(id, "its key %q is protected", text.Clip(now.Record.Key, 80))
			default:
				want := now.Record
				want.State = memory.Quarantined
				steps = append(steps, step{&now.Record, want})
			}
		}
	}
	if s.Restore {
		back, err := c.superseded(ctx, steps, s.Since)
		if err != nil {
			return Outcome{}, fmt.Errorf("quarantine: %w", err)
		}
		steps = append(steps, back...)
	}
	if s.DryRun {
		out.change(steps)
		return out, nil
	}
	return c.act(ctx, memory.CauseQuarantine, why, 0, steps, out)
}

// superseded finds what to bring back for live records that are taken away: the
// first of the records before each that is from before since.
func (c *Curator) superseded(ctx context.Context, steps []step, since time.Time) ([]step, error) {
	gone := make(map[string]bool, len(steps))
	for _, s := range steps {
		gone[s.now.ID] = true
	}
	var out []step
	back := make(map[[2]string]bool)
	for _, s := range steps {
		if s.prior.State != memory.Live {
			continue
		}
		k := [2]string{s.now.Store, s.now.Key}
		cur, ok, err := c.store.ByKey(ctx, k[0], k[1])
		if err != nil {
			return nil, err
		}
		if back[k] || ok && cur.State == memory.Live && !gone[cur.ID] {
			continue
		}
		for id, hops := s.now.Parent, 0; id != "" && hops < 1000; hops++ {
			var all []Version
			for v, err := range c.store.Versions(ctx, Filter{ID: id}) {
				if err != nil {
					return nil, err
				}
				all = append(all, v)
			}
			if len(all) < 2 {
				break
			}
			now, before := all[len(all)-1], all[len(all)-2]
			if !all[0].At.Before(since) {
				id = now.Record.Parent
				continue
			}
			if now.Record.State == memory.Retired && !now.Forgotten && before.Record.State == memory.Live && !gone[id] {
				out = append(out, step{&now.Record, before.Record})
				back[k], gone[id] = true, true
			}
			break
		}
	}
	return out, nil
}

// Retirement names records to retire.
type Retirement struct {
	// If says which. A record for which it returns an error or panics is kept.
	If func(memory.Record) (bool, error)
	// Protected are globs of keys that are kept, and that If is not asked about.
	// "*" stands for any run of characters, "?" for one.
	Protected []string
}

// RetireIf retires the records that a predicate names, of all that are not retired
// yet. They held until now. Undo or Rollback brings them back.
func (c *Curator) RetireIf(ctx context.Context, rule Retirement, why string) (Outcome, error) {
	if rule.If == nil {
		return Outcome{}, errors.New("retire: there is no predicate")
	}
	var out Outcome
	var steps []step
	now, protected := c.now(), Globs(rule.Protected)
	err := c.store.Each(ctx, func(r *memory.Record) bool {
		if r.State == memory.Retired {
			return true
		}
		if protected(r.Key) {
			out.keep(r.ID, "its key %q is protected", text.Clip(r.Key, 80))
			return true
		}
		prior := *r
		yes, err := ask(rule.If, prior)
		if err != nil {
			out.keep(r.ID, "the predicate failed: %v", err)
		} else if yes {
			want := prior
			want.State, want.ValidTo = memory.Retired, now
			steps = append(steps, step{&prior, want})
		}
		return ctx.Err() == nil
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return Outcome{}, fmt.Errorf("retire: %w", err)
	}
	return c.act(ctx, memory.CauseRetire, why, 0, steps, out)
}

func ask(predicate func(memory.Record) (bool, error), r memory.Record) (yes bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			yes, err = false, fmt.Errorf("panic: %v", p)
		}
	}()
	// A predicate that writes into what it is shown must not reach the store.
	r.Lineage, r.Signature, r.Intents = slices.Clone(r.Lineage), slices.Clone(r.Signature), slices.Clone(r.Intents)
	return predicate(r)
}

// Globs returns what tells whether a key matches one of the patterns: "*" stands for any
// run of characters, "/" and "." too, "?" for one character, everything else for itself.
func Globs(patterns []string) func(key string) bool {
	wild := strings.NewReplacer(`\*`, `.*`, `\?`, `.`)
	exprs := make([]string, len(patterns))
	for i, p := range patterns {
		exprs[i] = wild.Replace(regexp.QuoteMeta(strings.ToValidUTF8(p, "\uFFFD")))
	}
	expr := regexp.MustCompile(`(?s)^(?:` + strings.Join(exprs, "|") + `)$`)
	return func(key string) bool { return len(patterns) > 0 && expr.MatchString(key) }
}

// ErrDecided is what Approve and Reject return where a record is live or retired.
var ErrDecided = errors.New("nothing waits for a decision")

// Approval is a decision for a record.
type Approval struct {
	Why string
	// Anyway approves a replacement although another record has taken the place of
	// the one that it was to replace.
	Anyway bool
	// Amend may change the Scope, Trust, Version, Signature and SignedBy of the record
	// that goes live, and nothing else: a signature covers the scope. Nil leaves it. It may
	// read the store and not write to it.
	Amend func(*memory.Record) error
	// With returns records of the approver's own that are stored in the same step; nil is
	// none. It may read the store and not write to it.
	With func(context.Context) ([]memory.Record, error)
}

// Approve makes a record live that is staged, held or quarantined. If it was to
// replace another, it does so now.
func (c *Curator) Approve(ctx context.Context, id string, a Approval) (memory.Record, error) {
	return c.decide(ctx, "approving", memory.CauseApprove, id, a.Why, func(ctx context.Context, now memory.Record) (
		[]memory.Record, error) {
		want := now
		want.State = memory.Live
		if a.Amend != nil {
			if err := a.Amend(&want); err != nil {
				return nil, err
			}
			other := want
			other.State, other.Scope, other.Trust, other.Version, other.Signature, other.SignedBy = now.State, now.Scope,
				now.Trust, now.Version, now.Signature, now.SignedBy
			if want.State != memory.Live || !sameRecord(&other, &now) {
				return nil, errors.New("amending may change its scope, trust, version and signature alone")
			}
		}
		var out []memory.Record
		if a.With != nil {
			var err error
			if out, err = a.With(ctx); err != nil {
				return nil, err
			}
		}
		if now.Parent == "" {
			return append(out, want), nil
		}
		cur, ok, err := c.store.ByKey(ctx, now.Store, now.Key)
		switch {
		case err != nil:
			return nil, err
		case !ok || cur.State != memory.Live || cur.ID == id:
			return append(out, want), nil
		case cur.ID != now.Parent && !a.Anyway:
			return nil, fmt.Errorf("%w: it was to replace record %q, but %q is live now; reject it, or approve it anyway",
				memory.ErrMovedOn, now.Parent, cur.ID)
		}
		cur.State, cur.ValidTo = memory.Retired, want.ValidFrom
		return append(out, cur, want), nil
	})
}

// Reject turns a record down that is staged, held or quarantined. It is retired and
// counts as never having held; its history keeps it.
func (c *Curator) Reject(ctx context.Context, id, why string) (memory.Record, error) {
	return c.decide(ctx, "rejecting", memory.CauseReject, id, why, func(_ context.Context, now memory.Record) (
		[]memory.Record, error) {
		return []memory.Record{never(now)}, nil
	})
}

// decide commits what becomes of a record that waits for a decision, the last of what
// decision returns. Nothing comes in between: of two who decide at once one is told that
// it is decided.
func (c *Curator) decide(ctx context.Context, doing string, cause memory.Cause, id, why string,
	decision func(ctx context.Context, now memory.Record) ([]memory.Record, error)) (out memory.Record, err error) {
	_, err = c.store.Decide(ctx, func(ctx context.Context) (*memory.Batch, error) {
		now, ok, err := c.store.Get(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, memory.ErrNotFound
		case now.State == memory.Live || now.State == memory.Retired:
			return nil, fmt.Errorf("it is %s: %w", now.State, ErrDecided)
		}
		records, err := decision(ctx, now)
		if err != nil {
			return nil, err
		}
		out = records[len(records)-1]
		return &memory.Batch{At: c.now(), Cause: cause, Route: memory.RouteOperator, By: c.by, Why: why, Records: records}, nil
	})
	if err != nil {
		return memory.Record{}, fmt.Errorf("%s record %q: %w", doing, text.Clip(id, 80), err)
	}
	return out, nil
}

// Forget erases records for good. The receipt has the openings of their tombstones,
// which nothing else has.
func (c *Curator) Forget(ctx context.Context, why string, ids ...string) (Receipt, error) {
	return c.store.Forget(ctx, Forgetting{IDs: ids, At: c.now(), By: c.by, Why: why})
}
