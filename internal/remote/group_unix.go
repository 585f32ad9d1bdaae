//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// own gives the child a process group of its own, so that what it starts ends
// with it, and an interrupt of ours does not reach it before we have ended it.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func kill(c *exec.Cmd) {
	// The group has the child's id. It may be gone already.
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	_ = c.Process.Kill()
}
