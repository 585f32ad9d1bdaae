package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds with -ldflags "-X main.version=v1.2.3".
var version = ""

// versionString is the version of this binary: that of the release, else that
// of the module or the commit that it was built from.
func versionString() string {
	if version != "" {
		return version
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	v, dirty := "devel", ""
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v += "-" + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-modified"
			}
		}
	}
	return v + dirty
}

// versionLine tells version, revision and build.
func versionLine() string {
	return fmt.Sprintf("memtox %s (%s, %s/%s)", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(env *Env, _ *cobra.Command) action {
	return func(context.Context, []string) error {
		_, err := fmt.Fprintln(env.Stdout, versionLine())
		return err
	}
}
