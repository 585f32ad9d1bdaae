//go:build unix && !race

// The race detector switches checkptr on, which takes no address of SQLite's own memory.

package store_test

import (
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memtox/memtox/internal/disk/crash"
)

// SQLite's own file layer ("unix", its VFS), which opens, locks, reads and maps files as
// it always does, and tells a [crash.Disk] of each write, cut of the size, sync, removal
// and new file. What it does not tell of is the shared memory file, FILE-shm: that says
// nothing after a power cut, and whoever opens the database first makes it anew. That
// SQLite syncs a directory is known from the call that opens it for that.
var shim struct {
	mu    sync.Mutex
	disk  *crash.Disk
	vfs   uintptr                                  // SQLite's
	calls map[uintptr]*sqlite3.Tsqlite3_io_methods // ours by its
	files map[uintptr]shimmed                      // by sqlite3_file
}

type shimmed struct {
	its  *sqlite3.Tsqlite3_io_methods
	file *crash.File
}

// withDisk has SQLite tell a disk of what it does while f runs.
func withDisk(t testing.TB, d *crash.Disk, f func()) {
	t.Helper()
	tls := libc.NewTLS()
	defer tls.Close()
	its := sqlite3.Xsqlite3_vfs_find(tls, 0)
	name, err := libc.CString("crash")
	if err != nil {
		t.Fatal(err)
	}
	call, err := libc.CString("openDirectory")
	if err != nil {
		t.Fatal(err)
	}
	ours := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	v, old := at[sqlite3.Tsqlite3_vfs](ours), at[sqlite3.Tsqlite3_vfs](its)
	*v = *old
	v.FzName, v.FxOpen, v.FxDelete = name, pointer(shimOpen), pointer(shimDelete)
	shim.disk, shim.vfs, shim.files = d, its, map[uintptr]shimmed{}
	shim.calls = map[uintptr]*sqlite3.Tsqlite3_io_methods{}
	set := function[func(*libc.TLS, uintptr, uintptr, uintptr) int32](old.FxSetSystemCall)
	openDirectory = function[func(*libc.TLS, uintptr, uintptr) int32](
		function[func(*libc.TLS, uintptr, uintptr) uintptr](old.FxGetSystemCall)(tls, its, call))
	set(tls, its, call, pointer(shimOpenDirectory))
	sqlite3.Xsqlite3_vfs_register(tls, ours, 1)
	defer func() {
		sqlite3.Xsqlite3_vfs_unregister(tls, ours)
		sqlite3.Xsqlite3_vfs_register(tls, its, 1)
		set(tls, its, call, 0)
		for _, p := range []uintptr{ours, name, call} {
			libc.Xfree(tls, p)
		}
	}()
	f()
}

// pointer is a function as SQLite's translation holds one, and function the way back.
// The function must be one of the package: nobody else keeps it.
func pointer(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

// at is what an address of SQLite's points to.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

var openDirectory func(*libc.TLS, uintptr, uintptr) int32

func shimOpenDirectory(tls *libc.TLS, name, fd uintptr) int32 {
	rc := openDirectory(tls, name, fd)
	if rc == sqlite3.SQLITE_OK {
		shim.disk.DirSynced(filepath.Dir(libc.GoString(name)))
	}
	return rc
}

func shimOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	old := at[sqlite3.Tsqlite3_vfs](shim.vfs)
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](old.FxOpen)(tls, shim.vfs, name, file,
		flags, out)
	if rc != sqlite3.SQLITE_OK || name == 0 { // one without a name is of nobody else
		return rc
	}
	noted := shim.disk.Opened(libc.GoString(name))
	if noted == nil {
		return rc
	}
	shim.mu.Lock()
	defer shim.mu.Unlock()
	f := at[sqlite3.Tsqlite3_file](file)
	ours := shim.calls[f.FpMethods]
	its := at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
	if ours == nil {
		ours = new(sqlite3.Tsqlite3_io_methods)
		*ours = *its
		ours.FxWrite, ours.FxTruncate = pointer(shimWrite), pointer(shimTruncate)
		ours.FxSync, ours.FxClose = pointer(shimSync), pointer(shimClose)
		shim.calls[f.FpMethods] = ours
	}
	shim.files[file] = shimmed{its, noted}
	f.FpMethods = uintptr(unsafe.Pointer(ours))
	return rc
}

func shimDelete(tls *libc.TLS, _, name uintptr, dirSync int32) int32 {
	old := at[sqlite3.Tsqlite3_vfs](shim.vfs)
	path := libc.GoString(name)
	// Before SQLite's: that syncs the directory in the same call.
	shim.disk.Removed(path)
	return function[func(*libc.TLS, uintptr, uintptr, int32) int32](old.FxDelete)(tls, shim.vfs, name, dirSync)
}

func of(file uintptr) shimmed {
	shim.mu.Lock()
	defer shim.mu.Unlock()
	return shim.files[file]
}

func shimWrite(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	f := of(file)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.its.FxWrite)(tls, file, buf, n, off)
	if rc == sqlite3.SQLITE_OK {
		f.file.Wrote(unsafe.Slice(at[byte](buf), n), off)
	}
	return rc
}

func shimTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f := of(file)
	rc := function[func(*libc.TLS, uintptr, int64) int32](f.its.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		f.file.Truncated(size)
	}
	return rc
}

func shimSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := of(file)
	rc := function[func(*libc.TLS, uintptr, int32) int32](f.its.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		f.file.Synced()
	}
	return rc
}

func shimClose(tls *libc.TLS, file uintptr) int32 {
	f := of(file)
	shim.mu.Lock()
	delete(shim.files, file)
	shim.mu.Unlock()
	return function[func(*libc.TLS, uintptr) int32](f.its.FxClose)(tls, file)
}
