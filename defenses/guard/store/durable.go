// Package store is a [memory.Store] in one file: an embedded SQLite database that
// survives a crash of the process and of the machine.
//
// # What it promises
//
// When Commit returns, the change is on disk. A change is there wholly or not at
// all, whenever the process is killed. CommitLater and Sync let many writers share
// one wait for the disk, which [memory.Shared] does.
//
// A Store is safe for concurrent use. Readers see what was committed when they
// began and never wait for a writer. Writers, also those of other processes, take
// turns: one that has waited for Options.Wait gets [ErrBusy]. So a person can
// approve a held record from the command line while a server has the file open.
//
// The file carries this package's mark and the version of its schema. Open refuses
// a file of something else ([ErrForeign]) and of a later version ([ErrNewer]), and
// changes neither. Beside FILE stand FILE-wal and FILE-shm while it is in use, and
// FILE.head always; copy all of them, FILE.head first: it may be behind the others and
// not ahead of them.
//
// # What it notices
//
// FILE.head holds the number of the last entry of the log and a chain over the log up
// to there, signed where the process has a key ([Store.Sign]). A log that ends before
// is an error ([ErrDamaged]) when the file is opened for writing; one that is
// another is a finding of a verification. Nobody can tell a log that lost
// its last entries from a crash if the head is as old as the log. A store from before
// there were heads gets one when it is next opened for writing, for what comes then; an
// earlier memtox can still read and write such a file, and the head goes on from there.
//
// # How
//
// Each version of a record is a row with the record's canonical encoding
// ([memory.Record.AppendCanonical]), its salt and, in the row of its log entry, its
// digest. Reading checks the digest, so a row that was changed from outside is an
// error ([ErrTorn]), not a memory; Versions, AsOf and Log show it nevertheless, with
// Intact false, for whoever looks into it.
//
// The database is in WAL mode. SQLite appends a transaction to the log file without
// waiting, and Sync then waits for that file (fsync): what `synchronous=FULL` does
// within each transaction, but once for all that wait. A checkpoint waits for the
// disk itself.
//
// Forgetting overwrites the content, then rewrites the whole file (VACUUM) and
// empties the log file, so no page keeps it. What the file system or the drive keeps
// of overwritten blocks, and what backups hold, is out of reach.
package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/disk"
)

const (
	// applicationID is "mtox": what the file's header says it is of.
	applicationID = 0x6d746f78
	// schemaVersion is the version of schema.sql. A later memtox that changes it
	// raises this and migrates.
	schemaVersion = 1
)

var (
	//go:embed schema.sql
	schema string
	//go:embed statements.sql
	statementSource string
)

// statements are prepared, by their names in statements.sql.
type statements map[string]*sql.Stmt

// statementsOf visits the names and texts of the statements that somebody prepares, in
// the order of statements.sql.
func statementsOf(who string) iter.Seq2[string, string] {
	return func(yield func(name, query string) bool) {
		for _, part := range strings.Split(statementSource, "\n-- ") {
			name, query, _ := strings.Cut(part, "\n")
			if name, mine := strings.CutPrefix(name, who+" "); mine && !yield(name, query) {
				return
			}
		}
	}
}

func prepare(ctx context.Context, p interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}, who string) (statements, error) {
	out := statements{}
	for name, query := range statementsOf(who) {
		st, err := p.PrepareContext(ctx, strings.Replace(query, "VERSIONS", allVersions, 1))
		if err != nil {
			return out, fmt.Errorf("preparing the statement %s: %w", name, err)
		}
		out[name] = st
	}
	return out, nil
}

// close frees the statements: SQLite does not close a file while there are any.
func (s statements) close() {
	for _, st := range s {
		st.Close()
	}
}

// The errors of this package.
var (
	ErrForeign = errors.New("not a memory store of memtox")
	ErrNewer   = errors.New("written by a later memtox")
	ErrBusy    = errors.New("another process is writing to the store")
	ErrTorn    = errors.New("a version is not what was written")
	// ErrDamaged is in the error of a store whose files are not what was written.
	ErrDamaged = errors.New("the store is damaged")
	// ErrChanged is what [History.PutPages] returns when the pages that the caller's
	// rest on are no longer the ones that it read.
	ErrChanged = errors.New("the pages were changed meanwhile")
	// ErrNotErased comes with a receipt: the records are forgotten, but their
	// content may still stand in unused parts of the file.
	ErrNotErased = errors.New("forgotten, but not yet erased from the file")
)

