package results

import (
	"errors"
	"fmt"
	"syscall"
)

// noFollow is nothing here: what has no regular file behind its name is refused
// before it is opened.
const noFollow = 0

const sharingViolation = syscall.Errno(32)

// Lock takes a run directory for this process by opening a file that
// nobody else may open meanwhile. The system lets go of it when the process
// ends, however it ends.
func Lock(dir string) (unlock func(), err error) {
	path := in(dir, lockFile)
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, diskError("creating", path, err)
	}
	const deleteOnClose, openReparsePoint = 0x04000000, 0x00200000 // the link itself, not what it leads to
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL|deleteOnClose|openReparsePoint, 0)
	if errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("run directory %s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, diskError("creating", path, err)
	}
	return func() { syscall.CloseHandle(h) }, nil
}
