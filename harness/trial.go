package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
	"github.com/memtox/memtox/results"
)

// trialStart is the clock of every trial when its first session begins. Trials
// have no other clock, so that the day of a run changes nothing.
var trialStart = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// maxPad bounds the padding of one segment in tokens: far beyond any window, and
// small enough that a foreign set cannot fill the machine.
const maxPad = 1 << 18

// stage is one case made ready: what the trials of its chunk share.
type stage struct {
	subject    *score.Subject
	turns      []agents.Turn
	later      []agents.Turn // nil without a retrieval session
	background []datasets.Note
	recorded   map[*agents.Profile][]memory.Record // the background
	seed       uint64
	goal       *score.Goal     // nil where the outcome is no state
	drift      [][]agents.Turn // further write sessions, as far as some arm has them

	// of detect
	units []unit
	value *score.Value
}

// stage implements way: it prepares a case. The background memories and everything random depend
// on the run's seed and the case alone, so that all arms meet the same; a variant
// has what its case has, so that the two differ in the attack alone.
func (x *Experiment) stage(k *datasets.Case) *stage {
	st := &stage{subject: score.NewSubject(k), seed: draw(x.Config.Seed, cmp.Or(k.VariantOf, k.ID))}
	st.background = datasets.Background(st.seed, x.Config.Background)
	for i, t := range k.Write {
		st.turns = append(st.turns, agents.Turn{User: t.User, Fresh: t.Fresh, As: t.As, At: morning(t.Date),
			Incoming: st.incoming(t.Segments, i)})
	}
	if r := k.Retrieval; r != nil {
		st.later = []agents.Turn{{User: r.Query, At: morning(r.Date), Incoming: st.incoming(r.Segments, len(k.Write))}}
	}
	return st
}

// morning is when a session of a day begins; the zero time where the case names none.
func morning(day string) time.Time {
	if day == "" {
		return time.Time{}
	}
	t, _ := time.Parse(time.DateOnly, day) // the case was opened
	return t.Add(9 * time.Hour)
}

func (st *stage) incoming(segs []datasets.Segment, turn int) []agents.Incoming {
	var out []agents.Incoming
	for i, s := range segs {
		class, _ := datasets.OriginClass(s.Origin)
		in := agents.Incoming{Origin: memory.Origin{Class: class, Medium: s.Medium, Source: s.Source},
			Title: s.Title, Text: s.Text, Inline: s.Inline}
		if room := min(s.Pad, maxPad) - model.Tokens(s.Text); room > 0 {
			in.Text += "\n\n" + datasets.Pad(s.Medium, st.seed+uint64(turn)<<32+uint64(i), room)
		}
		out = append(out, in)
	}
	return out
}

// records are the background memories as a profile stores them: in the store of
// their kind, or in its first. Whoever gets them does not change them.
func (st *stage) records(p *agents.Profile) []memory.Record {
	if out, ok := st.recorded[p]; ok {
		return out
	}
	out := make([]memory.Record, len(st.background))
	for i, n := range st.background {
		out[i] = memory.Record{Store: p.StoreFor(n.Store), Text: n.Text, Origin: backgroundOrigin(n)}
	}
	if k := st.subject.Case.State; k != nil {
		for _, text := range k.Knows {
			out = append(out, memory.Record{Store: p.StoreFor("memory"), Text: text,
				Origin: memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}})
		}
	}
	if st.recorded == nil {
		st.recorded = map[*agents.Profile][]memory.Record{}
	}
	st.recorded[p] = out
	return out
}

// office is where a session of the case works; nil where its outcome is no state.
func (st *stage) office() (*agents.Office, error) {
	k := st.subject.Case
	if k.State == nil {
		return nil, nil
	}
	if st.goal == nil {
		g, err := score.GoalOf(k)
		if err != nil {
			return nil, err
		}
		st.goal = g
	}
	return &agents.Office{World: st.goal.Begun.Clone(), Desks: k.State.Desks, Answer: k.Answer, Agrees: k.Agrees}, nil
}

// injected are the records that reach the store around the gate. Those of a backup
// have passed the defense before the trial; the others claim what they like.
func (st *stage) injected(p *agents.Profile) (backup, strange []memory.Record) {
	for _, i := range st.subject.Case.Inject {
		class, ok := datasets.OriginClass(i.Origin)
		if !ok {
			class = memory.Agent
		}
		r := memory.Record{Store: p.StoreFor(i.Store), Key: i.Key, Text: i.Text,
			Origin: memory.Origin{Class: class, Medium: i.Medium, Source: i.Source}}
		if i.Signed {
			backup = append(backup, r)
		} else {
			strange = append(strange, r)
		}
	}
	return backup, strange
}

