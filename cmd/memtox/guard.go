package main

import (
	"fmt"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/scan"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/export"
)

func newGuardCommand(env *Env) *cobra.Command {
	c := group("guard", "Put the guard beside an agent: scan its memory files, serve it, decide what waits",
		newGuardServe(env), newGuardScan(env), newGuardPending(env), newGuardApprove(env), newGuardReject(env))
	return c
}

// policyFlag adds --policy.
func policyFlag(c *cobra.Command) *string {
	f := c.Flags().String("policy", "standard", "The guard's `POLICY`: strict, standard, permissive, or a file whose "+
		"name ends in .yaml")
	must(c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(guard.Presets(), cobra.ShellCompDirectiveDefault)))
	return f
}

// policy reads a policy as --policy names it.
func (e *Env) policy(name string) (*guard.Policy, error) {
	switch ext := path.Ext(name); {
	case slices.Contains(guard.Presets(), name):
		return guard.Preset(name)
	case ext != ".yaml" && ext != ".yml":
		return nil, choice("--policy", name, guard.Presets())
	}
	data, err := e.readFile(name)
	if err != nil {
		return nil, &settings.Problem{Where: "--policy", Err: err}
	}
	p, err := guard.ParsePolicy(name, data)
	if err != nil {
		return nil, &settings.Problem{Where: "--policy", Err: err}
	}
	return p, nil
}

func newGuardScan(env *Env) *cobra.Command {
	c := &cobra.Command{
		Use: "scan FILE|DIR...", Short: "Look for poison in the files of a memory",
		Long: `Look for threat patterns, hidden text, secrets and decoys in memory files, also
where they are wrapped: Markdown and other text by lines, JSON and JSON Lines by
strings, every stored column of a SQLite database, the records of a durable store of
memtox. A finding is what the policy would not let through from an unknown source.

JSON that is nested deeper than 200,000 levels or holds a text of more than 16 MiB is
scanned as plain text, a larger value of a database not at all; both are said.

Nothing is changed. In a directory, symbolic links, special and binary files are
skipped, and said. Exit code 0: clean; 1: findings; 4: nothing was scanned, or
something could not be scanned and nothing was found in the rest.`,
		Example: "  memtox guard scan MEMORY.md memories/\n  memtox guard scan --format sarif ~/.agent/memory " +
			">memory.sarif\n  memtox guard scan --policy strict store.db",
		Args: someArgs("a file or a directory"),
	}
	policy := policyFlag(c)
	format := c.Flags().String("format", "text", "text, json or sarif")
	maxBytes := c.Flags().Int64("max-bytes", 0, "Most `BYTES` of a text file, and of the text in a database (0: 64 MiB "+
		"and 1 GiB)")
	formats := []string{"text", "json", "sarif"}
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := choice("--format", *format, formats); err != nil {
			return err
		}
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
		ctx, stop := env.interruptible(cmd.Context())
		defer stop()
		paths := make([]string, len(args))
		for i, a := range args {
			paths[i] = env.path(a)
		}
		r, err := scan.Scan(ctx, g, scan.Options{MaxBytes: *maxBytes}, paths...)
		if err != nil {
			return err
		}
		switch *format {
		case "json":
			err = printJSON(env, r)
		case "sarif":
			err = scanSARIF(env, r)
		default:
			err = printForm(env, "scan", struct {
				*scan.Report
				Found int
			}{r, len(r.Findings) + r.More})
		}
		if err != nil {
			return fmt.Errorf("printing the findings: %w", err)
		}
		if *format != "text" {
			for _, f := range r.Failed {
				fmt.Fprintf(env.Stderr, "memtox: %s was not scanned wholly: %s\n", inert.Text(f.File), inert.Text(f.Why))
			}
		}
		switch {
		case len(r.Findings) > 0:
			return told{errBadNews}
		case r.Files == 0 && len(r.Failed) == 0:
			fmt.Fprintln(env.Stderr, "memtox: nothing was scanned: there is no memory file")
			return told{errInconclusive}
		case r.Files == 0 || len(r.Failed) > 0:
			fmt.Fprintln(env.Stderr, "memtox: not everything could be scanned, so that no finding proves nothing")
			return told{errInconclusive}
		}
		return nil
	}
	return c
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
