package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/compare"
)

func product(name string) (*installed.Product, error) {
	p := installed.Find(name)
	if p == nil {
		return nil, settings.Unknown("", "product", name, installed.Names())
	}
	return p, nil
}

func completeProducts(c *cobra.Command) {
	c.ValidArgsFunction = cobra.FixedCompletions(installed.Names(), cobra.ShellCompDirectiveNoFileComp)
}

func newAgentsDoctor(env *Env, c *cobra.Command) action {
	format := formatFlag(c)
	at := c.Flags().String("at", "", "the `FOLDER` or program of an installation; without it one is looked for")
	completeProducts(c)
	return func(ctx context.Context, args []string) error {
		p, err := product(args[0])
		if err != nil {
			return err
		}
		return printExamined(env, *format, p.Examine(ctx, installed.Surroundings{Lookup: env.lookup, Dir: env.Dir}, *at))
	}
}

func newAgentsInstall(env *Env, c *cobra.Command) action {
	dir := c.Flags().String("dir", "", "the `FOLDER` to install into; without it one of memtox's own, where it is found")
	show := c.Flags().Bool("show", false, "only show the commands")
	completeProducts(c)
	return func(ctx context.Context, args []string) error {
		p, err := product(args[0])
		if err != nil {
			return err
		}
		s := installed.Surroundings{Lookup: env.lookup, Dir: env.Dir}
		to := s.Home(p.Name)
		if *dir != "" {
			to = env.path(*dir)
		}
		commands := p.Commands(to)
		for _, words := range commands {
			if _, err := fmt.Fprintln(env.Stdout, installed.Shell(words)); err != nil {
				return err
			}
		}
		if *show {
			return nil
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", p.Title, err)
		}
		for _, words := range commands {
			cmd := exec.CommandContext(ctx, words[0], words[1:]...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = to, env.Stderr, env.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("installing %s: %s: %w", p.Title, installed.Shell(words), err)
			}
		}
		i, err := p.Find(ctx, s, to)
		if err != nil {
			return fmt.Errorf("installing %s: %w", p.Title, err)
		}
		at := ""
		if *dir != "" {
			at = " --at " + inert.Shell(*dir)
		}
		_, err = fmt.Fprintf(env.Stdout, "%s %s is in %s\nnext: memtox agents doctor %s%s\n", p.Title, i.Version,
			inert.Text(to), p.Name, at)
		return err
	}
}

func newAgentsAgree(env *Env, c *cobra.Command) action {
	var o compare.AgreeOptions
	c.Flags().Float64Var(&o.Least, "least", 0.9, "the least agreement, as a share of the attacks")
	c.Flags().StringVar(&o.Beside, "beside", "", "the `RUN` that has B, where it is another")
	format := formatFlag(c)
	return func(_ context.Context, args []string) error {
		if o.Beside != "" {
			o.Beside = env.path(o.Beside)
		}
		if !(o.Least > 0 && o.Least <= 1) {
			return &settings.Problem{Where: "--least", What: fmt.Sprintf("an agreement of %v is not between 0 and 1", o.Least),
				Hint: "0.9 is usual"}
		}
		r, err := compare.Agree(env.path(args[0]), args[1], args[2], o)
		if err != nil {
			return err
		}
		r.Run.Name = args[0]
		if err := r.Write(env.Stdout, *format); err != nil {
			return fmt.Errorf("printing the agreement: %w", err)
		}
		if r.Pairs() == 0 {
			return env.end(errInconclusive, "no attack was scored with both agents")
		}
		return endIf(nil, r.Short(), errBadNews)
	}
}

// printExamined prints what was examined; a check that failed is bad news.
func printExamined(env *Env, format string, checks []model.Check) error {
	failed := slices.ContainsFunc(checks, func(k model.Check) bool { return k.State == model.Failed })
	return endIf(show(env, format, "doctor", checks, checks), failed, errBadNews)
}
