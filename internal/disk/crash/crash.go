// Package crash is a file layer for tests. It does on real files what it is told,
// notes it, and makes what a power cut at any moment may have left.
//
// What that is goes by what POSIX promises, and not by what one file system does:
//
//   - What was written to a file before its last sync is there.
//   - Of each later write any sectors are there and others are not, whatever was
//     written after it. A file's size is one that it had since its last sync, and
//     what it has of that and was not written is zeros or anything at all.
//   - Names that were made, changed or removed in a directory before its last sync are
//     so. Of the later changes any are done and others are not; a rename within a
//     directory is done or not. To sync a file says nothing of its name.
package crash

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/memtox/memtox/internal/disk"
)

// sector is what a disk writes wholly or not at all, in bytes.
const sector = 512

// Disk is a [disk.FS] for the files below a directory. Nothing is really synced: only
// the machine's own power cut would tell.
type Disk struct {
	root string
	// Fail, if not nil, is asked before each call what to fail it with. A write that
	// fails writes its first half. It is set before the first call.
	Fail func(call, path string) error

	mu    sync.Mutex
	start map[string]*node // the names when the noting began, by path
	names map[string]*node // as the operating system has them now
	log   []event
}

// node is a file, or a directory, which its path stands for.
type node struct {
	dir  bool
	base []byte // durable when the noting began
}

// event is one call. Exactly one of its kinds is set.
type event struct {
	node *node // of a file: write, truncate or sync
	call byte  // 'w', 't' or 's'
	off  int64 // of a write; the size of a truncate
	data []byte

	dir     string           // of a directory: names that change together, or, without any, a sync
	changes map[string]*node // nil removes

	mark any
}

// New begins to note what happens below a directory that is there, and what is in it
// is durable.
func New(root string) *Disk {
	d := &Disk{root: filepath.Clean(root), names: map[string]*node{}}
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n := &node{dir: e.IsDir()}
		if !n.dir {
			n.base, err = os.ReadFile(path)
		}
		d.names[path] = n
		return err
	})
	if err != nil {
		panic(err)
	}
	delete(d.names, d.root)
	d.start = maps.Clone(d.names)
	return d
}

// Mark notes something that was acknowledged.
func (d *Disk) Mark(what any) { d.note(event{mark: what}) }

// Len is how many events were noted.
func (d *Disk) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

func (d *Disk) note(e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, e)
}

func (d *Disk) fails(call, path string) error {
	if d.Fail == nil {
		return nil
	}
	if err := d.Fail(call, path); err != nil {
		return &fs.PathError{Op: call, Path: path, Err: err}
	}
	return nil
}

// Opened notes a file that is open now, made if it was not known before. It returns
// nil for a file elsewhere.
func (d *Disk) Opened(path string) *File {
	path = filepath.Clean(path)
	if rel, err := filepath.Rel(d.root, path); err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[path]
	if n == nil {
		n = new(node)
		d.rename(path, n)
	}
	return &File{d, n}
}

// rename notes that a name stands for something else. The caller holds mu.
func (d *Disk) rename(path string, n *node) {
	d.log = append(d.log, event{dir: filepath.Dir(path), changes: map[string]*node{filepath.Base(path): n}})
	if d.names[path] = n; n == nil {
		delete(d.names, path)
	}
}

// File is a file of which is noted what is done with it, by whomever.
type File struct {
	d *Disk
	n *node
}

// Wrote notes a write.
func (f *File) Wrote(b []byte, off int64) {
	f.d.note(event{node: f.n, call: 'w', off: off, data: slices.Clone(b)})
}

// Truncated notes a change of the size.
func (f *File) Truncated(size int64) { f.d.note(event{node: f.n, call: 't', off: size}) }

// Synced notes a sync.
func (f *File) Synced() { f.d.note(event{node: f.n, call: 's'}) }

// Removed notes that a name is gone.
func (d *Disk) Removed(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if path = filepath.Clean(path); d.names[path] != nil {
		d.rename(path, nil)
	}
}

// DirSynced notes the sync of a directory.
func (d *Disk) DirSynced(dir string) { d.note(event{dir: filepath.Clean(dir)}) }

// OpenFile implements [disk.FS].
func (d *Disk) OpenFile(path string, flag int) (disk.File, error) {
	call := "open"
	if flag&os.O_CREATE != 0 {
		call = "create"
	}
	if err := d.fails(call, path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return nil, err
	}
	o := &opened{File: f, d: d, noted: d.Opened(path)}
	if o.noted != nil && flag&os.O_TRUNC != 0 {
		o.noted.Truncated(0)
	}
	return o, nil
}

