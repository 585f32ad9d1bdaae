//go:build unix

package proxy_test

import (
	"syscall"
	"time"
)

// cpu is the time that this process has computed for.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
