package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FILE.head says outside the database how far the journal went when it was last on
// disk, and what it was: entries that are gone since, changed or put in another order
// are found with it. It is one block of a disk, written in place after the wait for
// the disk, so it is never ahead of the database, and behind it by what a crash came
// between.
const headSize = 512

// headPage is the page that says from which entry on the store has had a head: one
// that was taken away is missed.
const headPage = "durable/head"

// HeadFile is the name of the head of a store.
func HeadFile(store string) string { return store + ".head" }

// encodeHead writes the marks, each as its entries, chain and signature, with a digest
// of the line.
func encodeHead(now, signed Mark) []byte {
	var b strings.Builder
	b.WriteString("memtox head 1")
	for _, m := range []Mark{now, signed} {
		fmt.Fprintf(&b, " %d %d %s %s", m.After, m.Entry, base64.RawStdEncoding.EncodeToString(m.Chain[:]),
			base64.StdEncoding.EncodeToString(m.Signature))
	}
	sum := sha256.Sum256([]byte(b.String()))
	fmt.Fprintf(&b, " %s\n", base64.RawStdEncoding.EncodeToString(sum[:]))
	return fmt.Appendf(nil, "%-*s", headSize, b.String())
}

func decodeHead(b []byte) (now, signed Mark, err error) {
	f := strings.Split(string(b), " ")
	if len(f) >= 11 {
		for i, m := range []*Mark{&now, &signed} {
			at := 3 + 4*i
			_, a := fmt.Sscan(f[at]+" "+f[at+1], &m.After, &m.Entry)
			chain, c := base64.RawStdEncoding.DecodeString(f[at+2])
			copy(m.Chain[:], chain)
			var s error
			m.Signature, s = base64.StdEncoding.DecodeString(f[at+3])
			err = errors.Join(err, a, c, s)
		}
	}
	// Its one form: not a bit of it can be another.
	if len(f) < 11 || err != nil || string(encodeHead(now, signed)) != string(b) {
		return now, signed, fmt.Errorf("%w: its head is not what was written", ErrDamaged)
	}
	return now, signed, nil
}

// readHead reads the head. Another process may be writing it, or making it where the file
// system has no links: what looks damaged or empty is looked at again, for a moment.
func readHead(path string) (now, signed Mark, err error) {
	for try := range 10 {
		if try > 0 {
			time.Sleep(time.Duration(try) * time.Millisecond)
		}
		if now, signed, err = readHeadOnce(path); !errors.Is(err, ErrDamaged) {
			break
		}
	}
	return now, signed, err
}

func readHeadOnce(path string) (now, signed Mark, err error) {
	f, err := os.Open(HeadFile(path))
	if err != nil {
		return now, signed, err
	}
	defer f.Close()
	b := make([]byte, headSize+1)
	n, err := f.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		return now, signed, err
	}
	if now, signed, err = decodeHead(b[:n]); err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(HeadFile(path)), err)
	}
	return now, signed, err
}

// openHead takes the head up, or makes it for a store that has none. It reads the head
// before the journal: another process writes in the other order, so whatever the head
// knows of is in the journal by then.
func (s *History) openHead(ctx context.Context) error {
	now, signed, err := readHead(s.path)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return err
	}
	var last uint64
	if err := s.conn.QueryRowContext(ctx, "SELECT last FROM state").Scan(&last); err != nil {
		return s.named(err)
	}
	switch {
	case absent:
		now.After, now.Entry = last, last
	case now.Entry > last:
		return fmt.Errorf("%w: its journal ends with entry %d, and %s knows of entry %d: bring both back from a copy, "+
			"or move %[3]s away to do without the entries that are gone", ErrDamaged, last, filepath.Base(HeadFile(s.path)),
			now.Entry)
	}
	s.mark, s.signed = now, signed
	if absent {
		err := s.makeHead(now)
		if errors.Is(err, fs.ErrExist) { // somebody else was quicker: theirs it is
			s.mark, s.signed, err = readHead(s.path)
		}
		if err != nil {
			return err
		}
	}
	if s.head, err = s.disk.OpenFile(HeadFile(s.path), os.O_RDWR); err != nil {
		return err
	}
	if _, had, err := s.Page(ctx, headPage); err != nil || had {
		return err
	}
	// The head is on disk before the page says that it must be there; whoever made it may
	// have been killed before he saw to that.
	if err := s.disk.SyncDir(filepath.Dir(s.path)); err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, "INSERT OR IGNORE INTO page VALUES (?, ?)", []byte(headPage),
		binary.BigEndian.AppendUint64(nil, s.mark.After))
	return s.named(err)
}

