package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/internal/settings"
)

//go:embed help.txt
var helpTexts string

// several is as many arguments as there are.
const several = 1 << 30

// action is what a command does once its flags are read.
type action = func(ctx context.Context, args []string) error

type entry struct {
	path        string                            // as in a heading of help.txt
	make        func(*Env, *cobra.Command) action // adds its flags; nil is a group's
	least, most int                               // how many arguments it takes
	needs       string                            // how an error calls them
}

var commands = []entry{
	{"run", newRun, 0, 0, ""},
	{"detect", newDetect, 0, 0, ""},
	{"attack", newAttack, 0, 0, ""},
	{"plan", newPlan, 0, 0, ""},
	{"doctor", newDoctor, 0, 0, ""},
	{"datasets list", newDatasetsList, 0, 0, ""},
	{"datasets show", newDatasetsShow, 1, 1, "a set or a file"},
	{"datasets validate", newDatasetsValidate, 1, 1, "a set or a file"},
	{"datasets export", newDatasetsExport, 1, 1, "a set or a file"},
	{"datasets mutate", newDatasetsMutate, 1, 1, "a set or a file"},
	{"datasets new", newDatasetsNew, 1, 1, "the name of the file"},
	{"datasets import", newDatasetsImport, 0, several, ""},
	{"datasets fetch", newDatasetsFetch, 1, 1, "the name of a set"},
	{"agents list", newAgentsList, 0, 0, ""},
	{"agents doctor", newAgentsDoctor, 1, 1, "the name of a product"},
	{"agents install", newAgentsInstall, 1, 1, "the name of a product"},
	{"agents agree", newAgentsAgree, 3, 3, "a run directory and two of its agents"},
	{"surfaces", newSurfaces, 1, 1, "the name of a product"},
	{"attacks list", newAttacksList, 0, 0, ""},
	{"attacks mutations", newAttacksMutations, 0, 0, ""},
	{"defenses list", newDefensesList, 0, 0, ""},
	{"situations", newSituations, 1, 1, "a run directory"},
	{"report", newReport, 1, 1, "a run directory"},
	{"view", newView, 0, 1, "a directory"},
	{"serve-model", newServeModel, 0, 0, ""},
	{"export", newExport, 1, 1, "a run directory"},
	{"compare", newCompare, 1, several, "a run directory"},
	{"gate", newGate, 1, 1, "a run directory"},
	{"merge", newMerge, 1, several, "run directories"},
	{"rejudge", newRejudge, 1, 1, "a run directory"},
	{"judge audit", newJudgeAudit, 0, 0, ""},
	{"reproduce", newReproduce, 1, 1, "the name of a table"},
	{"memory", newMemory, 0, 0, ""},
	{"memory trace", checked(newTrace), 1, 1, "the id of a record"},
	{"memory cohort", checked(newCohort), 1, 1, "the value of an attribute"},
	{"memory search", checked(newSearch), 1, 1, "the text to look for"},
	{"memory timeline", checked(newTimeline), 0, 1, "a value"},
	{"memory snapshots", checked(newSnapshots), 0, 0, ""},
	{"memory snapshot", inStore(newSnapshot), 0, 1, "a name"},
	{"memory diff", checked(newDiff), 2, 2, "two snapshots"},
	{"memory rollback", inStore(newRollback), 0, 1, "a snapshot, or --to TIME"},
	{"memory undo", inStore(newUndo), 1, 1, "the number of an entry of the journal"},
	{"memory retire", inStore(newRetire), 1, 1, "a key, or a glob of keys"},
	{"memory forget", inStore(newForget), 1, several, "the ids of records"},
	{"memory verify", reading(newVerify), 0, 0, ""},
	{"memory prove", checked(newProve), 1, 1, "the id of a record"},
	{"memory verify-proof", newVerifyProof, 1, 1, "the file of a proof"},
	{"memory incident", inStore(newIncident), 0, several, ""},
	{"guard serve", newGuardServe, 0, 0, ""},
	{"guard proxy", newGuardProxy, 0, 0, ""},
	{"guard scan", newGuardScan, 1, several, "a file or a directory"},
	{"guard pending", reading(newGuardPending), 0, 0, ""},
	{"guard approve", inStore(newGuardApprove), 1, 1, "the number of what waits"},
	{"guard reject", inStore(newGuardReject), 1, 1, "the number of what waits"},
	{"version", newVersion, 0, 0, ""},
	{"man", newMan, 1, 1, "a directory"},
	{"worker", newWorker, 0, 0, ""},
	{"queue status", newQueueStatus, 0, 0, ""},
	{"queue drain", newQueueDrain, 0, 0, ""},
}

// command is a command with its texts of help.txt: under a heading, which says what it
// takes, a line about it, then more, then examples.
func command(path string) *cobra.Command {
	for section := range strings.SplitSeq("\n"+helpTexts, "\n== ") {
		heading, text, _ := strings.Cut(section, "\n")
		name, takes, _ := strings.Cut(heading, ": ")
		if name != path {
			continue
		}
		text, examples, _ := strings.Cut(text, "\nExamples:\n")
		short, long, _ := strings.Cut(text, "\n")
		return &cobra.Command{Use: strings.TrimSpace(path[strings.LastIndexByte(path, ' ')+1:] + " " + takes), Short: short,
			Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n"), Args: noCommand,
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	}
	panic("help.txt says nothing of " + path)
}

// addCommands adds all commands, or if one has the name that is asked for that alone: what
// the others say of settings, formats and sets need not be read.
func addCommands(root *cobra.Command, env *Env, asked string) {
	if !slices.ContainsFunc(commands, func(e entry) bool { return strings.HasPrefix(e.path+" ", asked+" ") }) ||
		asked == "man" { // which writes of all
		asked = ""
	}
	for _, e := range commands {
		group, _, nested := strings.Cut(e.path, " ")
		if asked != "" && group != asked {
			continue
		}
		parent := root
		if nested {
			if parent, _, _ = root.Find([]string{group}); parent == root {
				parent = command(group)
				root.AddCommand(parent)
			}
		}
		c := command(e.path)
		if do := e.make(env, c); do != nil {
			c.Args = e.args
			c.RunE = func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }
		}
		parent.AddCommand(c)
	}
}

// args holds a command line to how many arguments the command takes.
func (e *entry) args(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) < e.least:
		return &settings.Problem{What: cmd.CommandPath() + " needs " + e.needs, Hint: "usage: " + cmd.UseLine()}
	case len(args) <= e.most:
		return nil
	}
	takes := [...]string{"no argument, and %q stands there", "one argument, and %q stands there too",
		"two arguments, and %q stands there too", "three arguments, and %q stands there too"}[e.most]
	return &settings.Problem{What: cmd.CommandPath() + " takes " + fmt.Sprintf(takes, args[e.most])}
}

// noCommand says which command of a group a mistyped one may be.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	p := settings.Unknown("", "command", args[0], names)
	p.What += " for " + cmd.CommandPath()
	return p
}
