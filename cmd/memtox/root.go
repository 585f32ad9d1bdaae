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

// newRoot is the command line with all its commands, or with the one that is asked for.
func newRoot(env *Env, asked string) *cobra.Command {
	root := command("memtox")
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetIn(env.Stdin)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
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
	addCommands(root, env, asked)
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
