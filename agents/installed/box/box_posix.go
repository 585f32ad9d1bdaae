//go:build unix && !linux

package box

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Enforced says why the system cannot hold programs to a box.
func Enforced() error { return errors.New("only Linux has namespaces") }

// Hidden are the folders that a box does not show.
func Hidden() []string { return nil }

func self() string {
	path, _ := os.Executable()
	return path
}

func own(c *exec.Cmd, _ bool) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func adopt(*plan) error { return nil }

func endAll(groups []int) {
	for _, id := range groups {
		killGroup(id)
	}
}

// end ends the processes that a box was left with: none can be told from others here.
func end(string) int { return 0 }