// Options configure Open.
type Options struct {
	// MustExist makes Open fail where there is no file, rather than make one.
	MustExist bool
	// ReadOnly opens for reading alone. It implies MustExist.
	ReadOnly bool
	// Wait is how long a writer waits for another; 0 is 10 seconds.
	Wait time.Duration
	// Disk is what the files are made and synced with, where SQLite does not do it;
	// the operating system's if nil.
	Disk disk.FS
}

// History is a memory.Store in a file, with everything that its records ever were. It
// is safe for concurrent use.
type History struct {
	path string
	disk disk.FS
	wait time.Duration
	read *sql.DB // any number of connections, one a reader
	db   *sql.DB // the one connection that writes; nil if read only
	q    statements

	mu   sync.Mutex // held by the writer
	conn *sql.Conn
	w    statements
	mark Mark // of the journal as this process knows it

	idMu         sync.Mutex
	nextID, last int // ids that are reserved and not given out: nextID < id ≤ last

	written atomic.Uint64        // transactions committed
	journal atomic.Pointer[Mark] // as the last of them left it
	syncMu  sync.Mutex
	synced  uint64 // of written, those that are on disk
	wal     disk.File
	broken  error // what made a sync fail
	head    disk.File
	signed  Mark
	sign    func([]byte) ([]byte, error) // nil for a process without the key
}

var _ memory.Journal = (*History)(nil)

// Open opens the store in a file, and makes the file if there is none.
func Open(ctx context.Context, path string, o Options) (*History, error) {
	s, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("opening the memory store %s: %w", path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options) (_ *History, err error) {
	if o.Wait == 0 {
		o.Wait = 10 * time.Second
	}
	if o.Disk == nil {
		o.Disk = disk.OS
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && !o.MustExist && !o.ReadOnly:
		if err := create(ctx, o.Disk, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() == 0:
		return nil, wasOurs(path, fmt.Errorf("%w: it is empty; remove it to have a new store made there", ErrForeign))
	}
	if err := check(ctx, path, o.Wait); err != nil {
		return nil, wasOurs(path, err)
	}
	s := &History{path: path, disk: o.Disk, wait: o.Wait}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.read, err = sql.Open("sqlite", dsn(path, "rw", o.Wait, "query_only(1)", "cache_size(-8000)")); err != nil {
		return nil, err
	}
	s.read.SetMaxIdleConns(4)
	if s.q, err = prepare(ctx, s.read, "read"); err != nil {
		return nil, s.named(err)
	}
	if o.ReadOnly {
		return s, nil
	}
	// secure_delete: what is deleted is overwritten. Checkpoints every 4 MB.
	if s.db, err = sql.Open("sqlite", dsn(path, "rw", o.Wait, "synchronous(NORMAL)", "secure_delete(1)", "foreign_keys(0)",
		"cache_size(-32000)")); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(1)
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, s.named(err)
	}
	if s.w, err = prepare(ctx, s.conn, "write"); err != nil {
		return nil, s.named(err)
	}
	if err := s.openHead(ctx); err != nil {
		return nil, err
	}
	var dirty bool
	if err := s.conn.QueryRowContext(ctx, "SELECT dirty FROM state").Scan(&dirty); err != nil {
		return nil, s.named(err)
	}
	if dirty { // killed between a forgetting and its erasure
		if err := s.Erase(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func dsn(path, mode string, wait time.Duration, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")"},
		"_txlock": {"deferred"}}
	q["_pragma"] = append(q["_pragma"], pragmas...)
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	abs = filepath.ToSlash(abs)
	if runtime.GOOS == "windows" {
		abs = "/" + abs
	}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String()
}

// create makes an empty store beside the path and puts it there whole, so that no
// kill leaves half a store.
func create(ctx context.Context, d disk.FS, path string) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer d.Remove(tmp.Name())
	if err := tmp.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(tmp.Name(), "rw", time.Second, "journal_mode(DELETE)", "synchronous(EXTRA)"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf("BEGIN;\nPRAGMA application_id = %d;\nPRAGMA user_version = "+
		"%d;\n%s\nCOMMIT;\nPRAGMA journal_mode = WAL;",
		applicationID, schemaVersion, schema))
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return putNew(d, tmp.Name(), path)
}

// putNew puts a whole file where there is none. Where somebody else was quicker, theirs
// stays, and the error is fs.ErrExist.
func putNew(d disk.FS, tmp, path string) error {
	err := d.Link(tmp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
		var own disk.File
		if own, err = d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL); err == nil {
			err = errors.Join(own.Close(), d.Rename(tmp, path))
		}
	}
	return errors.Join(err, d.SyncDir(filepath.Dir(path)))
}

