package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/memtox/memtox/internal/settings"
)

// newMan writes the man pages, for packagers.
func newMan(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages of all commands into a directory", Args: oneArg("a directory"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := env.path(args[0])
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return &settings.Problem{Where: args[0], Err: err}
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it holds the day
			// A fixed date: pages of one commit have the same bytes.
			date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "memtox", Manual: "memtox", Date: &date}, dir)
		},
	}
}
