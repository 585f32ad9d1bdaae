package harness

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/internal/settings"
)

// The reaches of settings, as settings.yaml and tables say them: what a setting can
// make memtox do beside computing, and with that from where it may come. A run
// directory and a queue's announcement are written by whoever can; only the local
// command line, and a file that it names, is the user's. Every setting is given one.
const (
	// Inert settings change what is computed or printed, how much of it, and when it
	// stops. They are taken from a run.
	Inert = "taken over"
	// Reads: the setting names a regular file of this machine that is read and whose
	// digest must be that of the run before any of it is used. It is taken from a run,
	// but for a name that leads to another machine.
	Reads = "read here"
	// Acts: the setting starts programs, asks servers, hands over keys or variables, or
	// opens and writes files. A run may want that; only the command line has it done.
	Acts = "named here"
	// Bounds settings limit what asking servers and programs may cost and how long it may
	// take. Where a run has anything act, they too are the command line's: whoever changed
	// the run must not lift what its user is willing to spend.
	Bounds = "bounds here"
	// Own settings are those of one process, not of the run: what it listens on, where
	// it writes. They are never taken from a run.
	Own = "its own"
)

// nothing reports of a value of a setting that acts that it does not: the built-in
// models, agents and judges, and whatever stays empty.
var (
	builtinModel = func(name string) bool { kind, _, _ := strings.Cut(name, ":"); return kind == "reference" }
	hashes       = func(name string) bool { return name == Hashed }
	builtinJudge = func(name string) bool { return name == Deterministic }
	builtinAgent = func(name string) bool { return !external.IsSpec(name) }
	// A chain's file says which programs it starts.
	builtinDefense = func(spec string) bool {
		s, err := defenses.Parse(spec)
		return err == nil && !s.Open() && s.Kind != "chain" && here(s.Argument)
	}
	builtinSweep = func(item string) bool {
		name, _, _ := strings.Cut(item, "=")
		return builtinDefense(name[:max(0, strings.LastIndexByte(name, '.'))])
	}
)

// here reports whether a file name cannot lead to another machine, as \\host\share
// and \??\UNC\host\share do on Windows.
func here(file string) bool {
	return len(file) < 2 || !strings.ContainsRune(`\/`, rune(file[0])) || !strings.ContainsRune(`\/?`, rune(file[1]))
}

// builtins report values, or one of a list's, of settings that act that do not.
var builtins = map[string]func(string) bool{"dataset": here, "agent": builtinAgent, "model": builtinModel,
	"embeddings": hashes, "judge": builtinJudge, "defense": builtinDefense, "sweep": builtinSweep}

// acts reports whether a setting's value does more than compute and read, or bounds
// what does.
func acts(s settings.Key, c *Config) bool {
	if s.Reach == Bounds {
		return slices.ContainsFunc(Settings().Keys, func(o settings.Key) bool { return o.Reach == Acts && acts(o, c) })
	}
	if s.Reach != Acts && s.Reach != Reads {
		return false
	}
	builtin := builtins[s.Name]
	return slices.ContainsFunc(s.Of(c).Items(), func(v string) bool { return v != "" && (builtin == nil || !builtin(v)) })
}

// harmless returns the settings without those that act and those of one process,
// which have their defaults instead.
func (c Config) harmless() Config {
	out, d := c, DefaultConfig()
	for _, s := range Settings().Keys {
		if s.Reach == Own || acts(s, &c) {
			s.Copy(&out, &d)
		}
	}
	return out
}

// Adopt returns the settings with which this process takes part in a run that is
// written down elsewhere: in a run directory, in the announcement of a queue. local
// lays what the command line says over other settings. What acts comes from there
// alone, whatever the run says; where the command line does not name what the run
// wants, or differs in what decides its outcomes, the error is a [Problem] that says
// how. Nothing is opened, started or asked before. where is how the error calls the
// run; for the keys in free the command line need not say the same, only something.
func Adopt(where string, run Config, local func(Config) (Config, error), free ...string) (Config, error) {
	mine, err := local(run.harmless())
	if err != nil {
		return mine, err
	}
	over, err := local(run) // only to see what the command line leaves as it is
	if err != nil {
		return mine, err
	}
	var unnamed, flags []string
	var other []settings.Difference
	for _, s := range Settings().Keys {
		theirs, ours := s.Of(&run).String(), s.Of(&mine).String()
		switch differs := s.Affects && theirs != ours && !slices.Contains(free, s.Name); {
		case acts(s, &run) && (differs || ours != s.Of(&over).String()):
			unnamed = append(unnamed, fmt.Sprintf("%s is %s, here %s", s.Name, shown(theirs), shown(ours)))
			flags = append(flags, argument(s, &run))
		case differs && s.Reach != Own:
			other = append(other, settings.Differ(s.Name, theirs, ours))
		}
	}
	if len(unnamed) > 0 {
		p := &settings.Problem{Where: where, Hint: "if you know it and want it, add " + strings.Join(flags, " "),
			What: "the run names what memtox starts, asks, hands over or opens, or what that may take, " +
				"only where its own command line says so: " + strings.Join(unnamed, "; ")}
		if len(other) > 0 {
			p.What += "; and in other settings it differs: " + Listed(other)
		}
		return mine, p
	}
	return mine, otherSettings(where, other)
}

// shown is a value in a message: anybody's text.
func shown(v string) string { return fmt.Sprintf("%q", inert.Clip(v, 300)) }

// argument is what to write on a command line so that the setting has its value of c.
func argument(s settings.Key, c *Config) string {
	v := s.Of(c)
	plain := func(flags ...string) bool {
		var back Config
		err, text := s.Of(&back).Set(flags...), strings.Join(flags, "")
		return err == nil && reflect.DeepEqual(s.Of(&back).JSON(), v.JSON()) && len(text) <= 4096 && inert.Text(text) == text
	}
	name := "--" + s.Flag + " "
	if s.Flag == "" {
		name = "--set " + s.Name + "="
	}
	if text := v.String(); plain(text) {
		return name + inert.Shell(text)
	}
	items := v.Items()
	if s.Flag == "" || len(items) == 0 || !plain(items...) {
		return "-f FILE with the key " + s.Name
	}
	for i, item := range items {
		items[i] = name + inert.Shell(item)
	}
	return strings.Join(items, " ")
}

// Again is the command that goes on with the run in the directory out: its settings
// are in run.json, but for those that only a command line may give.
func (c Config) Again(out string) string {
	return "memtox run --resume --out " + inert.Shell(out) + c.Named("out")
}

// Named is that part of a command line, with a space before each flag, without the
// settings of some keys.
func (c Config) Named(without ...string) string {
	flags, base := "", c.harmless()
	for _, s := range Settings().Keys {
		if !slices.Contains(without, s.Name) && s.Of(&base).String() != s.Of(&c).String() {
			flags += " " + argument(s, &c)
		}
	}
	return flags
}