// ReadDir implements [disk.FS].
func (d *Disk) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := d.fails("readdir", dir); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
}

// Mkdir implements [disk.FS].
func (d *Disk) Mkdir(dir string) error {
	return d.change("mkdir", dir, func() error { return os.Mkdir(dir, 0o777) }, func() { d.rename(dir, &node{dir: true}) })
}

// Rename implements [disk.FS], within a directory.
func (d *Disk) Rename(from, to string) error {
	return d.change("rename", to, func() error { return os.Rename(from, to) }, func() {
		n := d.names[from]
		d.log = append(d.log, event{dir: filepath.Dir(to),
			changes: map[string]*node{filepath.Base(from): nil, filepath.Base(to): n}})
		delete(d.names, from)
		d.names[to] = n
	})
}

// Link implements [disk.FS].
func (d *Disk) Link(from, to string) error {
	return d.change("link", to, func() error { return os.Link(from, to) }, func() { d.rename(to, d.names[from]) })
}

// Remove implements [disk.FS].
func (d *Disk) Remove(path string) error {
	return d.change("remove", path, func() error { return os.Remove(path) }, func() { d.rename(path, nil) })
}

func (d *Disk) change(call, path string, do func() error, note func()) error {
	if err := d.fails(call, path); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := do()
	if err == nil {
		note()
	}
	return err
}

// SyncDir implements [disk.FS].
func (d *Disk) SyncDir(dir string) error {
	if err := d.fails("syncdir", dir); err != nil {
		return err
	}
	d.DirSynced(dir)
	return nil
}

// opened is a file that the layer itself has opened.
type opened struct {
	*os.File
	d     *Disk
	noted *File // nil elsewhere
	pos   int64 // of Write
}

func (o *opened) Write(b []byte) (int, error) {
	n, err := o.WriteAt(b, o.pos)
	o.pos += int64(n)
	return n, err
}

func (o *opened) WriteAt(b []byte, off int64) (int, error) {
	failed := o.d.fails("write", o.Name())
	if failed != nil {
		b = b[:len(b)/2]
	}
	n, err := o.File.WriteAt(b, off)
	if o.noted != nil && n > 0 {
		o.noted.Wrote(b[:n], off)
	}
	if failed != nil {
		err = failed
	}
	return n, err
}

func (o *opened) ReadAt(b []byte, off int64) (int, error) {
	if err := o.d.fails("read", o.Name()); err != nil {
		return 0, err
	}
	return o.File.ReadAt(b, off)
}

func (o *opened) Truncate(size int64) error {
	if err := o.d.fails("truncate", o.Name()); err != nil {
		return err
	}
	err := o.File.Truncate(size)
	if o.noted != nil && err == nil {
		o.noted.Truncated(size)
	}
	return err
}

func (o *opened) Sync() error {
	if err := o.d.fails("sync", o.Name()); err != nil {
		return err
	}
	if _, err := o.Stat(); err != nil { // closed
		return err
	}
	if o.noted != nil {
		o.noted.Synced()
	}
	return nil
}

// Cut makes, in a directory that it makes, what a power cut behind the first so many
// events may have left, and returns what was marked until then.
func (d *Disk) Cut(t testing.TB, r *rand.Rand, events int, to string) (marked []any) {
	t.Helper()
	d.mu.Lock()
	log := d.log[:events:events]
	d.mu.Unlock()
	calls := map[*node][]event{}
	synced := map[string]int{} // directories: the event behind which names may not be durable
	for i, e := range log {
		switch {
		case e.node != nil:
			calls[e.node] = append(calls[e.node], e)
		case e.dir != "" && e.changes == nil:
			synced[e.dir] = i
		case e.dir == "":
			marked = append(marked, e.mark)
		}
	}
	names := map[string]map[string]*node{}
	set := func(dir, name string, n *node) {
		if names[dir] == nil {
			names[dir] = map[string]*node{}
		}
		if names[dir][name] = n; n == nil {
			delete(names[dir], name)
		}
	}
	for path, n := range d.start {
		set(filepath.Dir(path), filepath.Base(path), n)
	}
	keep := keeper(r, len(log))
	for i, e := range log {
		if e.changes != nil && (i < synced[e.dir] || keep(i)) {
			for name, n := range e.changes {
				set(e.dir, name, n)
			}
		}
	}
	held := map[*node][]byte{}
	var build func(from, to string) error
	build = func(from, to string) error {
		if err := os.MkdirAll(to, 0o777); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(names[from])) {
			n, path := names[from][name], filepath.Join(to, name)
			if n.dir {
				if err := build(filepath.Join(from, name), path); err != nil {
					return err
				}
				continue
			}
			if _, known := held[n]; !known { // one that has several names is the same by each
				held[n] = n.left(r, calls[n])
			}
			if err := os.WriteFile(path, held[n], 0o666); err != nil {
				return err
			}
		}
		return nil
	}
	if err := build(d.root, to); err != nil {
		t.Fatal(err)
	}
	return marked
}

