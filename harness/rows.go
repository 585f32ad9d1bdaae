package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// known is what the plan says of a trial's row, whatever happens in the trial: the
// columns of its case and arm and what is expected of it. One that does not apply is
// excluded.
func (x *Experiment) known(s *score.Subject, t Trial) results.Trial {
	k, arm := s.Case, x.Plan.Arms[t.Arm]
	row := x.row(k, t)
	switch why := x.Plan.Excludes(k, arm); {
	case arm.Profile.Name == TextAgent:
		row.ExpectsWrite = k.Label == datasets.Benign
	case why != "":
		row.Status, row.Reason = results.Excluded, why
	default:
		row.ExpectsASR, row.ExpectsRSR, row.ExpectsWrite = s.ExpectsASR(), s.ExpectsRSR(), k.Writes()
		s.Situate(&row)
		row.ExpectsProposal = (row.ExpectsASR || row.ExpectsWrite) && len(k.Inject) == 0
		if s.NeedsReader() {
			row.Judge = x.judged
		}
	}
	return row
}

// plannedColumns are the columns that known fills. A trial that does not apply has
// its status and reason from the plan too.
var plannedColumns = columnsNamed("trial index dataset case family split label class signal channel domain goal " +
	"kind twin variant_of variant " +
	"agent defense model epoch has_retrieval expects_asr expects_rsr expects_write expects_proposal situation high due judge via window " +
	"review_turns review_iterations keep_messages")

type column struct {
	name  string
	field int
}

func columnsNamed(names string) []column {
	var out []column
	t := reflect.TypeFor[results.Trial]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		if strings.Contains(" "+names+" ", " "+name+" ") {
			out = append(out, column{name, i})
		}
	}
	return out
}

// Rows holds rows that were made elsewhere, or earlier, against the plan. It serves
// one goroutine.
type Rows struct {
	x       *Experiment
	of      int // case of the subject
	subject *score.Subject
}

// Rows returns what holds rows against the plan.
func (x *Experiment) Rows() *Rows { return &Rows{x: x, of: -1} }

// Check returns an error that says where a row contradicts the plan. Where the plan
// is that of a run.json it fills in what an older memtox did not say.
func (r *Rows) Check(row *results.Trial) error {
	p := r.x.Plan
	if row.Index < 0 || row.Index >= p.Whole() || p.ID(p.at(row.Index)) != row.ID {
		return fmt.Errorf("trial %.20q is not the one at place %d of the plan", row.ID, row.Index)
	}
	at := p.at(row.Index)
	if r.of != at.Case {
		r.of, r.subject = at.Case, score.NewSubject(&p.Set.Cases[at.Case])
	}
	if profile := p.Arms[at.Arm].Profile; r.x.unasked[profile] {
		profile.WritesSkills = row.Status != results.Excluded // nobody asked this agent; its own row says it
	}
	want := r.x.known(r.subject, at)
	if r.x.unasked != nil {
		row.ExpectsProposal = want.ExpectsProposal // rows of a memtox before this one have no such column
	}
	row.Via = cmp.Or(row.Via, want.Via) // nor this one
	is, has := reflect.ValueOf(row).Elem(), reflect.ValueOf(&want).Elem()
	for _, c := range plannedColumns {
		if a, b := is.Field(c.field), has.Field(c.field); !a.Equal(b) {
			return fmt.Errorf("trial %s of the case %s has %s %.80q, and the plan has %.80q: other data, or another plan, "+
				"made that row",
				row.ID, want.Case, c.name, fmt.Sprint(a), fmt.Sprint(b))
		}
	}
	switch {
	case row.Status == results.Excluded || want.Status == results.Excluded:
		if row.Status != want.Status || row.Reason != want.Reason {
			return fmt.Errorf("trial %s has the status %.20q (%.80q), and the plan has %q (%q)", row.ID, row.Status, row.Reason,
				want.Status, want.Reason)
		}
	case row.Status != results.Scored && row.Status != results.Error:
		return fmt.Errorf("trial %s has the status %.20q", row.ID, row.Status)
	}
	return nil
}

// CheckAll holds every row of a run directory against the plan. name says in the
// error which one it is.
func (x *Experiment) CheckAll(ctx context.Context, name string, from *results.Reader) error {
	for _, err := range x.finished(ctx, name, from, nil) {
		return err
	}
	return nil
}