// check looks whether the file is ours, through SQLite and read only: to open it
// beside SQLite and close it again would drop the locks of this process.
func check(ctx context.Context, path string, wait time.Duration) (err error) {
	db, err := sql.Open("sqlite", dsn(path, "ro", wait))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var app, version int
	if err = db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	var failed *sqlite.Error
	switch {
	case errors.As(err, &failed) && failed.Code()&0xff == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: it is not a database", ErrForeign)
	case errors.As(err, &failed) && slices.Contains(damage, failed.Code()&0xff):
		return fmt.Errorf("%w: %w: %s", ErrDamaged, err, Remedy)
	case err != nil:
		return err
	case app != applicationID:
		return fmt.Errorf("%w: it is a database of something else (application id %#x)", ErrForeign, uint32(app))
	case version > schemaVersion:
		return fmt.Errorf("%w: its schema has version %d, this one knows %d; use that memtox, or a later one", ErrNewer,
			version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("its schema has version %d, which no memtox has written", version)
	}
	return nil
}

// wasOurs says of a file that is none of ours that it is damaged, if what lies beside
// it says that it was a store.
func wasOurs(path string, err error) error {
	for _, beside := range []string{HeadFile(path), path + ".verifier"} {
		if _, gone := os.Stat(beside); gone == nil && !errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w: %v, and %s lies beside it: %s", ErrDamaged, err, filepath.Base(beside),
				Remedy)
		}
	}
	return err
}

// Remedy is what can be done about a damaged file, as errors about one say it.
const Remedy = "bring it back from a copy; `memtox memory verify` says what is left"

// named gives SQLite's commonest errors their names.
func (s *History) named(err error) error {
	var failed *sqlite.Error
	code := 0
	if errors.As(err, &failed) {
		code = failed.Code() & 0xff
	}
	switch {
	case code == sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%w: %s was locked for %s; try again, or stop the other process", ErrBusy, filepath.Base(s.path),
			s.wait)
	case errors.Is(err, ErrDamaged):
	case slices.Contains(damage, code), err != nil && strings.Contains(err.Error(), "sql: Scan error"):
		// A type that no column of ours has, a table that is not there: all of them were.
		return fmt.Errorf("%w: %s: %w: %s", ErrDamaged, filepath.Base(s.path), err, Remedy)
	}
	return err
}

// damage are the codes of what SQLite cannot make sense of.
var damage = []int{sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
	sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_INTERNAL}

// Path is the file that the store is in.
func (s *History) Path() string { return s.path }

// Close releases the file. What was committed and not synced is synced first.
func (s *History) Close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.Sync(context.Background()))
		s.giveBackIDs()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w.close()
		errs = append(errs, s.conn.Close())
		s.conn = nil
	}
	s.q.close()
	for _, db := range []*sql.DB{s.read, s.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	for _, f := range []*disk.File{&s.wal, &s.head} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// Sync implements [memory.Journal]. Those who call while another waits for the disk
// are served by the next wait, all together.
func (s *History) Sync(context.Context) error {
	mine := s.written.Load()
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	switch {
	case s.broken != nil:
		return s.broken
	case s.synced >= mine:
		return nil
	}
	upTo := s.written.Load()
	mark := s.journal.Load() // before the wait: the head is never ahead of the disk
	err := s.syncWAL()
	if err != nil {
		// The kernel may have dropped the pages that it could not write: nobody can
		// tell what is on disk, and syncing again would report success.
		s.broken = fmt.Errorf("waiting for the disk: %w; nothing more is written until the store is opened again", err)
		return s.broken
	}
	s.synced = upTo
	if mark != nil {
		if err := s.writeHead(*mark); err != nil {
			s.broken = fmt.Errorf("writing %s: %w; nothing more is written until the store is opened again",
				filepath.Base(HeadFile(s.path)), err)
			return s.broken
		}
	}
	return nil
}

func (s *History) syncWAL() (err error) {
	if s.wal == nil {
		// The log file stays the same one while a connection is open.
		if s.wal, err = s.disk.OpenFile(s.path+"-wal", os.O_RDWR); err != nil {
			return err
		}
	}
	return s.wal.Sync()
}

func (s *History) isBroken() error {
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	return s.broken
}
