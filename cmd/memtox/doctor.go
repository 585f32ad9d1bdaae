package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

func newDoctor(env *Env) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "doctor", Short: "Examine a model before a run: reachable, tool calls, seed, embeddings", Args: noArgs,
		Long: `Try a model with about eight small requests: does the server answer, is the model
there, does its context hold the window of a run, does it count tokens, call tools
and take their results, does it repeat itself, does the seed count, does it embed.
Exit code 1 where a run would fail.`,
		Example: "  memtox doctor --model ollama:llama3.2\n  memtox doctor --model openai:gpt-oss-120b --base-url " +
			"http://localhost:8000/v1 --set protocol=fenced",
	}
	f.register(c, func(s settings.Key) bool {
		return slices.Contains([]string{"model", "base_url", "format"}, s.Name)
	}, nil)
	embeddings := c.Flags().String("embeddings", "-", "The server's `MODEL` that embeds; - leaves the check out")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		conf, err := f.config(env, nil)
		if err != nil {
			return err
		}
		checks, err := env.models(false, remote.Caps{}).Examine(ctx, conf, *embeddings)
		if err != nil {
			return err
		}
		type row struct {
			Check  string `json:"check"`
			State  string `json:"state"`
			Detail string `json:"detail"`
			Hint   string `json:"hint,omitempty"`
		}
		var rows []row
		failed := false
		for _, k := range checks {
			rows = append(rows, row{k.Name, k.State.String(), k.Detail, k.Hint})
			failed = failed || k.State == model.Failed
		}
		if conf.Format == "json" {
			if err := printJSON(env, rows); err != nil {
				return err
			}
		} else {
			for _, r := range rows {
				hint := ""
				if r.Hint != "" && r.State != "ok" {
					hint = " (" + r.Hint + ")"
				}
				fmt.Fprintf(env.Stdout, "%-11s %-8s %s\n", r.Check, r.State, inert.Text(r.Detail+hint))
			}
		}
		if failed {
			return told{errBadNews}
		}
		return nil
	}
	return c
}
