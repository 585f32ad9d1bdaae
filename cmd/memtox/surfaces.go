package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memtox/memtox/agents/installed"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
)

// surfacesResult is what memtox surfaces found, as --format json and --out write it and
// --against reads it.
type surfacesResult struct {
	Product string `json:"product"`
	Title   string `json:"-"`
	Version string `json:"version"`
	// Against is what the outcomes are compared with: the version of which the set expects
	// them, or that of an earlier result.
	Against string        `json:"against"`
	Rows    []surfacesRow `json:"rows"`
}

type surfacesRow struct {
	installed.Surface
	Was    map[string]string `json:"was,omitempty"` // of the same scenario
	State  string            `json:"state"`         // as before, changed, new or not run
	Differ []string          `json:"differ,omitempty"`
}

// Answers are what was seen beside the prompt and the stores.
func (r surfacesRow) Answers() string {
	var out []string
	for _, name := range installed.Looks(r.Outcome) {
		if name != "prompt" && name != "stored" {
			out = append(out, name+": "+r.Outcome[name])
		}
	}
	return strings.Join(out, "; ")
}

func (r surfacesRow) Note() string {
	switch {
	case r.Reason != "":
		return "not run: " + r.Reason
	case r.State == "new":
		return r.State
	}
	return strings.Join(r.Differ, "; ")
}

// Count counts the rows of a state.
func (r surfacesResult) Count(state string) (n int) {
	for _, row := range r.Rows {
		if row.State == state {
			n++
		}
	}
	return n
}

func newSurfaces(env *Env, c *cobra.Command) action {
	format := formatFlag(c)
	at := c.Flags().String("at", "", "the `FOLDER` or program of an installation; without it one is looked for")
	only := c.Flags().StringSlice("only", nil, "Only the scenarios with these `IDS`")
	against := c.Flags().String("against", "", "Compare with the result in `FILE`, and not with what is expected")
	out := c.Flags().String("out", "", "Keep the result in `FILE`, for a later --against")
	completeProducts(c)
	return func(ctx context.Context, args []string) error {
		p, err := product(args[0])
		if err != nil {
			return err
		}
		name, data := datasets.Surfaces(p.Name)
		if data == nil {
			return &settings.Problem{What: "memtox-surfaces has no scenarios of " + p.Title}
		}
		set, err := p.ReadSurfaces(name, data)
		if err != nil {
			return err
		}
		list, err := chosen(set, *only)
		if err != nil {
			return err
		}
		r := surfacesResult{Product: p.Name, Title: p.Title, Against: set.Version}
		was := map[string]map[string]string{}
		for _, s := range list {
			was[s.ID] = s.Expect
		}
		if *against != "" {
			if r.Against, was, err = env.earlier(*against, p.Name); err != nil {
				return err
			}
		}
		i, err := p.Find(ctx, installed.Surroundings{Lookup: env.lookup, Dir: env.Dir}, *at)
		if err != nil {
			return &settings.Problem{What: p.Title + " cannot be started", Err: err, Hint: "memtox agents install " + p.Name +
				" installs it; see memtox agents doctor " + p.Name}
		}
		for _, caution := range p.Cautions(i.Version) {
			env.say("%s", caution)
		}
		r.Version = i.Version
		err = set.Try(ctx, p, i, list, func(s installed.Surface) {
			row := surfacesRow{Surface: s, Was: was[s.ID]}
			switch {
			case s.Reason != "":
				row.State = "not run"
			case row.Was == nil:
				row.State = "new"
			default:
				row.State, row.Differ = "as before", installed.Differences(row.Was, s.Outcome)
				if len(row.Differ) > 0 {
					row.State = "changed"
				}
			}
			r.Rows = append(r.Rows, row)
			env.say("%d of %d: %s: %s", len(r.Rows), len(list), s.About, cmp.Or(row.Note(), row.State))
		})
		if err != nil && len(r.Rows) == 0 {
			return err
		}
		if end := env.surfaces(r, *format, *out); err == nil { // what was seen before an interrupt is shown too
			err = end
		}
		return err
	}
}

// chosen are the scenarios of a set with some ids; none named are all.
func chosen(set *installed.Surfaces, ids []string) (list []*installed.Scenario, err error) {
	var known []string
	for i := range set.Scenarios {
		s := &set.Scenarios[i]
		if known = append(known, s.ID); len(ids) == 0 || slices.Contains(ids, s.ID) {
			list = append(list, s)
		}
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, settings.Unknown("--only", "scenario", id, known)
		}
	}
	return list, nil
}

// earlier reads an earlier result: the version of the product, and its outcomes.
func (e *Env) earlier(name, product string) (version string, was map[string]map[string]string, err error) {
	data, err := e.read("--against", name)
	if err != nil {
		return "", nil, err
	}
	var r surfacesResult
	if err := json.Unmarshal(data, &r); err != nil || r.Product == "" {
		return "", nil, &settings.Problem{Where: "--against", What: name + " holds no result of memtox surfaces", Err: err,
			Hint: "--out writes one"}
	}
	if r.Product != product {
		return "", nil, &settings.Problem{Where: "--against",
			What: fmt.Sprintf("%s is about %q, and not about %q", name, r.Product, product)}
	}
	was = map[string]map[string]string{}
	for _, row := range r.Rows {
		if row.Reason == "" {
			was[row.ID] = row.Outcome
		}
	}
	return r.Version, was, nil
}

func (e *Env) surfaces(r surfacesResult, format, out string) error {
	if out != "" {
		if err := e.output(out, func(w io.Writer) error {
			c := json.NewEncoder(w)
			c.SetIndent("", "  ")
			return c.Encode(r)
		}); err != nil {
			return err
		}
	}
	err := show(e, format, "surfaces", r, r)
	if n := r.Count("not run"); err == nil && n > 0 {
		return e.end(errors.New("not run"), "%d of %d scenarios could not be run", n, len(r.Rows))
	}
	return endIf(err, r.Count("changed") > 0, errBadNews)
}
