package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses/builtin"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/settings"
)

// runFlags are the flags of settings of a run, as `memtox run` and other commands
// have them.
type runFlags struct {
	file   string
	sets   []string
	resume bool
	schema bool
	flags  []*settingFlag
}

// settingFlag is a flag of one setting. What it was given is kept apart from the
// settings until the file was read, for a flag wins over the file.
type settingFlag struct {
	key      settings.Key
	values   []string
	fallback string // a default of the command's own, as help texts show it
}

// String is the value in help texts, which show the default.
func (f *settingFlag) String() string {
	switch {
	case len(f.values) > 0:
		return strings.Join(f.values, ",")
	case f.fallback != "":
		return f.fallback
	}
	return harness.Default(f.key)
}

// Type names the value in help texts.
func (f *settingFlag) Type() string { return f.key.Takes }

// Set checks a value where it stands. A list may be given in several flags.
func (f *settingFlag) Set(text string) error {
	v := f.key.Of(new(harness.Config))
	if err := v.Set(text); err != nil {
		return f.problem(err)
	}
	if !v.List() {
		f.values = f.values[:0]
	}
	f.values = append(f.values, text)
	return nil
}

// apply hands the flag's value to the settings.
func (f *settingFlag) apply(c *harness.Config) error {
	if len(f.values) == 0 {
		return nil
	}
	return f.problem(f.key.Of(c).Set(strings.Join(f.values, ",")))
}

func (f *settingFlag) problem(err error) error {
	var p *settings.Problem
	if errors.As(err, &p) {
		return &settings.Problem{Where: "--" + f.key.Flag, What: p.What, Hint: p.Hint}
	}
	return err
}

// settings adds the flags of some settings to a command. help says what one means
// where the command gives it a meaning of its own.
func (f *runFlags) settings(c *cobra.Command, want func(settings.Key) bool, help map[string]string) {
	fs := c.Flags()
	fs.SortFlags = false
	names := map[string]func() []string{
		"agent":   func() []string { return harness.Catalog{Profiles: agents.Profiles()}.AgentNames() },
		"defense": func() []string { return builtin.New().Names() },
		"model":   harness.ModelNames,
		"dataset": datasets.Names,
		"class":   datasets.Classes,
		"mutate":  harness.MutateChoices,
	}
	for _, k := range harness.Settings().Keys {
		if k.Flag == "" || !want(k) {
			continue
		}
		sf := &settingFlag{key: k}
		f.flags = append(f.flags, sf)
		short, _, _ := strings.Cut(k.Help, ". ") // docs/settings.md has the rest
		if own := help[k.Name]; own != "" {
			short = own
		}
		fs.Var(sf, k.Flag, strings.TrimSuffix(strings.ReplaceAll(short, "`", "'"), "."))
		complete := names[k.Name]
		if k.Choices != nil {
			complete = func() []string { return k.Choices }
		}
		if complete != nil {
			must(c.RegisterFlagCompletionFunc(k.Flag, completeList(complete)))
		}
	}
}

// register adds the flags of settings, -f and --set to a command.
func (f *runFlags) register(c *cobra.Command, want func(settings.Key) bool, help map[string]string) {
	f.settings(c, want, help)
	fs := c.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "`FILE` in YAML with the settings' keys")
	fs.StringArrayVar(&f.sets, "set", nil, "Set any setting: `KEY=VALUE`")
	must(c.RegisterFlagCompletionFunc("set", completeList(func() []string {
		keys := harness.Settings().Names()
		for i := range keys {
			keys[i] += "="
		}
		return keys
	})))
}

// config gathers the settings: the defaults, or others that the command line is laid
// over; the file; --set; the flags.
func (f *runFlags) config(env *Env, base *harness.Config) (harness.Config, error) {
	c := harness.DefaultConfig()
	if base != nil {
		c = *base
	}
	if f.file != "" {
		data, err := env.readFile(f.file)
		if err != nil {
			return c, &settings.Problem{Where: "-f", Err: withoutPath(err), What: f.file}
		}
		if err := c.Load(f.file, data); err != nil {
			return c, err
		}
	}
	for _, s := range f.sets {
		if err := c.Set(s); err != nil {
			return c, err
		}
		key, _, _ := strings.Cut(s, "=")
		for _, sf := range f.flags {
			if sf.key.Name == strings.TrimSpace(key) && len(sf.values) > 0 {
				return c, &settings.Problem{Where: "--set", What: fmt.Sprintf("%s is given by --%s too", sf.key.Name, sf.key.Flag),
					Hint: "leave one of them out"}
			}
		}
	}
	for _, sf := range f.flags {
		if err := sf.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}
