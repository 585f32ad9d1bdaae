package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/memtox/memtox/internal/settings"
)

// newMan writes the man pages, for packagers.
func newMan(env *Env, c *cobra.Command) action {
	c.Hidden = true
	return func(_ context.Context, args []string) error {
		dir := env.path(args[0])
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return &settings.Problem{Where: args[0], Err: err}
		}
		root := c.Root()
		root.DisableAutoGenTag = true // it holds the day
		// A fixed date: pages of one commit have the same bytes.
		date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
		return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "memtox", Manual: "memtox", Date: &date}, dir)
	}
}
