package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// open ended: what the column until has of a current version.
const current = int64(1<<63 - 1)

// counters are the row of the table state.
type counters struct {
	last, records, ids, snaps int64
	at                        []byte
}

// raise is a time in the log: not before that of its last entry.
func (c *counters) raise(t time.Time) []byte {
	if at := timeKey(t); bytes.Compare(at, c.at) > 0 {
		return at
	}
	return c.at
}

// transact runs f in a transaction that writes, alone among all processes.
func (s *History) transact(ctx context.Context, f func(context.Context, *counters) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return errors.New("the store is open for reading only, or closed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.isBroken(); err != nil {
		return err
	}
	// What has begun is finished: a cancelled statement would leave it to chance
	// whether the transaction lasted.
	ctx = context.WithoutCancel(ctx)
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return s.named(err)
	}
	var c counters
	before := s.mark
	err := s.w["state"].QueryRowContext(ctx).Scan(&c.last, &c.at, &c.records, &c.ids, &c.snaps)
	if err == nil {
		err = s.follow(ctx, &c)
	}
	if err == nil {
		err = f(ctx, &c)
	}
	if err == nil {
		_, err = s.w["setState"].ExecContext(ctx, c.last, bytesOf(c.at), c.records, c.ids, c.snaps)
	}
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		s.mark = before
		_, undone := s.conn.ExecContext(ctx, "ROLLBACK")
		if undone != nil && s.inTransaction(ctx) {
			err = errors.Join(err, undone)
		}
		return s.named(err)
	}
	mark := s.mark
	s.journal.Store(&mark)
	s.written.Add(1)
	return nil
}

// inTransaction reports whether a transaction is open: SQLite ends one by itself
// after some errors, and then ROLLBACK fails for no reason.
func (s *History) inTransaction(ctx context.Context) bool {
	_, err := s.conn.ExecContext(ctx, "BEGIN; ROLLBACK")
	return err != nil
}

// Commit implements [memory.Store].
func (s *History) Commit(ctx context.Context, b *memory.Batch) (memory.Committed, error) {
	c, err := s.CommitLater(ctx, b)
	if err != nil {
		return c, err
	}
	return c, s.Sync(ctx)
}

// CommitLater implements [memory.Journal].
func (s *History) CommitLater(ctx context.Context, b *memory.Batch) (memory.Committed, error) {
	if err := b.Check(); err != nil {
		return memory.Committed{}, err
	}
	var out memory.Committed
	err := s.transact(ctx, func(ctx context.Context, c *counters) (err error) {
		if err = s.inPlace(ctx, b); err == nil {
			out, err = s.put(ctx, c, b, Digest{})
		}
		return err
	})
	if err != nil {
		return memory.Committed{}, err
	}
	return out, nil
}

// inPlace is an error for a write that takes the place of what is there no longer: it was
// read before somebody else, a person perhaps, put another there.
func (s *History) inPlace(ctx context.Context, b *memory.Batch) error {
	if b.Cause != memory.CauseWrite || len(b.Records) != 2 || b.Records[1].Parent != b.Records[0].ID {
		return nil
	}
	old, known, err := s.known(ctx, b.Records[0].ID)
	if known && old.state == memory.Retired {
		err = fmt.Errorf("%w: record %q was superseded or removed meanwhile: look again", memory.ErrMovedOn, b.Records[0].ID)
	}
	return err
}

// Decide commits the batch that f makes of what it reads of the store, which nobody
// changes meanwhile: not this process, nor another. No batch changes nothing, an error of
// f neither. f must not write to the store, nor ask it for an id.
func (s *History) Decide(ctx context.Context, f func(context.Context) (*memory.Batch, error)) (memory.Committed, error) {
	var out memory.Committed
	err := s.transact(ctx, func(ctx context.Context, c *counters) error {
		b, err := f(ctx)
		if b == nil || err != nil {
			return err
		}
		if err := b.Check(); err != nil {
			return err
		}
		out, err = s.put(ctx, c, b, Digest{})
		return err
	})
	if err != nil {
		return memory.Committed{}, err
	}
	return out, s.Sync(ctx)
}