// makeHead puts the first head there whole.
func (s *History) makeHead(now Mark) error {
	tmp := HeadFile(s.path) + ".new-" + rand.Text()
	f, err := s.disk.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer s.disk.Remove(tmp)
	_, err = f.WriteAt(encodeHead(now, Mark{}), 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return putNew(s.disk, tmp, HeadFile(s.path))
}

// writeHead writes the head. The signed mark of a process that has a key is kept by
// one that has none.
func (s *History) writeHead(now Mark) error {
	if s.sign != nil {
		sig, err := s.sign(now.Text())
		if err != nil {
			return fmt.Errorf("signing the head: %w", err)
		}
		s.signed = now
		s.signed.Signature = sig
	} else if _, signed, err := readHead(s.path); err == nil {
		s.signed = signed
	}
	_, err := s.head.WriteAt(encodeHead(now, s.signed), 0)
	return err
}

// Sign has every state of the journal signed from now on, first the one that is.
func (s *History) Sign(sign func(text []byte) ([]byte, error)) error {
	s.mu.Lock()
	err := s.follow(context.Background(), nil)
	now := s.mark
	s.mu.Unlock()
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	if err == nil {
		err = s.syncWAL()
	}
	if s.sign = sign; err == nil {
		err = s.writeHead(now)
	}
	return err
}

// Head is what a store's head says.
type Head struct {
	// Now is how the journal stood when it was last on disk, Signed how it stood when
	// somebody with a key last signed it.
	Now, Signed Mark
	// Since is the entry behind which the store has had a head; Known says that it ever
	// had one.
	Since uint64
	Known bool
}

// Head returns what the head says.
func (s *History) Head(ctx context.Context) (h Head, err error) {
	var b []byte
	b, h.Known, err = s.Page(ctx, headPage)
	switch {
	case err != nil:
		return h, err
	case h.Known && len(b) != 8:
		return h, fmt.Errorf("%w: page %s has %d bytes", ErrDamaged, headPage, len(b))
	case h.Known:
		h.Since = binary.BigEndian.Uint64(b)
	}
	h.Now, h.Signed, err = readHead(s.path)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case gone && h.Known:
		return h, fmt.Errorf("%w: %s is gone", ErrDamaged, filepath.Base(HeadFile(s.path)))
	case gone:
		return h, nil
	}
	return h, err
}

// follow brings the chain up to what other processes have written, within a
// transaction; c is nil outside of one.
func (s *History) follow(ctx context.Context, c *counters) error {
	switch {
	case c == nil:
	case uint64(c.last) == s.mark.Entry:
		return nil
	case uint64(c.last) < s.mark.Entry:
		return fmt.Errorf("%w: its journal ends with entry %d, and had entry %d: %s", ErrDamaged, c.last, s.mark.Entry, Remedy)
	}
	for row, err := range answer(s.conn.QueryContext(ctx, entryColumns+`e.record, coalesce(s.name, x'')
		FROM entry e LEFT JOIN snapshot s ON s.seq = e.seq WHERE e.seq > ? ORDER BY e.seq`, int64(s.mark.Entry))) {
		var a Audit
		var name string
		if err == nil {
			a, err = scanEntry(row, &name)
		}
		if err != nil {
			return err
		}
		s.mark.Follow(&a, name)
	}
	return nil
}
