package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// timeKey is an instant as 12 bytes that sort as instants do: seconds since 1970
// with the sign turned, then nanoseconds.
func timeKey(t time.Time) []byte {
	b := make([]byte, 0, 12)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

func keyTime(b []byte) time.Time {
	if len(b) != 12 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)^1<<63), int64(binary.BigEndian.Uint32(b[8:]))).UTC()
}

// What [History.versions] reads: versions with their entries, or entries with their
// versions, if they have one. Both with the time at which the version was replaced.
const (
	entryColumns = `SELECT e.seq, e.grp, e.at, e.cause, e.route, e.by, e.why, e.snapshot, e.target, e.digest, `
	allVersions  = entryColumns + `v.id, v.until, v.forgotten, v.salt, v.record, n.at
		FROM version v JOIN entry e ON e.seq = v.seq LEFT JOIN entry n ON n.seq = v.until`
	allEntries = entryColumns + `e.record, coalesce(v.until, 9223372036854775807), coalesce(v.forgotten, 0), v.salt, v.record, n.at
		FROM entry e LEFT JOIN version v ON v.seq = e.seq LEFT JOIN entry n ON n.seq = v.until`
)

// answer visits the rows of an answer; an error comes last.
func answer(rows *sql.Rows, err error) iter.Seq2[*sql.Rows, error] {
	return func(yield func(*sql.Rows, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			if !yield(rows, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// scanEntry reads entryColumns, the id of a record, and more.
func scanEntry(row *sql.Rows, more ...any) (a Audit, err error) {
	var cause, route int64
	var at, digest sql.RawBytes // until the next row
	err = row.Scan(append([]any{&a.Seq, &a.Group, &at, &cause, &route, &a.By, &a.Why, &a.Snapshot, &a.Target, &digest,
		&a.Record}, more...)...)
	a.At, a.Cause, a.Route = keyTime(at), memory.Cause(cause), memory.Route(route)
	copy(a.Digest[:], digest)
	return a, err
}

// versions visits an answer of allVersions or allEntries. A version that cannot be read
// comes with an error that is ErrTorn, and the next ones follow.
func (s *History) versions(rows *sql.Rows, err error) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		for row, err := range answer(rows, err) {
			var v Version
			var until int64
			var enc, next sql.RawBytes
			if err == nil {
				v.Audit, err = scanEntry(row, &until, &v.Forgotten, &v.Salt, &enc, &next)
			}
			if err != nil {
				yield(Version{}, s.named(err))
				return
			}
			if until != current {
				v.UntilSeq, v.Until = uint64(until), keyTime(next)
			}
			if enc != nil {
				err = v.read(enc)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// read reads the record of a version.
func (v *Version) read(enc []byte) (err error) {
	if v.Record, err = memory.ParseCanonical(enc); err == nil && !blank(v, enc) {
		err = errors.New("it was forgotten, and is not what was left of it")
	}
	if err != nil {
		return fmt.Errorf("%w: entry %d, record %q: %w", ErrTorn, v.Seq, v.Audit.Record, err)
	}
	return nil
}

// blank reports whether what a forgotten version keeps is what forgetting left, and
// takes its digest away. Versions that an earlier memtox forgot have none.
func blank(v *Version, enc []byte) bool {
	if !v.Forgotten || len(v.Salt) == 0 {
		return true
	}
	sum := v.Salt
	v.Salt = nil
	return bytes.Equal(sum, blankSum(enc))
}

// each visits the records of an answer of allVersions, and checks their digests.
func (s *History) each(versions iter.Seq2[Version, error], yield func(*memory.Record) bool) error {
	for v, err := range versions {
		if err == nil && (!v.Intact() || v.Record.ID != v.Audit.Record) {
			err = fmt.Errorf("%w: entry %d, record %q: its digest is another", ErrTorn, v.Seq, v.Audit.Record)
		}
		if errors.Is(err, ErrTorn) {
			err = fmt.Errorf("%w; the file was changed from outside, or its disk is bad: quarantine or forget the record", err)
		}
		if err != nil {
			return err
		}
		if !yield(&v.Record) {
			return nil
		}
	}
	return nil
}

func (s *History) one(rows *sql.Rows, err error) (r memory.Record, ok bool, _ error) {
	err = s.each(s.versions(rows, err), func(have *memory.Record) bool {
		r, ok = *have, true
		return false
	})
	return r, ok, err
}

// Get implements [memory.Store].
func (s *History) Get(ctx context.Context, id string) (memory.Record, bool, error) {
	return s.one(s.q["get"].QueryContext(ctx, []byte(id)))
}

// ByKey implements [memory.Store].
func (s *History) ByKey(ctx context.Context, store, key string) (memory.Record, bool, error) {
	return s.one(s.q["byKey"].QueryContext(ctx, []byte(store), []byte(key)))
}

// Visible implements [memory.Store].
func (s *History) Visible(ctx context.Context, stores ...string) (out []memory.Record, err error) {
	q := allVersions + ` WHERE v.until = 9223372036854775807 AND v.state <= 1`
	var args []any
	if len(stores) > 0 {
		q += ` AND v.store IN (?` + strings.Repeat(", ?", len(stores)-1) + `)`
		for _, st := range stores {
			args = append(args, []byte(st))
		}
	}
	err = s.each(s.versions(s.read.QueryContext(ctx, q+` ORDER BY v.first`, args...)), func(r *memory.Record) bool {
		out = append(out, *r)
		return true
	})
	return out, err
}

// Each implements [memory.Store].
func (s *History) Each(ctx context.Context, yield func(*memory.Record) bool) error {
	return s.each(s.versions(s.q["all"].QueryContext(ctx)), yield)
}

// number reads one number; 0 is for no row.
func (s *History) number(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = s.q[statement].QueryRowContext(ctx, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, s.named(err)
}

// Len implements [memory.Store].
func (s *History) Len(ctx context.Context) (int, error) {
	n, err := s.number(ctx, "count")
	return int(n), err
}

// Used implements [memory.Store].
func (s *History) Used(ctx context.Context, store string) (int, error) {
	n, err := s.number(ctx, "used", []byte(store))
	return int(n), err
}

// Last implements [memory.Journal].
func (s *History) Last(ctx context.Context) (uint64, error) {
	n, err := s.number(ctx, "last")
	return uint64(n), err
}

// Snapshots lists the snapshots, oldest first.
func (s *History) Snapshots(ctx context.Context) (out []Snapshot, err error) {
	for row, err := range answer(s.q["snapshots"].QueryContext(ctx)) {
		var snap Snapshot
		var at []byte
		if err == nil {
			err = row.Scan(&snap.ID, &snap.Name, &snap.Reason, &snap.By, &snap.Seq, &at, &snap.Root)
		}
		if err != nil {
			return nil, s.named(err)
		}
		snap.At = keyTime(at)
		out = append(out, snap)
	}
	return out, nil
}

// Tombstones lists what was forgotten, oldest first.
func (s *History) Tombstones(ctx context.Context) (out []Tombstone, err error) {
	for row, err := range answer(s.q["tombstones"].QueryContext(ctx)) {
		var t Tombstone
		var at, erased []byte
		if err == nil {
			err = row.Scan(&t.Seq, &t.Record, &at, &t.By, &t.Why, &erased)
		}
		if err != nil {
			return nil, s.named(err)
		}
		t.At = keyTime(at)
		if err := json.Unmarshal(erased, &t.Erased); err != nil {
			return nil, fmt.Errorf("%w: the tombstone of entry %d: %w", ErrTorn, t.Seq, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// Page implements [Pager].
func (s *History) Page(ctx context.Context, name string) (data []byte, ok bool, err error) {
	err = s.q["page"].QueryRowContext(ctx, []byte(name)).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return bytesOf(data), err == nil, s.named(err)
}

// FindSnapshot returns the snapshot with an id, or with a name if only one has it. The
// error of an unknown one wraps [memory.ErrNotFound].
func (s *History) FindSnapshot(ctx context.Context, name string) (Snapshot, error) {
	all, err := s.Snapshots(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	var found []Snapshot
	for _, have := range all {
		if have.ID == name {
			return have, nil
		}
		if have.Name == name {
			found = append(found, have)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Snapshot{}, fmt.Errorf("snapshot %q: %w; the store has %d", text.Clip(name, 80), memory.ErrNotFound, len(all))
	}
	return Snapshot{}, fmt.Errorf("snapshot %q: %d snapshots have that name, the newest is %s; give the id",
		text.Clip(name, 80), len(found), found[len(found)-1].ID)
}

// Changes implements [memory.Journal].
func (s *History) Changes(ctx context.Context, from, to uint64) iter.Seq2[memory.Change, error] {
	return func(yield func(memory.Change, error) bool) {
		for v, err := range s.Versions(ctx, Filter{From: from, To: to}) {
			var prior *memory.Record
			if err == nil && v.Seq > 1 {
				for before, failed := range s.Versions(ctx, Filter{ID: v.Record.ID, To: v.Seq - 1}) {
					prior, err = &before.Record, errors.Join(err, failed)
				}
			}
			c := memory.Change{Op: memory.Add, Route: v.Route, Record: v.Record}
			switch {
			case v.Record.State == memory.Retired:
				c.Op, c.Prior = memory.Remove, prior
			case prior != nil && prior.State != memory.Retired:
				c.Op, c.Prior = memory.Replace, prior
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func in[T ~uint8](column string, list []T) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprint(uint8(x))
	}
	return column + " IN (" + strings.Join(parts, ", ") + ")"
}

func clamp(n uint64) int64 { return int64(min(n, uint64(current)-1)) }

// before is the last entry before a time: the log is in the order of both.
func (s *History) before(ctx context.Context, t time.Time) (uint64, error) {
	n, err := s.number(ctx, "at", timeKey(t.Add(-1)))
	return uint64(n), err
}

// conditions are those of a filter but its limit, in SQL; seq is the column of the
// number that its bounds are about.
func (s *History) conditions(ctx context.Context, f *Filter, seq string) (where string, args []any, err error) {
	conds := []string{"TRUE"}
	and := func(cond string, arg ...any) {
		conds, args = append(conds, cond), append(args, arg...)
	}
	if f.From > 0 {
		and(seq+" >= ?", clamp(f.From))
	}
	if f.To > 0 {
		and(seq+" <= ?", clamp(f.To))
	}
	for than, t := range map[string]time.Time{" > ?": f.Since, " <= ?": f.Until} {
		if !t.IsZero() {
			last, err := s.before(ctx, t)
			if err != nil {
				return "", nil, err
			}
			and(seq+than, clamp(last))
		}
	}
	for _, c := range [...]struct{ value, cond string }{
		{f.ID, "v.id = ?"},
		{f.Store, "v.store = ?"},
		{f.Key, "v.key = ?"},
		{f.Principal, "v.principal = ?"},
		{f.Source, "v.source = ?"},
		{f.Cites, "v.seq IN (SELECT seq FROM cite WHERE record = ?)"},
		{f.Contains, "instr(v.record, ?) > 0"},
		{f.AnySource, "instr(v.record, ?) > 0"},
	} {
		if c.value != "" {
			and(c.cond, []byte(c.value))
		}
	}
	if len(f.States) > 0 {
		and(in("v.state", f.States))
		if !slices.Contains(f.States, memory.Live) && !slices.Contains(f.States, memory.Retired) {
			and("v.state IN (1, 2, 3)") // in the words of the index version_waits
		}
	}
	if len(f.Causes) > 0 {
		and(in("e.cause", f.Causes))
	}
	if f.Current {
		and("v.until = 9223372036854775807")
	}
	where = " WHERE " + strings.Join(conds, " AND ")
	if f.Whole {
		where = " WHERE v.id IN (SELECT v.id FROM version v JOIN entry e ON e.seq = v.seq" + where + ")"
	}
	return where + " ORDER BY " + seq, args, nil
}

// list visits what a filter names of allVersions or allEntries, oldest first.
func (s *History) list(ctx context.Context, all, seq string, f Filter) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		where, args, err := s.conditions(ctx, &f, seq)
		if err != nil {
			yield(Version{}, err)
			return
		}
		n := 0
		for v, err := range s.versions(s.read.QueryContext(ctx, all+where, args...)) {
			if err == nil && !f.Whole &&
				(!strings.Contains(v.Record.Text, f.Contains) || f.AnySource != "" && !v.Record.From(f.AnySource)) {
				continue // SQL found the words in another field
			}
			if n++; !yield(v, err) || n == f.Limit {
				return
			}
		}
	}
}

// Versions visits the versions that the filter names, oldest first. A version that
// cannot be read comes with an error that is ErrTorn, and the next ones follow.
func (s *History) Versions(ctx context.Context, f Filter) iter.Seq2[Version, error] {
	return s.list(ctx, allVersions, "v.seq", f)
}

// Journal visits the entries of the log that the filter names, oldest first, each with
// the version that it is about, if there is one: else its record has no id. Fields of a
// filter that only versions have exclude entries without one.
func (s *History) Journal(ctx context.Context, f Filter) iter.Seq2[Version, error] {
	return s.list(ctx, allEntries, "e.seq", f)
}

// Log is Journal for the entries alone.
func (s *History) Log(ctx context.Context, f Filter) iter.Seq2[Audit, error] {
	return func(yield func(Audit, error) bool) {
		for v, err := range s.Journal(ctx, f) {
			if v.Seq > 0 { // the error is one of the version
				err = nil
			}
			if !yield(v.Audit, err) {
				return
			}
		}
	}
}

// at is the last entry of the log that counts at a point in system time.
func (s *History) at(ctx context.Context, p Point) (uint64, error) {
	switch {
	case p.Seq > 0:
		return p.Seq, nil
	case p.System.IsZero():
		return s.Last(ctx)
	}
	return s.before(ctx, p.System.Add(1))
}

// AsOf visits every record as it stood at a point in time, in the order of first
// commits.
func (s *History) AsOf(ctx context.Context, p Point) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		to, err := s.at(ctx, p)
		if err != nil {
			yield(Version{}, err)
			return
		}
		// The plus keeps SQLite from sorting all of them: the index version_first has
		// them in the right order.
		for v, err := range s.versions(s.read.QueryContext(ctx,
			allVersions+" WHERE +v.seq <= ?1 AND v.until > ?1 ORDER BY v.first", clamp(to))) {
			if v.UntilSeq > to { // not known then
				v.UntilSeq, v.Until = 0, time.Time{}
			}
			if err == nil && !p.Fact.IsZero() && !v.Holds(p.Fact) {
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
