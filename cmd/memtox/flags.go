package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/settings"
)

type choice struct {
	flag, value string
	of          []string
}

func (c *choice) String() string { return c.value }

func (c *choice) Type() string { return "string" }

func (c *choice) Set(value string) error {
	if !slices.Contains(c.of, value) {
		return settings.Unknown("--"+c.flag, "value", value, c.of)
	}
	c.value = value
	return nil
}

// choiceFlag adds a flag that has one of some values; otherwise is its default.
func choiceFlag(c *cobra.Command, name, otherwise, help string, of ...string) *string {
	f := &choice{name, otherwise, of}
	c.Flags().Var(f, name, help)
	must(c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)))
	return &f.value
}

// formatFlag adds --format of a command that prints tables.
func formatFlag(c *cobra.Command) *string {
	return choiceFlag(c, "format", "table", "table, json or markdown", "table", "json", "markdown")
}

func outputFlag(c *cobra.Command) *string {
	return c.Flags().StringP("output", "o", "", "Write to `FILE` instead of standard output")
}

// read reads a file that a flag names.
func (e *Env) read(flag, name string) ([]byte, error) {
	data, err := e.readFile(name)
	if err != nil {
		return nil, &settings.Problem{Where: flag, What: name, Err: withoutPath(err)}
	}
	return data, nil
}

// runFlags are the flags of settings of a run, as `memtox run` and other commands
// have them.
type runFlags struct {
	file  string
	sets  []string
	flags []*settingFlag
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
func (f *settingFlag) Type() string {
	if f.yesOrNo() {
		return "bool" // which needs no value, and of which help texts say none
	}
	return f.key.Takes
}

func (f *settingFlag) yesOrNo() bool { return f.key.Takes == "BOOL" }

// Set checks a value where it stands. A list may be given in several flags.
func (f *settingFlag) Set(text string) error {
	v := f.key.Of(new(harness.Config))
	if err := v.Set(text); err != nil {
		return settings.Placed("--"+f.key.Flag, err)
	}
	if !v.List() {
		f.values = f.values[:0]
	}
	f.values = append(f.values, text)
	return nil
}

// settings adds the flags of some settings to a command. help says what one means
// where the command gives it a meaning of its own.
func (f *runFlags) settings(c *cobra.Command, want func(settings.Key) bool, help map[string]string) {
	fs := c.Flags()
	fs.SortFlags = false
	names := map[string]func() []string{
		"agent":   agentNames,
		"defense": defenseNames,
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
		if sf.yesOrNo() {
			fs.Lookup(k.Flag).NoOptDefVal = "true"
		}
		complete := names[k.Name]
		if k.Choices != nil {
			complete = func() []string { return k.Choices }
		}
		if complete != nil {
			must(c.RegisterFlagCompletionFunc(k.Flag, completeList(complete)))
		}
	}
}

// newRunFlags adds the flags of settings, -f and --set to a command.
func newRunFlags(c *cobra.Command, want func(settings.Key) bool, help map[string]string) *runFlags {
	f := &runFlags{}
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
	return f
}

// config gathers the settings: the defaults, or others that the command line is laid
// over; the file; --set; the flags.
func (f *runFlags) config(env *Env, base *harness.Config) (harness.Config, error) {
	c := harness.DefaultConfig()
	if base != nil {
		c = *base
	}
	if f.file != "" {
		data, err := env.read("-f", f.file)
		if err != nil {
			return c, err
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
		if len(sf.values) == 0 {
			continue
		}
		if err := sf.key.Of(&c).Set(sf.values...); err != nil {
			return c, settings.Placed("--"+sf.key.Flag, err)
		}
	}
	return c, nil
}
