//go:build !unix

package remote

import "os/exec"

func own(*exec.Cmd) {}

func kill(c *exec.Cmd) { _ = c.Process.Kill() }