// trial implements way. The error is that of an interruption; what goes wrong within
// the trial stands in its row.
func (x *Experiment) trial(ctx context.Context, r *Runner, st *stage, t Trial) (f results.Finished, err error) {
	planned := x.known(st.subject, t)
	row := &planned
	f.Trial = row
	if row.Status == results.Excluded {
		row.Digest = results.OutcomeDigest(row, nil)
		return f, nil
	}

	if shared, ok := r.shared(t, row); ok {
		return shared, nil
	}
	ctx, depends := reference.Noting(ctx)
	began := time.Now()
	w := st.subject.Watch(r.group.spare())
	s := &sessions{progress: cmp.Or(r.progress, new(Progress)), witness: w, before: r.done, rooms: &r.rooms, script: r.script.again(),
		keep: x.Config.Transcripts == "all" || row.Judge != ""}
	defer func() { r.script = s.script }()
	within, done := ctx, context.CancelFunc(func() {})
	if limit := x.Config.TrialTimeout; limit > 0 {
		within, done = context.WithTimeoutCause(ctx, limit,
			fmt.Errorf("the trial took longer than trial_timeout (%v) allows", limit))
	}
	r.done = nil
	err = s.run(within, x, r.cache, st, t)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = context.Cause(within)
	}
	done()
	if err != nil && ctx.Err() != nil {
		return f, ctx.Err()
	}
	if remote.StopsRun(err) {
		return f, err // a limit on calls, tokens or cost: the trial runs again on resume
	}
	row.WallUS = time.Since(began).Microseconds()
	w.Costs(row, s.write, s.gap, s.later)
	if s.meter != nil {
		row.DefenseCalls, row.DefenseTokens = int32(s.meter.ModelCalls), int64(s.meter.Tokens)
		if s.office != nil {
			row.Looks = int32(s.office.Looks)
		}
	}
	if err != nil {
		row.Status, row.Reason = results.Error, reason(err)
	} else {
		row.Status, row.NotEnforced = results.Scored, s.unheld
		w.Judge(row, s.write, s.later, s.mem)
		if s.office != nil {
			w.State(row, st.goal, s.office, s.later)
		}
	}
	f.Decisions = w.Decisions
	var told results.Transcript
	if s.keep {
		told = s.transcript(row)
	}
	if row.Judge != "" && row.Status == results.Scored {
		evidence, err := st.subject.Evidence(&told)
		if err == nil {
			told.Judge, err = x.Reader.Score(ctx, row, evidence)
		}
		if err != nil {
			return f, cmp.Or(ctx.Err(), err) // interrupted, or a limit on calls, tokens or cost
		}
	}
	if _, loop := x.drivers[drives{x.Plan.Arms[t.Arm].Profile, x.Plan.Arms[t.Arm].Model}].(*agents.Loop); loop &&
		row.Status == results.Scored { // an agent elsewhere may not have noticed yet that its trial is over
		r.done = s.mem
	}
	row.Digest = results.OutcomeDigest(row, f.Decisions)
	if x.Config.Transcripts == "all" {
		f.Transcript = r.group.line(told.Append)
	}
	r.last = held{}
	if x.ends(t.Arm) && !*depends && row.Status == results.Scored && row.Judge == "" {
		r.last = held{r.of, t, f}
	}
	return f, nil
}

// held is a trial that the other end of compliance shares: nothing that the model
// saw was attributed, so that both answer alike.
type held struct {
	of    *datasets.Case
	trial Trial
	done  results.Finished
}

// ends reports whether the next arm is the same at the other end of compliance.
func (x *Experiment) ends(arm int) bool {
	if arm+1 >= len(x.Plan.Arms) {
		return false
	}
	a, b := &x.Plan.Arms[arm], &x.Plan.Arms[arm+1]
	_, ours := x.Models[a.Model].Model.(*reference.Model)
	_, theirs := x.Models[b.Model].Model.(*reference.Model)
	_, loop := x.drivers[drives{a.Profile, a.Model}].(*agents.Loop) // what an agent elsewhere asks its model is not noted
	return loop && ours && theirs && a.Model+1 == b.Model && a.Profile == b.Profile && a.Life == b.Life &&
		a.Defense.Name == b.Defense.Name
}

