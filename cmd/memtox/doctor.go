package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

func newDoctor(env *Env, c *cobra.Command) action {
	f := newRunFlags(c, func(s settings.Key) bool {
		return slices.Contains([]string{"model", "base_url", "format"}, s.Name)
	}, nil)
	embeddings := c.Flags().String("embeddings", "-", "The server's `MODEL` that embeds; - leaves the check out")
	return func(ctx context.Context, _ []string) error {
		conf, err := f.config(env, nil)
		if err != nil {
			return err
		}
		checks, err := env.models(false, remote.Caps{}).Examine(ctx, conf, *embeddings)
		if err != nil {
			return err
		}
		return printExamined(env, conf.Format, checks)
	}
}
