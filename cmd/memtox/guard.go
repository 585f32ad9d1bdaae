package main

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/scan"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/export"
)

func policyFlag(c *cobra.Command) *string {
	f := c.Flags().String("policy", "standard", "The guard's `POLICY`: strict, standard, permissive, memory (for a memory that "+
		"no calls are seen of; serve --mcp has it), or a file whose name ends in .yaml")
	must(c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(guard.Presets(), cobra.ShellCompDirectiveDefault)))
	return f
}

func (e *Env) policy(name string) (*guard.Policy, error) {
	switch ext := path.Ext(name); {
	case slices.Contains(guard.Presets(), name):
		return guard.Preset(name)
	case ext != ".yaml" && ext != ".yml":
		return nil, settings.Unknown("--policy", "value", name, guard.Presets())
	}
	data, err := e.read("--policy", name)
	if err != nil {
		return nil, err
	}
	p, err := guard.ParsePolicy(name, data)
	if err != nil {
		return nil, &settings.Problem{Where: "--policy", Err: err}
	}
	return p, nil
}

func newGuardScan(env *Env, c *cobra.Command) action {
	policy := policyFlag(c)
	format := choiceFlag(c, "format", "text", "text, json or sarif", "text", "json", "sarif")
	maxBytes := c.Flags().Int64("max-bytes", 0, "Most `BYTES` of a text file, and of the text in a database (0: 64 MiB "+
		"and 1 GiB)")
	return func(ctx context.Context, args []string) error {
		if *maxBytes < 0 {
			return &settings.Problem{Where: "--max-bytes", What: "it is less than 0"}
		}
		p, err := env.policy(*policy)
		if err != nil {
			return err
		}
		g, err := guard.New(guard.Options{Policy: p})
		if err != nil {
			return err
		}
		paths := make([]string, len(args))
		for i, a := range args {
			paths[i] = env.path(a)
		}
		r, err := scan.Scan(ctx, g, scan.Options{MaxBytes: *maxBytes}, paths...)
		if err != nil {
			return err
		}
		if *format == "sarif" {
			err = scanSARIF(env, r)
		} else {
			err = show(env, *format, "scan", r, struct {
				*scan.Report
				Found int
			}{r, len(r.Findings) + r.More})
		}
		if err != nil {
			return fmt.Errorf("printing the findings: %w", err)
		}
		if *format != "text" {
			for _, f := range r.Failed {
				env.say("%s was not scanned wholly: %s", f.File, f.Why)
			}
		}
		switch {
		case len(r.Findings) > 0:
			return told{errBadNews}
		case r.Files == 0 && len(r.Failed) == 0:
			return env.end(errInconclusive, "nothing was scanned: there is no memory file")
		case r.Files == 0 || len(r.Failed) > 0:
			return env.end(errInconclusive, "not everything could be scanned, so that no finding proves nothing")
		}
		return nil
	}
}

func scanSARIF(env *Env, r *scan.Report) error {
	var rules []export.Rule
	var findings []export.Finding
	for _, f := range r.Findings {
		if !slices.ContainsFunc(rules, func(x export.Rule) bool { return x.ID == f.Check }) {
			rules = append(rules, export.Rule{ID: f.Check, Short: f.Note,
				Help: "Look at the entry, and remove or reword it if nobody who may has put it there."})
		}
		level := export.Warning
		if f.Action == memory.Block || f.Action == memory.Quarantine {
			level = export.Error
		}
		findings = append(findings, export.Finding{Rule: f.Check, Level: level, Message: f.Note, File: f.File, Line: f.Line,
			Name:     f.Place,
			Identity: []string{f.Fingerprint}, Properties: map[string]any{"severity": f.Severity, "action": f.Action.String(),
				"check": f.On}})
	}
	return export.WriteSARIF(env.Stdout, export.Tool{Name: "memtox guard scan", Version: versionString()}, rules, findings)
}
