//go:build !unix

package box

import (
	"errors"
	"io"
	"os/exec"
)

var errSystem = errors.New("installed agents need Linux or macOS: on Windows run memtox in WSL or in a container")

const systemPath = ""

func supported() error                     { return errSystem }
func Enforced() error                      { return errSystem }
func hold(string, bool) (io.Closer, error) { return nil, errSystem }
func mine(string) error                    { return errSystem }
func Hidden() []string                     { return nil }
func self() string                         { return "" }
func own(*exec.Cmd, bool)                  {}
func end(string) int                       { return 0 }