// shared is the trial before for the arm of the other end, whose row has the columns
// that are its own.
func (r *Runner) shared(t Trial, own *results.Trial) (f results.Finished, ok bool) {
	last := &r.last
	if last.done.Trial == nil || last.trial.Arm+1 != t.Arm || last.of != r.of || last.trial.Epoch != t.Epoch {
		return f, false
	}
	row := *last.done.Trial
	row.ID, row.Index, row.Model = own.ID, own.Index, own.Model
	f.Trial = &row
	f.Decisions = append(r.group.spare(), last.done.Decisions...)
	for i := range f.Decisions {
		f.Decisions[i].Trial = row.ID
	}
	if line := last.done.Transcript; line != nil {
		f.Transcript = r.group.line(func(b []byte) []byte {
			return results.AppendTranscriptOf(b, line, last.done.Trial, &row)
		})
	}
	r.last = held{}
	return f, true
}

// row has the columns of the case and the arm.
func (x *Experiment) row(k *datasets.Case, t Trial) results.Trial {
	arm := &x.Plan.Arms[t.Arm]
	scaled := x.drivers[drives{arm.Profile, arm.Model}].Scaled()
	split := k.Split
	if split == "" {
		split = datasets.Report
	}
	return results.Trial{
		ID: x.Plan.idOf(k, t), Index: t.Index,
		Dataset: x.Plan.Set.Name, Case: k.ID, Family: k.Family, Split: string(split), Label: string(k.Label),
		Class: k.Class, Signal: k.Signal, Channel: k.Channel, Domain: k.Domain, Goal: k.Goal, Kind: k.Kind,
		Twin: k.Twin, VariantOf: k.VariantOf, Variant: k.Variant, Via: x.via(k, arm),
		Agent: arm.Agent(), Defense: arm.Defense.Name, Model: x.Models[arm.Model].Name, Epoch: int32(t.Epoch),
		HasRetrieval: k.Retrieval != nil,
		Window:       int32(scaled.Window), ReviewTurns: int32(scaled.ReviewTurns),
		ReviewIterations: int32(scaled.ReviewIterations), KeepMessages: int32(scaled.KeepMessages),
	}
}

// sessions are the two sessions of one trial.
type sessions struct {
	progress *Progress
	witness  *score.Witness
	before   *memory.Memory     // of the trial before, which is over
	rooms    *[3]agents.Outcome // of the sessions of the trial before
	mem      *memory.Memory
	write    *agents.Outcome
	later    *agents.Outcome
	meter    *memory.Meter
	office   *agents.Office  // of the later session
	unheld   string          // the gates that had nothing to hold on to
	gap      *agents.Outcome // the ordinary sessions in between
	keep     bool            // the transcript is kept, or judged
	script
}