// put writes a batch. The digest is that of the entry that is about no record.
func (s *History) put(ctx context.Context, c *counters, b *memory.Batch, whole Digest) (memory.Committed, error) {
	at := c.raise(b.At)
	c.at = at
	out := memory.Committed{At: keyTime(at)}
	if b.Snapshot != nil {
		c.snaps++
		out.Snapshot = "s" + strconv.FormatInt(c.snaps, 10)
		if _, err := s.w["snapshot"].ExecContext(ctx, c.snaps, []byte(b.Snapshot.Name), []byte(b.Snapshot.Reason),
			[]byte(b.By), c.last+1, at, []byte{}); err != nil {
			return out, err
		}
	}
	list := entries(b, uint64(c.last+1), out.At, out.Snapshot)
	records := b.Records
	for i := range list {
		var err error
		switch a := &list[i]; {
		case a.Cause == memory.CauseSnapshot:
			err = s.log(ctx, a, b.Snapshot.Name)
		case a.Record == "":
			a.Digest = whole
			err = s.log(ctx, a, "")
		default:
			err = s.change(ctx, c, a, &records[0])
			records = records[1:]
		}
		if err != nil {
			return out, err
		}
	}
	out.First, out.Last = list[0].Seq, list[len(list)-1].Seq
	if b.Snapshot != nil && len(list) > 1 {
		out.First = list[1].Seq
	}
	c.last = int64(out.Last)
	return out, nil
}

func (s *History) log(ctx context.Context, a *Audit, snapshot string) error {
	s.mark.Follow(a, snapshot)
	digest := []byte{}
	if a.Digest != (Digest{}) {
		digest = a.Digest[:]
	}
	_, err := s.w["entry"].ExecContext(ctx, int64(a.Seq), int64(a.Group), timeKey(a.At), int64(a.Cause), int64(a.Route),
		[]byte(a.By), []byte(a.Why), []byte(a.Record), a.Snapshot, int64(a.Target), digest)
	return err
}

// known is what the file has of the newest version of a record.
type known struct {
	seq, first, size int64
	store, key       []byte
	state            memory.State
	forgotten        bool
}

func (s *History) known(ctx context.Context, id string) (k known, ok bool, err error) {
	var state int64
	err = s.w["known"].QueryRowContext(ctx, []byte(id)).Scan(&k.seq, &k.first, &k.store, &k.key, &state, &k.size, &k.forgotten)
	k.state = memory.State(state)
	if errors.Is(err, sql.ErrNoRows) {
		return k, false, nil
	}
	return k, err == nil, err
}

// change gives a record a new version.
func (s *History) change(ctx context.Context, c *counters, a *Audit, r *memory.Record) error {
	old, known, err := s.known(ctx, r.ID)
	if err != nil {
		return err
	}
	first := old.first
	if known {
		if err := memory.SamePlace(&memory.Record{Store: string(old.store), Key: string(old.key)}, r, old.forgotten); err != nil {
			return err
		}
		if _, err := s.w["until"].ExecContext(ctx, int64(a.Seq), old.seq); err != nil {
			return err
		}
		if old.state.Visible() {
			if _, err := s.w["used"].ExecContext(ctx, old.store, -old.size); err != nil {
				return err
			}
		}
	} else {
		first = int64(a.Seq)
		c.records++
	}
	if r.State.Visible() {
		if _, err := s.w["used"].ExecContext(ctx, []byte(r.Store), int64(len(r.Text))); err != nil {
			return err
		}
	}
	v := Version{Audit: *a, Record: *r, Salt: make([]byte, SaltSize)}
	rand.Read(v.Salt)
	a.Digest = v.Sum()
	if err := s.log(ctx, a, ""); err != nil {
		return err
	}
	_, err = s.w["version"].ExecContext(ctx, int64(a.Seq), first, []byte(r.ID), []byte(r.Store), []byte(r.Key),
		[]byte(r.Principal),
		[]byte(r.Origin.Source), int64(r.State), int64(len(r.Text)), int64(0), v.Salt, r.AppendCanonical(nil))
	if err != nil {
		return err
	}
	for id := range citationsOf(r) {
		if _, err := s.w["cite"].ExecContext(ctx, []byte(id), int64(a.Seq)); err != nil {
			return err
		}
	}
	return nil
}