// keeper says which of the changes that are not durable are done: none, all, those up
// to a moment, or any.
func keeper(r *rand.Rand, n int) func(i int) bool {
	until := n
	switch r.IntN(4) {
	case 0:
		until = 0
	case 1:
	case 2:
		until = r.IntN(n + 1)
	default:
		return func(int) bool { return r.IntN(2) == 0 }
	}
	return func(i int) bool { return i < until }
}

// left is what a file holds after the cut.
func (n *node) left(r *rand.Rand, calls []event) []byte {
	first := 0 // call that is not durable
	size, most := int64(len(n.base)), int64(len(n.base))
	for i, e := range calls {
		switch e.call {
		case 's':
			first = i + 1
		case 'w':
			most = max(most, e.off+int64(len(e.data)))
		case 't':
			most = max(most, e.off)
		}
	}
	image := make([]byte, most)
	copy(image, n.base)
	// Behind the end of a file stands what it has there until that is written.
	fill := make([]byte, most)
	for _, e := range calls[:first] {
		size = e.apply(image, size, fill, nil)
	}
	calls = calls[first:]
	if len(calls) == 0 {
		return image[:size]
	}
	if r.IntN(4) == 0 {
		for i := range fill {
			fill[i] = byte(r.Uint32())
		}
		copy(image[size:], fill[size:])
	}
	sizes := []int64{size} // before the first call, and after each
	for _, e := range calls {
		sizes = append(sizes, e.resized(sizes[len(sizes)-1]))
	}
	at := len(calls) // the moment that the size is of
	if r.IntN(2) == 0 {
		at = r.IntN(len(calls) + 1)
	}
	if r.IntN(2) == 0 {
		// Each call is done, not done, or done to some of its sectors. Cuts of the
		// size are done as far as the size says.
		keep := keeper(r, len(calls))
		for i, e := range calls {
			var some func() bool
			if r.IntN(4) == 0 {
				some = func() bool { return r.IntN(2) == 0 }
			}
			if e.call == 't' && i < at || e.call == 'w' && keep(i) {
				size = e.apply(image, size, fill, some)
			}
		}
		return image[:sizes[at]]
	}
	// Each sector is of a moment of its own, between the same two cuts of the size.
	from, to := 0, len(calls)
	for i, e := range calls {
		if e.call == 't' && i < at {
			from = i + 1
		} else if e.call == 't' {
			to = i
			break
		}
	}
	of := make([]int, most/sector+1)
	for i := range of {
		of[i] = from + r.IntN(to-from+1)
	}
	out := slices.Clone(fill)
	for i := 0; ; i++ {
		for k, moment := range of {
			if lo := int64(k) * sector; moment == i && lo < most {
				copy(out[lo:min(lo+sector, most)], image[lo:])
			}
		}
		if i == len(calls) {
			return out[:sizes[at]]
		}
		size = calls[i].apply(image, size, fill, nil)
	}
}

// resized is the size of a file after the call.
func (e *event) resized(size int64) int64 {
	if e.call == 't' {
		return e.off
	}
	return max(size, e.off+int64(len(e.data)))
}

// apply does a call to an image of a file that is as long as the file ever was; some,
// if not nil, says of each sector of a write whether it is done. It returns the size.
func (e *event) apply(image []byte, size int64, fill []byte, some func() bool) int64 {
	switch e.call {
	case 's':
		return size
	case 't':
		if e.off < size {
			copy(image[e.off:], fill[e.off:])
		}
	case 'w':
		for lo, end := e.off, e.off+int64(len(e.data)); lo < end; {
			hi := min(end, (lo/sector+1)*sector)
			if some == nil || some() {
				copy(image[lo:hi], e.data[lo-e.off:])
			}
			lo = hi
		}
	}
	return e.resized(size)
}