// finished visits the trials of a run directory that are wanted, whole, and holds every
// row against the plan. What ends it early is the last that it gives. Without wanted it
// gives nothing else.
func (x *Experiment) finished(ctx context.Context, name string, from *results.Reader,
	wanted func(*results.Trial) bool) iter.Seq2[results.Finished, error] {
	return func(yield func(results.Finished, error) bool) {
		rows, read := x.Rows(), results.Everything
		if wanted == nil {
			read = results.TrialsOnly
		}
		for e, err := range from.Entries(read) {
			if err = cmp.Or(err, ctx.Err()); err == nil {
				if bad := rows.Check(&e.Trial); bad != nil {
					err = &settings.Problem{Where: name, Err: bad, Hint: "none of its rows is counted; bring back the data " +
						"that it was run with, or run it again into another directory"}
				}
			}
			if err == nil && (wanted == nil || !wanted(&e.Trial)) {
				continue
			}
			var f results.Finished
			if err == nil {
				f, err = whole(from, e)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// whole is a trial with all that is stored of it.
func whole(from *results.Reader, e *results.Entry) (f results.Finished, err error) {
	row := e.Trial
	f = results.Finished{Trial: &row, Decisions: slices.Clone(e.Decisions)}
	if e.HasTranscript() {
		if f.Transcript, err = from.Transcript(row.ID); errors.Is(err, results.ErrNoTranscript) {
			err = nil
		}
	}
	return f, err
}

// PlanOf is the plan of a run from its run.json and the cases, for holding rows
// against it: no program is started and no server asked, and nothing can be run.
// file is where the cases are; "" is where the run had them. name says in messages
// which run it is.
func PlanOf(ctx context.Context, name string, run *results.Run, file string, cat Catalog) (*Experiment, error) {
	c, err := RecordedConfig(run)
	if err != nil {
		return nil, &settings.Problem{Where: name, Err: err}
	}
	if file == "" && !here(c.Dataset) {
		return nil, &settings.Problem{Where: name, What: "the run had its cases on another machine, as " + shown(c.Dataset),
			Hint: "copy them here"}
	}
	c.Shard = ""
	set, err := cat.open(ctx, cmp.Or(file, c.Dataset))
	if err != nil {
		return nil, err
	}
	if set.SHA256 != run.Dataset.SHA256 {
		return nil, &settings.Problem{Where: "--dataset",
			What: fmt.Sprintf("%s is not what it was when the run %s was made (SHA-256 %.16s…, then %.16s…)",
				cmp.Or(file, c.Dataset), name, set.SHA256, run.Dataset.SHA256),
			Hint: "rows are held against the same cases: bring that file back"}
	}
	same := *set
	same.Name = run.Dataset.Name // of the file where it was
	x := &Experiment{Config: c, unasked: map[*agents.Profile]bool{}, drivers: map[drives]driver{}}
	for _, m := range run.ModelNames() {
		x.Models = append(x.Models, Model{Name: m, LLM: run.LLM})
	}
	resolved, _ := run.Settings[resolvedKey].(map[string]any)
	x.judged, _ = resolved["judge"].(string)
	canonical, _ := resolved["defenses"].(map[string]any)
	var built []defenses.Built
	for _, d := range run.Defenses {
		is, ok := canonical[d].(string)
		if !ok {
			return nil, &settings.Problem{Where: name, What: fmt.Sprintf("its run.json does not say what the defense %q "+
				"stands for", d)}
		}
		built = append(built, defenses.Built{Name: d, Canonical: is})
	}
	var profiles []*agents.Profile
	for _, spec := range c.Agents {
		p, err := x.profile(spec, cat)
		if err != nil {
			return nil, &settings.Problem{Where: name, What: "names an agent that this memtox does not have", Err: err}
		}
		profiles = append(profiles, p)
	}
	if err := x.cross(&same, profiles, built); err != nil {
		return nil, err
	}
	if whole := cmp.Or(run.Whole, run.Planned); x.Plan.Len() != whole {
		return nil, &settings.Problem{Where: name, What: fmt.Sprintf("its run.json names %d trials, and the plan has %d",
			whole, x.Plan.Len())}
	}
	return x, nil
}

// profile is the profile of an agent that is not asked anything.
func (x *Experiment) profile(spec string, cat Catalog) (*agents.Profile, error) {
	if spec == TextAgent {
		return textProfile(), nil
	}
	if external.IsSpec(spec) {
		a, err := external.New(spec, external.Options{})
		if err != nil {
			return nil, err
		}
		p := a.Profile()
		x.unasked[p] = true
		return p, nil
	}
	return cat.profile("agent", spec)
}
