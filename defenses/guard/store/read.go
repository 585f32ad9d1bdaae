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

// columns of a version with its entry, as scan reads them.
const columns = `SELECT v.seq, v.until, v.forgotten, v.salt, v.record, n.at,
	e.grp, e.at, e.cause, e.route, e.by, e.why, v.id, e.snapshot, e.target, e.digest`

// bare are the columns of a record alone, with what checks it.
const bare = `SELECT v.seq, v.id, v.forgotten, v.salt, v.record, e.digest FROM version v JOIN entry e ON e.seq = v.seq`

type scanner interface{ Scan(...any) error }

// record reads the columns of bare, and checks the digest.
func record(row scanner, r *memory.Record) (seq int64, err error) {
	var v Version
	var id, enc, digest []byte
	if err := row.Scan(&seq, &id, &v.Forgotten, &v.Salt, &enc, &digest); err != nil {
		return 0, err
	}
	if *r, err = memory.ParseCanonical(enc); err == nil {
		v.Seq, v.Record = uint64(seq), *r
		copy(v.Digest[:], digest)
		if len(digest) != len(v.Digest) || !v.Intact() || !blank(&v, enc) || r.ID != string(id) {
			err = errors.New("its digest is another")
		}
	}
	if err != nil {
		return seq, fmt.Errorf("%w: entry %d, record %q: %w; the file was changed from outside, or its disk is bad: "+
			"quarantine or forget the record", ErrTorn, seq, id, err)
	}
	return seq, nil
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

func (s *History) one(row *sql.Row) (r memory.Record, ok bool, err error) {
	_, err = record(row, &r)
	if errors.Is(err, sql.ErrNoRows) {
		return memory.Record{}, false, nil
	}
	if err != nil {
		return memory.Record{}, false, s.named(err)
	}
	return r, true, nil
}

// Get implements [memory.Store].
func (s *History) Get(ctx context.Context, id string) (memory.Record, bool, error) {
	return s.one(s.q["get"].QueryRowContext(ctx, []byte(id)))
}

// ByKey implements [memory.Store].
func (s *History) ByKey(ctx context.Context, store, key string) (memory.Record, bool, error) {
	return s.one(s.q["byKey"].QueryRowContext(ctx, []byte(store), []byte(key)))
}

// Visible implements [memory.Store].
func (s *History) Visible(ctx context.Context, stores ...string) (out []memory.Record, err error) {
	each := func(r *memory.Record) bool { out = append(out, *r); return true }
	if len(stores) == 1 {
		rows, err := s.q["visible"].QueryContext(ctx, []byte(stores[0]))
		return out, s.each(rows, err, each)
	}
	q := bare + ` WHERE v.until = 9223372036854775807 AND v.state <= 1`
	var args []any
	if len(stores) > 0 {
		q += ` AND v.store IN (?` + strings.Repeat(", ?", len(stores)-1) + `)`
		for _, st := range stores {
			args = append(args, []byte(st))
		}
	}
	rows, err := s.read.QueryContext(ctx, q+` ORDER BY v.first`, args...)
	return out, s.each(rows, err, each)
}

// Each implements [memory.Store].
func (s *History) Each(ctx context.Context, yield func(*memory.Record) bool) error {
	rows, err := s.q["all"].QueryContext(ctx)
	return s.each(rows, err, yield)
}

func (s *History) each(rows *sql.Rows, err error, yield func(*memory.Record) bool) error {
	if err != nil {
		return s.named(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r memory.Record
		if _, err := record(rows, &r); err != nil {
			return s.named(err)
		}
		if !yield(&r) {
			return nil
		}
	}
	return s.named(rows.Err())
}

// number reads one number; def is for no row.
func (s *History) number(ctx context.Context, st *sql.Stmt, def int64, args ...any) (n int64, err error) {
	err = st.QueryRowContext(ctx, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return def, nil
	}
	return n, s.named(err)
}

// Len implements [memory.Store].
func (s *History) Len(ctx context.Context) (int, error) {
	n, err := s.number(ctx, s.q["count"], 0)
	return int(n), err
}

// Used implements [memory.Store].
func (s *History) Used(ctx context.Context, store string) (int, error) {
	n, err := s.number(ctx, s.q["used"], 0, []byte(store))
	return int(n), err
}

// Last implements [memory.Journal].
func (s *History) Last(ctx context.Context) (uint64, error) {
	n, err := s.number(ctx, s.q["last"], 0)
	return uint64(n), err
}

// Snapshots lists the snapshots, oldest first.
func (s *History) Snapshots(ctx context.Context) (out []Snapshot, err error) {
	rows, err := s.q["snapshots"].QueryContext(ctx)
	if err != nil {
		return nil, s.named(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n, seq int64
		var name, reason, by, at, root []byte
		if err := rows.Scan(&n, &name, &reason, &by, &seq, &at, &root); err != nil {
			return nil, s.named(err)
		}
		snap := Snapshot{ID: fmt.Sprint("s", n), Name: string(name), Reason: string(reason), By: string(by), Seq: uint64(seq),
			At: keyTime(at)}
		if len(root) > 0 {
			snap.Root = root
		}
		out = append(out, snap)
	}
	return out, s.named(rows.Err())
}

// Tombstones lists what was forgotten, oldest first.
func (s *History) Tombstones(ctx context.Context) (out []Tombstone, err error) {
	rows, err := s.q["tombstones"].QueryContext(ctx)
	if err != nil {
		return nil, s.named(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var rec, at, by, why, erased []byte
		if err := rows.Scan(&seq, &rec, &at, &by, &why, &erased); err != nil {
			return nil, s.named(err)
		}
		t := Tombstone{Seq: uint64(seq), Record: string(rec), At: keyTime(at), By: string(by), Why: string(why)}
		if err := json.Unmarshal(erased, &t.Erased); err != nil {
			return nil, fmt.Errorf("%w: the tombstone of entry %d: %w", ErrTorn, seq, err)
		}
		out = append(out, t)
	}
	return out, s.named(rows.Err())
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

// where collects the conditions of a query.
type where struct {
	conds []string
	args  []any
}

func (w *where) and(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func in[T ~uint8](column string, list []T) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprint(uint8(x))
	}
	return column + " IN (" + strings.Join(parts, ", ") + ")"
}

// bounds narrows seq by the bounds of a filter. Times become sequence numbers: the
// log is in the order of both.
func (s *History) bounds(ctx context.Context, w *where, seq string, f *Filter) error {
	if f.From > 0 {
		w.and(seq+" >= ?", clamp(f.From))
	}
	if f.To > 0 {
		w.and(seq+" <= ?", clamp(f.To))
	}
	if !f.Since.IsZero() {
		before, err := s.before(ctx, f.Since)
		if err != nil {
			return err
		}
		w.and(seq+" > ?", before)
	}
	if !f.Until.IsZero() {
		before, err := s.before(ctx, f.Until)
		if err != nil {
			return err
		}
		w.and(seq+" <= ?", before)
	}
	return nil
}

func clamp(n uint64) int64 { return int64(min(n, uint64(current)-1)) }

// before is the last entry before a time.
func (s *History) before(ctx context.Context, t time.Time) (int64, error) {
	return s.number(ctx, s.q["at"], 0, timeKey(t.Add(-1)))
}

// Log visits the entries of the log that the filter names, oldest first. Fields of a
// filter that only versions have exclude entries without one.
func (s *History) Log(ctx context.Context, f Filter) iter.Seq2[Audit, error] {
	return func(yield func(Audit, error) bool) {
		var w where
		if err := s.bounds(ctx, &w, "e.seq", &f); err != nil {
			yield(Audit{}, err)
			return
		}
		q := `SELECT e.seq, e.grp, e.at, e.cause, e.route, e.by, e.why, e.record, e.snapshot, e.target, e.digest FROM entry e`
		if f.OfVersions() || f.ID != "" {
			for v, err := range s.Versions(ctx, f) {
				if !yield(v.Audit, err) {
					return
				}
			}
			return
		}
		if len(f.Causes) > 0 {
			w.and(in("e.cause", f.Causes))
		}
		q += w.String() + " ORDER BY e.seq"
		if f.Limit > 0 {
			q += fmt.Sprint(" LIMIT ", f.Limit)
		}
		rows, err := s.read.QueryContext(ctx, q, w.args...)
		if err != nil {
			yield(Audit{}, s.named(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var x entryRow
			var seq int64
			if err := rows.Scan(append([]any{&seq}, x.columns()...)...); err != nil {
				yield(Audit{}, s.named(err))
				return
			}
			if !yield(x.audit(seq), nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Audit{}, s.named(err))
		}
	}
}

// entryRow is a row of entry, without its number.
type entryRow struct {
	group, cause, route, target        int64
	at, by, why, rec, snapshot, digest sql.RawBytes // until the next row
}

func (x *entryRow) columns() []any {
	return []any{&x.group, &x.at, &x.cause, &x.route, &x.by, &x.why, &x.rec, &x.snapshot, &x.target, &x.digest}
}

func (x *entryRow) audit(seq int64) Audit {
	a := Audit{Seq: uint64(seq), Group: uint64(x.group), At: keyTime(x.at), Cause: memory.Cause(x.cause),
		Route: memory.Route(x.route),
		By:    string(x.by), Why: string(x.why), Record: string(x.rec), Snapshot: string(x.snapshot),
		Target: uint64(x.target)}
	copy(a.Digest[:], x.digest)
	return a
}

// Versions visits the versions that the filter names, oldest first. A version that cannot be read comes with an
// error that is ErrTorn, and the next ones follow.
func (s *History) Versions(ctx context.Context, f Filter) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		var w where
		if err := s.bounds(ctx, &w, "v.seq", &f); err != nil {
			yield(Version{}, err)
			return
		}
		for column, value := range map[string]string{"v.id": f.ID, "v.key": f.Key, "v.principal": f.Principal,
			"v.source": f.Source, "v.store": f.Store} {
			if value != "" {
				w.and(column+" = ?", []byte(value))
			}
		}
		for _, part := range []string{f.Contains, f.AnySource} {
			if part != "" {
				w.and("instr(v.record, ?) > 0", []byte(part))
			}
		}
		if f.Cites != "" {
			w.and("v.seq IN (SELECT seq FROM cite WHERE record = ?)", []byte(f.Cites))
		}
		if len(f.States) > 0 {
			w.and(in("v.state", f.States))
			if !slices.Contains(f.States, memory.Live) && !slices.Contains(f.States, memory.Retired) {
				w.and("v.state IN (1, 2, 3)") // in the words of the index version_waits
			}
		}
		if len(f.Causes) > 0 {
			w.and(in("e.cause", f.Causes))
		}
		if f.Current {
			w.and("v.until = 9223372036854775807")
		}
		n := 0
		s.versions(ctx, w.String()+" ORDER BY v.seq", w.args, 0, func(v Version, err error) bool {
			if err == nil && !f.Matches(&v) {
				return true // SQL found the words in another field than the text
			}
			n++
			return yield(v, err) && n != f.Limit
		})
	}
}

// AsOf visits every record as it stood at a point in time, in the order of first
// commits.
func (s *History) AsOf(ctx context.Context, p Point) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		to := clamp(p.Seq)
		if p.Seq == 0 {
			var err error
			if p.System.IsZero() {
				to, err = s.number(ctx, s.q["last"], 0)
			} else {
				to, err = s.number(ctx, s.q["at"], 0, timeKey(p.System))
			}
			if err != nil {
				yield(Version{}, err)
				return
			}
		}
		// The plus keeps SQLite from sorting all of them: the index version_first has
		// them in the right order.
		s.versions(ctx, " WHERE +v.seq <= ?1 AND v.until > ?1 ORDER BY v.first", []any{to}, to,
			func(v Version, err error) bool {
				return err == nil && !p.Fact.IsZero() && !v.Holds(p.Fact) || yield(v, err)
			})
	}
}

// versions reads versions. What came after the entry known (0: nothing) is not told.
func (s *History) versions(ctx context.Context, where string, args []any, known int64,
	yield func(Version, error) bool) {
	rows, err := s.read.QueryContext(ctx, columns+" FROM version v JOIN entry e ON e.seq = v.seq LEFT JOIN entry n ON "+
		"n.seq = v.until"+where, args...)
	if err != nil {
		yield(Version{}, s.named(err))
		return
	}
	defer rows.Close()
	for rows.Next() {
		var x entryRow
		var v Version
		var seq, until int64
		var salt, enc, next sql.RawBytes
		if err := rows.Scan(append([]any{&seq, &until, &v.Forgotten, &salt, &enc, &next}, x.columns()...)...); err != nil {
			yield(Version{}, s.named(err))
			return
		}
		v.Audit = x.audit(seq)
		if len(salt) > 0 {
			v.Salt = bytes.Clone(salt)
		}
		if until != current && (known == 0 || until <= known) {
			v.UntilSeq, v.Until = uint64(until), keyTime(next)
		}
		var err error
		if v.Record, err = memory.ParseCanonical(enc); err == nil && !blank(&v, enc) {
			err = errors.New("it was forgotten, and is not what was left of it")
		}
		if err != nil {
			err = fmt.Errorf("%w: entry %d, record %q: %w", ErrTorn, seq, v.Audit.Record, err)
		}
		if !yield(v, err) {
			return
		}
	}
	if err := rows.Err(); err != nil {
		yield(Version{}, s.named(err))
	}
}
