package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/inert"

	"github.com/memtox/memtox/internal/settings"
)

// run is the whole command line.
func run(ctx context.Context, env *Env, args []string) (code Code) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(env.Stderr, "memtox: this is a bug: %v\n%s", p, debug.Stack())
			code = Failed
		}
	}()
	if env.screen = env.Stdout; env.StdoutTerminal {
		env.Stdout = inert.Terminal(env.Stdout)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go env.listen(cancel, done)
	root := newRoot(env, append(args, "")[0])
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	env.report(err)
	return codeFor(cmd, err)
}

// newRoot is the command line with all its commands, or if the first argument names one
// with that alone: what the others say of settings, formats and sets need not be read.
func newRoot(env *Env, asked string) *cobra.Command {
	root := &cobra.Command{
		Use:   "memtox",
		Short: "Measure how well defenses protect an agent whose long-term memory is attacked",
		Long: `memtox drives an agent through a write session, in which it meets hostile
content, and a separate retrieval session, in which what it stored may act. It
plugs defenses in one at a time on the same cases and counts what happened.

The built-in reference model is deterministic and is not an LLM: its figures
tell defenses apart, they say nothing about how often a real model is poisoned.`,
		Example: `  memtox run                                   the built-in benchmark, no key, no network
  memtox run --limit 100 --defense none,guard  a sample, two arms
  memtox datasets show memtox-smoke            what the cases are`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var p *settings.Problem
		if errors.As(err, &p) {
			return p
		}
		return &settings.Problem{What: err.Error(), Hint: nearestFlag(cmd, err)}
	})
	root.SetHelpTemplate(strings.TrimRight(root.HelpTemplate(), "\n") + "\nExit codes:\n" + ExitCodes + "\n")
	commands := []struct {
		name string
		make func(*Env) *cobra.Command
	}{
		{"run", newRun},
		{"detect", newDetect},
		{"attack", newAttack},
		{"plan", newPlan},
		{"doctor", newDoctor},
		{"datasets", newDatasets},
		{"agents", newAgents},
		{"attacks", newAttacks},
		{"defenses", newDefenses},
		{"report", newReport},
		{"view", newView},
		{"serve-model", newServeModel},
		{"export", newExport},
		{"compare", newCompare},
		{"gate", newGate},
		{"merge", newMerge},
		{"rejudge", newRejudge},
		{"judge", newJudge},
		{"reproduce", newReproduce},
		{"memory", newMemoryCommand},
		{"guard", newGuardCommand},
		{"version", newVersion},
		{"man", newMan},
		{"worker", newWorker},
		{"queue", newQueue},
	}
	for _, c := range commands {
		if c.name == asked && c.name != "man" { // which writes of all
			root.AddCommand(c.make(env))
			return root
		}
	}
	for _, c := range commands {
		root.AddCommand(c.make(env))
	}
	return root
}

// nearestFlag suggests the flag that a mistyped one most likely meant.
func nearestFlag(cmd *cobra.Command, err error) string {
	const unknown = "unknown flag: --"
	got, ok := strings.CutPrefix(err.Error(), unknown)
	if !ok {
		return "see `" + cmd.CommandPath() + " --help`"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if n := settings.Nearest(got, names); n != "" {
		return "did you mean --" + n + "?"
	}
	if cmd.Name() == "run" {
		if key := settings.Nearest(strings.ReplaceAll(got, "-", "_"), harness.Settings().Names()); key != "" {
			return "it is a setting without a flag: --set " + key + "=…"
		}
	}
	return "see `" + cmd.CommandPath() + " --help`"
}

// noArgs refuses arguments; for a command with subcommands what stands there is
// a mistyped name.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return &settings.Problem{What: fmt.Sprintf("%s takes no argument, and %q stands there", cmd.CommandPath(), args[0])}
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	p := &settings.Problem{What: fmt.Sprintf("unknown command %q for %s", args[0], cmd.CommandPath()),
		Hint: "one of " + strings.Join(names, ", ")}
	if n := settings.Nearest(args[0], names); n != "" {
		p.Hint = fmt.Sprintf("did you mean %q?", n)
	}
	return p
}

// oneArg wants exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return &settings.Problem{What: cmd.CommandPath() + " needs " + what, Hint: "usage: " + cmd.UseLine()}
		}
		return &settings.Problem{What: fmt.Sprintf("%s takes one argument, and %q stands there too", cmd.CommandPath(),
			args[1])}
	}
}

// someArgs wants at least one argument.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return oneArg(what)(cmd, args)
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(subs...)
	return c
}