// run runs both sessions. A panic in a defense or a model is an error of the
// trial, like any other failure of theirs.
func (s *sessions) run(ctx context.Context, x *Experiment, cache *memory.Cache, st *stage, t Trial) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v (%s)", p, panicSite(debug.Stack()))
		}
	}()
	arm := x.Plan.Arms[t.Arm]
	id := x.Plan.idOf(st.subject.Case, t)
	ctx = remote.WithTrial(ctx, id)
	ctx, s.meter = memory.WithMeter(ctx)
	name, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return fmt.Errorf("trial id: %w", err)
	}
	after := s.before
	s.before = nil // or every trial would keep the one before it
	s.mem = memory.New(memory.Options{
		Stores: arm.Profile.Under(arm.Defense.Spec.Kind), Recall: arm.Profile.Recall, Transcripts: arm.Profile.Transcripts,
		Observer: func(e *memory.Event) {
			before := len(s.witness.Decisions)
			s.witness.Observe(e)
			if s.keep {
				s.observe(e, s.witness.Decisions[before:])
			}
		},
		Meter: s.meter, Cache: cache, Embed: x.embed, Start: trialStart, Seed: st.seed + uint64(t.Epoch),
		// A hash: it says nothing of the case, not even its place in the set.
		After: after, Trial: name, WholeTurns: st.subject.Case.State == nil,
		Lineage: memory.LineageMode(x.Config.Lineage), Truth: st.subject.Truth,
	})
	gate, closed, err := x.guard(ctx, t.Arm, s.mem)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	s.mem.Guard(gate)
	backup, strange := st.injected(arm.Profile)
	if len(backup) > 0 {
		if backup, err = s.mem.Backup(ctx, backup); err != nil {
			return fmt.Errorf("making the backup: %w", err)
		}
	}
	if err := s.mem.Seed(ctx, st.records(arm.Profile)); err != nil {
		return fmt.Errorf("seeding the memory: %w", err)
	}
	s.witness.Seeded(s.mem)
	if s.keep {
		s.memory.Before = s.changed(s.mem)
	}
	// What is done to the world in the write session is done to a copy that is thrown away.
	aside, err := st.office()
	if err != nil {
		return err
	}
	loop, done, err := x.open(ctx, t.Arm, s.mem, aside)
	if err != nil {
		return err
	}
	defer done()
	defer func() { s.unheld = unheld(loop, arm.Defense.Screens) }()
	phase := &s.progress.Writing
	phase.Add(1)
	defer func() { phase.Add(-1) }()
	turns := brought(st.written(arm.Life), x.via(st.subject.Case, &arm))
	if s.write, err = loop.Run(ctx, s.mem, turns, agents.End{Review: true, Office: aside, Again: &s.rooms[0]}); err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	for _, r := range append(backup, strange...) {
		s.witness.Injected(s.mem.Inject(r))
	}
	s.witness.WriteSessionOver(s.mem)
	if s.keep {
		s.memory.Between = s.changed(s.mem)
	}
	if st.later == nil {
		return s.mem.Err()
	}
	phase.Add(-1)
	phase = &s.progress.Retrieving
	phase.Add(1)
	if turns := st.between(arm.Life); len(turns) > 0 {
		s.mem.NextSession()
		s.witness.Between(true)
		s.gap, err = loop.Run(ctx, s.mem, turns, agents.End{Review: true, Again: &s.rooms[1]})
		s.witness.Between(false)
		if err != nil {
			return fmt.Errorf("session between writing and retrieval: %w", err)
		}
	}
	s.mem.NextSession()
	if s.office, err = st.office(); err != nil {
		return err
	}
	if s.office != nil && st.later[0].At.IsZero() {
		s.mem.Tick(datasets.StateGap)
	}
	if s.later, err = loop.Run(ctx, s.mem, st.later, agents.End{Office: s.office, Again: &s.rooms[2]}); err != nil {
		return fmt.Errorf("retrieval session: %w", err)
	}
	return s.mem.Err()
}

// unheld names the gates of a defense that had nothing to hold on to.
func unheld(loop runner, screens []defenses.Place) string {
	if t, ok := loop.(*external.Trial); !ok || t.Holds() {
		return ""
	}
	var out []string
	for _, p := range []defenses.Place{defenses.Read, defenses.Act} {
		if slices.Contains(screens, p) {
			out = append(out, p.String())
		}
	}
	return strings.Join(out, " ")
}

// guard opens an arm's defense over a memory. done lets go of it.
func (x *Experiment) guard(ctx context.Context, arm int, mem *memory.Memory) (gate memory.Gate, done func() error,
	err error) {
	gate, err = x.Plan.Arms[arm].Defense.Defense.Open(ctx, mem.View())
	if err != nil {
		return nil, nil, fmt.Errorf("opening the defense %s: %w", x.Plan.Arms[arm].Defense.Name, err)
	}
	if c, ok := gate.(interface{ Close() error }); ok {
		return gate, c.Close, nil
	}
	return gate, func() error { return nil }, nil
}

type runner interface {
	Run(context.Context, *memory.Memory, []agents.Turn, agents.End) (*agents.Outcome, error)
}

// open makes the agent of an arm ready for a trial.
func (x *Experiment) open(ctx context.Context, arm int, mem *memory.Memory, o *agents.Office) (runner, func(), error) {
	a := &x.Plan.Arms[arm]
	switch d := x.drivers[drives{a.Profile, a.Model}].(type) {
	case *external.Agent:
		t, err := d.Open(ctx, mem, o, a.Defense.Spec.Kind)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the trial: %w", err)
		}
		return t, t.Close, nil
	case *agents.Loop:
		return d, func() {}, nil
	}
	return nil, nil, errors.New("the arm has no agent that can be run")
}

// reason is an error as a row holds it: one bounded line without control
// characters, for it may quote a model or a defense.
func reason(err error) string {
	s := strings.ToValidUTF8(err.Error(), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !strconv.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
	return text.Clip(s, 400)
}

// panicSite is the function that panicked.
func panicSite(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") {
			for _, l := range lines[i+1:] {
				if !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "runtime.") {
					if j := strings.LastIndexByte(l, '('); j > 0 {
						return l[:j]
					}
					return l
				}
			}
		}
	}
	return "unknown place"
}