// block is how many ids are reserved at a time: a blocked proposal uses one up and
// must not cost a transaction.
const block = 256

// NextID implements [memory.Store].
func (s *History) NextID(ctx context.Context) (string, error) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	for {
		if s.nextID == s.last {
			err := s.transact(ctx, func(_ context.Context, c *counters) error {
				s.nextID = int(c.ids)
				c.ids += block
				return nil
			})
			if err != nil {
				return "", fmt.Errorf("reserving ids: %w", err)
			}
			s.last = s.nextID + block
		}
		s.nextID++
		id := "r" + strconv.Itoa(s.nextID)
		var taken bool
		if err := s.q["taken"].QueryRowContext(ctx, []byte(id)).Scan(&taken); err != nil {
			return "", s.named(err)
		}
		if !taken {
			return id, nil
		}
	}
}

// giveBackIDs returns the reserved ids that were not given out, if nobody has
// reserved more since.
func (s *History) giveBackIDs() {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	if s.nextID == s.last {
		return
	}
	// It is a nicety: ids that are lost are merely not used.
	_ = s.transact(context.Background(), func(_ context.Context, c *counters) error {
		if c.ids == int64(s.last) {
			c.ids = int64(s.nextID)
		}
		return nil
	})
	s.last = s.nextID
}

// Seal sets the root of a snapshot, once. Another root for a snapshot that has one is
// an error.
func (s *History) Seal(ctx context.Context, id string, root []byte) error {
	snap, err := s.FindSnapshot(ctx, id)
	if err == nil && len(root) == 0 {
		err = errors.New("the root is empty")
	}
	if err == nil {
		err = s.transact(ctx, func(ctx context.Context, _ *counters) error {
			done, err := s.w["seal"].ExecContext(ctx, root, snap.ID)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); n == 0 {
				return errors.Join(err, fmt.Errorf("it already has another root (%x)", snap.Root))
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("sealing snapshot %q: %w", text.Clip(id, 80), err)
	}
	return s.Sync(ctx)
}

// PutPages implements [Pager].
func (s *History) PutPages(ctx context.Context, name string, was []byte, pages map[string][]byte) error {
	err := s.transact(ctx, func(ctx context.Context, _ *counters) error {
		// On the connection that writes: no other process can write until this is done.
		var now []byte
		err := s.w["pageNow"].QueryRowContext(ctx, []byte(name)).Scan(&now)
		switch absent := errors.Is(err, sql.ErrNoRows); {
		case err != nil && !absent:
			return err
		case absent != (was == nil) || !bytes.Equal(now, was):
			return ErrChanged
		}
		for name, data := range pages {
			if _, err := s.w["page"].ExecContext(ctx, []byte(name), bytesOf(data)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("storing %d pages: %w", len(pages), err)
	}
	return s.Sync(ctx)
}

// Forget erases records: their content leaves every version. What stays is the
// tombstone. If the error is [ErrNotErased] the receipt is
// good: the records are forgotten, and Erase, or opening the store again, erases
// what the file may still hold of them.
func (s *History) Forget(ctx context.Context, f Forgetting) (Receipt, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(f.IDs)))
	if len(ids) == 0 {
		return Receipt{}, errors.New("forgetting: no record is named")
	}
	var out Receipt
	err := s.transact(ctx, func(ctx context.Context, c *counters) (err error) {
		out, err = s.forget(ctx, c, f, ids)
		return err
	})
	if err != nil {
		return Receipt{}, err
	}
	if err := s.Sync(ctx); err != nil {
		return out, err
	}
	return out, s.Erase(ctx)
}

func (s *History) forget(ctx context.Context, c *counters, f Forgetting, ids []string) (out Receipt, err error) {
	b := memory.Batch{At: f.At, Cause: memory.CauseForget, By: f.By, Why: f.Why}
	type past struct {
		seq    int64
		record memory.Record
	}
	var blank []past
	for _, id := range ids {
		old, known, err := s.known(ctx, id)
		switch {
		case err != nil:
			return out, err
		case !known:
			return out, fmt.Errorf("forgetting record %q: %w", text.Clip(id, 80), memory.ErrNotFound)
		case old.forgotten:
			return out, fmt.Errorf("forgetting record %q: it is forgotten already", id)
		}
		t := Tombstone{Record: id, By: f.By, Why: f.Why}
		var last memory.Record
		for row, err := range answer(s.w["history"].QueryContext(ctx, []byte(id))) {
			var e Erased
			var salt, enc, digest []byte
			if err == nil {
				err = row.Scan(&e.Seq, &salt, &enc, &digest)
			}
			if err != nil {
				return out, err
			}
			// Content that cannot be read any more is erased too.
			last, _ = memory.ParseCanonical(enc)
			last.ID, last.Store = id, string(old.store)
			e.Content = SumContent(salt, e.Seq, last.Text)
			copy(e.Digest[:], digest)
			t.Erased = append(t.Erased, e)
			out.Openings = append(out.Openings, Opening{Record: id, Seq: e.Seq, Salt: salt})
			blank = append(blank, past{int64(e.Seq), Bare(last)})
		}
		out.Tombstones = append(out.Tombstones, t)
		last = Bare(last)
		last.State, last.Key = memory.Retired, string(old.key)
		b.Records = append(b.Records, last)
	}
	for n := range out.Tombstones {
		t := &out.Tombstones[n]
		t.Seq, t.At = uint64(c.last)+2+uint64(n), keyTime(c.raise(b.At))
	}
	if _, err := s.put(ctx, c, &b, SumTombstones(out.Tombstones)); err != nil {
		return out, err
	}
	for n := range out.Tombstones {
		t := &out.Tombstones[n]
		erased, err := json.Marshal(t.Erased)
		if err != nil {
			return out, err
		}
		if _, err := s.w["tombstone"].ExecContext(ctx, int64(t.Seq), []byte(t.Record), string(erased)); err != nil {
			return out, err
		}
		last := b.Records[n]
		last.Key = ""
		blank = append(blank, past{int64(t.Seq), last})
	}
	for _, p := range blank {
		enc := p.record.AppendCanonical(nil)
		if _, err := s.w["blank"].ExecContext(ctx, blankSum(enc), enc, p.seq); err != nil {
			return out, err
		}
	}
	_, err = s.conn.ExecContext(ctx, "UPDATE state SET dirty = 1")
	return out, err
}

// blankSum stands in the place of the salt that is gone: no digest covers what a
// forgotten version keeps.
func blankSum(enc []byte) []byte {
	sum := sha256.Sum256(append([]byte("memtox forgotten 1\x00"), enc...))
	return sum[:]
}

// Erase rewrites the file so that nothing of what was forgotten stands in its unused
// parts, nor in the log file. Forget calls it.
func (s *History) Erase(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.isBroken()
	if err == nil {
		err = s.rewrite(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w; close whatever reads the store, then open it again", ErrNotErased, s.named(err))
	}
	return nil
}

func (s *History) rewrite(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("the store is open for reading only, or closed")
	}
	if _, err := s.conn.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("rewriting the file: %w", err)
	}
	if err := s.emptyLog(ctx); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "UPDATE state SET dirty = 0"); err != nil {
		return err
	}
	s.written.Add(1)
	return nil
}

// emptyLog moves the log file's pages into the file and cuts it to nothing. SQLite waits
// for a reader that still looks at an old state as long as for another writer.
func (s *History) emptyLog(ctx context.Context) error {
	var busy, pages, moved int
	err := s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	if err == nil && busy != 0 {
		err = errors.New("a reader still looks at an older state")
	}
	if err != nil {
		return fmt.Errorf("emptying the log file: %w", err)
	}
	return nil
}

// bytesOf is never nil: the driver stores nil as NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
