package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/internal/text"
)

// TextAgent is the name of the profile that has no agent: the texts of a case go
// straight to the defenses.
const TextAgent = "text"

// DetectOptions are what `memtox detect` is told beside the settings of a run.
type DetectOptions struct {
	// Origin is what texts that name no origin are taken for: one of
	// [datasets.Origins], or empty. Without one they are handed over as the agent's
	// own words, so that no rule about external content fires, and rows leave the
	// origin empty.
	Origin string
	// Gate is where texts are shown: input, write or read. Empty takes the first of
	// write, input and read that a defense screens.
	Gate string
	// Stored is how many ordinary memories stand in the store that a text would be
	// added to.
	Stored int
	// Observe is told of every trial with the sizes of its texts in bytes, one a
	// decision; nil is nobody. It is called by several goroutines.
	Observe func(e *results.Entry, sizes []int)
}

// texts is what an experiment has that hands texts to defenses.
type texts struct {
	DetectOptions
	origin *memory.Origin // of texts without one; nil is unknown
	gates  []defenses.Place
	stored []memory.Record
	shared []bool // by arm: one gate a worker, because the store is not empty
}

// textProfile is an agent that stores what it is told, under the key it is told.
func textProfile() *agents.Profile {
	return &agents.Profile{Name: TextAgent, Version: "1", About: "no agent: texts are handed to the defenses",
		Stores: []memory.StoreSpec{{Name: "memory", Title: "memory", Kind: memory.Entries}}, WritesSkills: true}
}

// PrepareDetect resolves the settings of `memtox detect`: the arms are the
// defenses, under the profile text. No model is made.
func PrepareDetect(ctx context.Context, c Config, o DetectOptions, cat Catalog) (*Experiment, error) {
	x := &Experiment{Config: c, Name: "none", texts: &texts{DetectOptions: o}}
	x.Config.Agents, x.Config.Model, x.Config.Transcripts, x.Config.Epochs = []string{TextAgent}, x.Name, "none", 1
	t := x.texts
	if o.Origin != "" {
		class, ok := datasets.OriginClass(o.Origin)
		if !ok {
			return nil, settings.Unknown("--origin", "origin", o.Origin, datasets.Origins())
		}
		t.origin = &memory.Origin{Class: class}
	}
	if o.Stored < 0 || o.Stored > maxStored {
		return nil, &settings.Problem{Where: "--stored", What: fmt.Sprintf("%d is out of range", o.Stored), Hint: fmt.Sprintf("at least 0, at most %d", maxStored)}
	}
	set, err := cat.Datasets(ctx, c.Dataset)
	if err != nil {
		return nil, datasetProblem(c.Dataset, err)
	}
	built, err := buildDefenses(ctx, c, cat, set)
	if err != nil {
		return nil, err
	}
	if err := x.prepareTexts(ctx, set, built); err != nil {
		_ = x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Experiment) prepareTexts(ctx context.Context, set *datasets.Set, built []defenses.Built) (err error) {
	c, t := x.Config, x.texts
	if err := x.greet(ctx, built); err != nil {
		return err
	}
	profile := textProfile()
	loop := &agents.Loop{Profile: profile, Settings: agents.Settings{Window: c.Window, Policy: c.Policy}}
	var arms []Arm
	for _, b := range built {
		place, err := gateFor(t.Gate, b)
		if err != nil {
			return err
		}
		t.gates = append(t.gates, place)
		// What an external guard keeps of the texts before is not known to follow
		// what was stored, so it gets a fresh start for each.
		t.shared = append(t.shared, t.Stored > 0 && ours(&b))
		arms = append(arms, Arm{Profile: profile, Defense: b})
		x.drivers = append(x.drivers, loop)
	}
	if x.Plan, err = newPlan(c, set, x.Name, arms); err != nil {
		return err
	}
	t.stored = storedRecords(t.Stored)
	x.warm(ctx)
	return nil
}

// ours reports whether a defense is certainly of this process: a chain may hold
// others.
func ours(b *defenses.Built) bool { return !b.Spec.Open() && b.Spec.Kind != "chain" }

// gateFor says at which gate a defense is asked.
func gateFor(name string, b defenses.Built) (defenses.Place, error) {
	order := []defenses.Place{defenses.Write, defenses.Input, defenses.Read}
	if name == "" {
		for _, p := range order {
			if slices.Contains(b.Screens, p) {
				return p, nil
			}
		}
		if len(b.Screens) == 0 { // the undefended arm
			return defenses.Write, nil
		}
		return 0, &settings.Problem{Where: "--defense", What: fmt.Sprintf("%s screens %s only, where no text is shown to it", b.Name, defenses.PlaceList(b.Screens)), Hint: "leave it out"}
	}
	for _, p := range order {
		if p.String() == name {
			if len(b.Screens) > 0 && !slices.Contains(b.Screens, p) {
				return 0, &settings.Problem{Where: "--gate", What: fmt.Sprintf("%s does not screen the %s gate: it screens %s", b.Name, name, defenses.PlaceList(b.Screens)), Hint: "place it there, as in " + b.Name + "@" + name + ", or leave --gate out"}
			}
			return p, nil
		}
	}
	return 0, settings.Unknown("--gate", "gate", name, []string{"write", "input", "read"})
}

// unit is one text of a case as it is shown to a gate.
type unit struct {
	key, text, query string
	origin           memory.Origin
	known            bool // the case says the origin, or --origin does
	asked            bool
	payload          bool
}

// units are the texts of a case: its text, or what its write session brings in.
// The user's own words are a text where nothing else is, or where they are what
// should be stored.
func (t *texts) units(k *datasets.Case, value *score.Value) []unit {
	var out []unit
	query := ""
	if k.Retrieval != nil {
		query = k.Retrieval.Query
	}
	add := func(u unit) {
		u.query = query
		out = append(out, u)
	}
	if x := k.Text; x != nil {
		u := unit{key: x.Key, text: x.Content}
		class, ok := datasets.OriginClass(x.Origin)
		switch {
		case ok:
			u.origin, u.known = memory.Origin{Class: class}, true
		case t.origin != nil:
			u.origin, u.known = *t.origin, true
		default:
			u.origin = memory.Origin{Class: memory.Agent}
		}
		u.origin.Medium, u.origin.Source = x.Medium, x.Source
		add(u)
	}
	for _, turn := range k.Write {
		asks := text.AsksToKeep(turn.User)
		for _, s := range turn.Segments {
			add(unit{text: s.Text, origin: memory.Origin{Class: memory.External, Medium: s.Medium, Source: s.Source}, known: true, asked: asks})
		}
	}
	if len(out) == 0 || k.Kind == datasets.KindUser {
		for _, turn := range k.Write {
			add(unit{text: turn.User, origin: memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}, known: true})
		}
	}
	found := false
	for i := range out {
		out[i].payload = value.In(out[i].text) || value.In(out[i].key)
		found = found || out[i].payload
	}
	for i := range out {
		out[i].payload = out[i].payload || !found
	}
	return out
}

// runText runs one trial of detect: the texts of one case against one defense.
func (x *Experiment) runText(ctx context.Context, own *scratch, st *stage, t Trial) (results.Finished, error) {
	own.text = x.known(st.subject, t)
	row := &own.text
	f := results.Finished{Trial: row, Decisions: own.rows[:0]}
	sizes := own.sizes[:0]
	began := time.Now()
	err := x.classify(ctx, own, st, t, &f, &sizes)
	own.sizes, own.rows = sizes, f.Decisions
	if err != nil && ctx.Err() != nil {
		return f, ctx.Err()
	}
	row.WallUS = time.Since(began).Microseconds()
	row.Status = results.Scored
	if err != nil {
		row.Status, row.Reason = results.Error, reason(err)
	} else {
		x.verdict(row, f.Decisions, st, own.stops)
	}
	row.Digest = results.OutcomeDigest(row, f.Decisions)
	if x.texts.Observe != nil {
		own.entry.Trial, own.entry.Decisions = *row, f.Decisions
		x.texts.Observe(&own.entry, sizes)
	}
	return f, nil
}

// classify shows every text of the case to the arm's gate.
func (x *Experiment) classify(ctx context.Context, own *scratch, st *stage, t Trial, f *results.Finished, sizes *[]int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v (%s)", p, panicSite(debug.Stack()))
			own.gates = nil // whatever state it is in
		}
	}()
	own.stops = own.stops[:0]
	ctx, meter := memory.WithMeter(ctx)
	defer func() {
		f.Trial.DefenseCalls, f.Trial.DefenseTokens = int32(meter.ModelCalls), int64(meter.Tokens)
	}()
	g, done, err := x.textGate(ctx, own, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	place := x.texts.gates[t.Arm]
	for i := range st.units {
		u := &st.units[i]
		v, took, err := x.ask(ctx, g, place, u)
		if err != nil {
			return err
		}
		took, wire := meter.Split(took)
		d := results.Decision{Seq: int32(i), Session: 1, Gate: place.String(), Route: memory.RouteMemoryTool.String(), Op: memory.Add.String(),
			Action: v.Action.String(), Record: "r" + strconv.Itoa(len(x.texts.stored)+1), Store: "memory", Reasons: checks(v.Findings),
			Unsure: v.Unsure, LatencyNS: took.Nanoseconds(), WireNS: wire.Nanoseconds()}
		if u.known {
			d.Origin = u.origin.Class.String()
		}
		if place != defenses.Write {
			d.Op, d.Route = "", ""
		}
		if v.HasScore {
			score := v.Score
			d.Score = &score
		}
		d.Poison = u.payload && f.Trial.Label == results.Attack
		d.Legit = f.Trial.Label == results.Benign
		own.stops = append(own.stops, v.Action.Stops() || v.Action == memory.Redact && v.Text != u.text && !(!st.value.Empty() && st.value.In(v.Text)))
		f.Decisions = append(f.Decisions, d)
		*sizes = append(*sizes, len(u.text))
	}
	return nil
}

// ask shows one text to a gate and measures the call.
func (x *Experiment) ask(ctx context.Context, g memory.Gate, place defenses.Place, u *unit) (v memory.Verdict, took time.Duration, err error) {
	var lineage memory.Lineage
	if u.known {
		lineage = memory.Lineage{{Segment: 1, Origin: u.origin}}
	}
	r := memory.Record{ID: "r" + strconv.Itoa(len(x.texts.stored)+1), Key: u.key, Store: "memory", Text: u.text, Origin: u.origin, Lineage: lineage,
		Principal: textPrincipal, Asked: u.asked, Created: trialStart, ValidFrom: trialStart, Version: 1}
	if r.Key == "" {
		r.Key = "memory/" + r.ID
	}
	moment := memory.AtWrite
	switch place {
	case defenses.Input:
		moment = memory.AtInput
		began := time.Now()
		v, err = g.Input(ctx, memory.Segment{ID: 1, Turn: 1, Origin: u.origin, Text: u.text})
		took = time.Since(began)
	case defenses.Read:
		moment = memory.AtRead
		// The record was there before, so a defense that signs has signed it.
		signed, serr := g.Seed(ctx, []memory.Record{r})
		if serr != nil || len(signed) != 1 {
			return v, 0, &memory.GateError{Moment: moment, Err: cmp.Or(serr, fmt.Errorf("seeding: 1 record went in, %d came back", len(signed)))}
		}
		r.Signature, r.SignedBy, r.Scope = signed[0].Signature, signed[0].SignedBy, signed[0].Scope
		began := time.Now()
		ds, rerr := g.Read(ctx, memory.Query{Route: memory.RouteSearch, Text: u.query, Principal: textPrincipal}, []memory.Candidate{{Record: r, Score: 1}})
		took = time.Since(began)
		if err = rerr; err == nil && len(ds) != 1 {
			err = fmt.Errorf("%d decisions about one record", len(ds))
		}
		if err == nil {
			v = memory.Verdict{Action: ds[0].Action, Text: ds[0].Text, Findings: ds[0].Findings, Score: ds[0].Score, HasScore: ds[0].HasScore, Unsure: ds[0].Unsure}
			if v.Action == memory.Allow {
				v.Findings = nil // the reasons of an allowed recall are no finding
			}
		}
	default:
		p := memory.Proposal{Op: memory.Add, Route: memory.RouteMemoryTool, Record: r}
		began := time.Now()
		v, err = g.Write(ctx, p)
		took = time.Since(began)
	}
	if err != nil {
		return v, took, &memory.GateError{Moment: moment, Err: err}
	}
	return v, took, nil
}

const textPrincipal = "user-1"

// verdict fills the row: an attack is detected when every text that carries its
// payload was stopped, a benign case is a false alarm when any of its texts was.
// A deferral is neither.
func (x *Experiment) verdict(row *results.Trial, ds []results.Decision, st *stage, stops []bool) {
	attack := row.Label == results.Attack
	anyStop, all, deferred := false, true, false
	for i := range ds {
		if attack && !ds[i].Poison {
			continue
		}
		anyStop = anyStop || stops[i]
		all = all && stops[i]
		deferred = deferred || ds[i].Action == memory.Defer.String()
		row.Unsure += int32(btoi(ds[i].Unsure))
		switch ds[i].Action {
		case "allow":
			row.Allow++
		case "redact":
			row.Redact++
		case "defer":
			row.Defer++
		case "quarantine":
			row.Quarantine++
		case "block":
			row.Block++
		}
	}
	if !attack {
		deferred = deferred && !anyStop
		row.LegitStopped, row.LegitDeferred = &anyStop, &deferred
		return
	}
	row.Proposed = true
	stopped := all && len(ds) > 0
	if st.value.Empty() {
		stopped = anyStop // which of them carries the payload is not known
	}
	deferred = deferred && !stopped
	row.Detected, row.Deferred = &stopped, &deferred
	switch x.texts.gates[x.armOf(row.Defense)] {
	case defenses.Input:
		row.DetectedInput = row.Detected
	case defenses.Read:
		row.DetectedRead = row.Detected
	default:
		row.DetectedWrite = row.Detected
	}
}

func (x *Experiment) armOf(defense string) int {
	return slices.IndexFunc(x.Plan.Arms, func(a Arm) bool { return a.Defense.Name == defense })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checks joins the ids of findings as rows have them.
func checks(fs []memory.Finding) string {
	switch len(fs) {
	case 0:
		return ""
	case 1:
		return fs[0].Check
	}
	out := fs[0].Check
	for _, f := range fs[1:] {
		out += ";" + f.Check
	}
	return out
}

// textStage prepares a case.
func (x *Experiment) textStage(k *datasets.Case) *stage {
	st := &stage{subject: &score.Subject{Case: k}, seed: draw(x.Config.Seed, k.ID), value: score.NewValue(k.Value, k.Forms...)}
	st.units = x.texts.units(k, st.value)
	return st
}

// textGate opens a gate over the store. Nothing that it is asked is ever
// committed, and the state of a gate follows what is committed, so that one gate
// may serve all texts of a worker where filling the store for each would take too
// long.
func (x *Experiment) textGate(ctx context.Context, own *scratch, t Trial) (g memory.Gate, done func() error, err error) {
	nothing := func() error { return nil }
	shared := x.texts.shared[t.Arm]
	if shared && t.Arm < len(own.gates) && own.gates[t.Arm] != nil {
		return own.gates[t.Arm], nothing, nil
	}
	number, err := strconv.ParseUint(x.Plan.ID(t), 16, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("trial id: %w", err)
	}
	if shared {
		number = 0
	}
	g, err = x.openText(ctx, t.Arm, x.texts.stored, number)
	if err != nil {
		return nil, nil, err
	}
	if shared {
		if own.gates == nil {
			own.gates = make([]memory.Gate, len(x.Plan.Arms))
		}
		own.gates[t.Arm] = g
		return g, nothing, nil
	}
	if c, ok := g.(interface{ Close() error }); ok {
		return g, c.Close, nil
	}
	return g, nothing, nil
}

// openText opens an arm's gate over a store that holds the records.
func (x *Experiment) openText(ctx context.Context, arm int, stored []memory.Record, trial uint64) (memory.Gate, error) {
	view := &textView{trial: trial, seed: x.Config.Seed}
	g, err := x.Plan.Arms[arm].Defense.Defense.Open(ctx, view)
	if err != nil {
		return nil, fmt.Errorf("opening the defense: %w", err)
	}
	if len(stored) == 0 {
		return g, nil
	}
	amended, err := g.Seed(ctx, slices.Clone(stored))
	if err == nil && len(amended) != len(stored) {
		err = fmt.Errorf("%d records went in, %d came back", len(stored), len(amended))
	}
	if err != nil {
		return nil, fmt.Errorf("seeding the memory: %w", err)
	}
	view.byID, view.byKey = make(map[string]int, len(stored)), make(map[string]int, len(stored))
	for i, r := range stored {
		r.Signature, r.SignedBy, r.Scope = amended[i].Signature, amended[i].SignedBy, amended[i].Scope
		view.byID[r.ID], view.byKey[r.Key] = i, i
		view.records = append(view.records, r)
		g.Committed(memory.Change{Op: memory.Add, Route: memory.RouteSeed, Record: r})
	}
	return g, nil
}

// textView is what a defense sees of the store that texts would be added to.
type textView struct {
	trial, seed uint64
	records     []memory.Record
	byID, byKey map[string]int
}

func (v *textView) Now() time.Time {
	return trialStart.Add(time.Duration(len(v.records)) * time.Minute)
}
func (v *textView) Seed() uint64      { return v.seed }
func (v *textView) Trial() uint64     { return v.trial }
func (v *textView) Principal() string { return textPrincipal }
func (v *textView) Len() int          { return len(v.records) }
func (v *textView) Get(id string) (memory.Record, bool) {
	i, ok := v.byID[id]
	if !ok {
		return memory.Record{}, false
	}
	return v.records[i], true
}

func (v *textView) ByKey(store, key string) (memory.Record, bool) {
	i, ok := v.byKey[key]
	if !ok || store != "memory" {
		return memory.Record{}, false
	}
	return v.records[i], true
}

func (v *textView) Each(yield func(memory.Record) bool) {
	for _, r := range v.records {
		if !yield(r) {
			return
		}
	}
}

// maxStored bounds the store of detect.
const maxStored = 1 << 20

// storedRecords are n ordinary memories; beyond the committed ones they come again
// with a number that makes them different.
func storedRecords(n int) []memory.Record {
	notes := datasets.Background(0, min(n, datasets.MaxBackground()))
	out := make([]memory.Record, n)
	for i := range out {
		note := notes[i%len(notes)]
		id := "r" + strconv.Itoa(i+1)
		at := trialStart.Add(time.Duration(i) * time.Minute)
		out[i] = memory.Record{ID: id, Key: "memory/" + id, Store: "memory", Text: note.Text, Origin: backgroundOrigin(note), Principal: textPrincipal,
			Created: at, ValidFrom: at, Version: 1}
		if again := i / len(notes); again > 0 {
			out[i].Text += fmt.Sprintf(" (note %d)", again+1)
		}
	}
	return out
}

// warm asks every defense that runs in this process about a few texts, so that
// lexicons are compiled before anything is timed.
func (x *Experiment) warm(ctx context.Context) {
	for arm := range x.Plan.Arms {
		if !ours(&x.Plan.Arms[arm].Defense) {
			continue
		}
		func() {
			defer func() { _ = recover() }() // the run will meet it again
			g, err := x.openText(ctx, arm, nil, 0)
			if err != nil {
				return
			}
			if c, ok := g.(interface{ Close() error }); ok {
				defer c.Close()
			}
			for _, i := range x.Plan.Cases[:min(len(x.Plan.Cases), 32)] {
				for _, u := range x.textStage(&x.Plan.Set.Cases[i]).units {
					if _, _, err := x.ask(ctx, g, x.texts.gates[arm], &u); err != nil {
						return
					}
				}
			}
		}()
	}
}

// WithoutOrigin counts the texts of the plan that name no origin and got none.
func (x *Experiment) WithoutOrigin() (without, all int) {
	for _, i := range x.Plan.Cases {
		for _, u := range x.texts.units(&x.Plan.Set.Cases[i], nil) {
			all++
			if !u.known {
				without++
			}
		}
	}
	return without, all
}

// TextGates lists by defense the gate at which it is asked.
func (x *Experiment) TextGates() map[string]string {
	out := map[string]string{}
	for i, a := range x.Plan.Arms {
		out[a.Defense.Name] = x.texts.gates[i].String()
	}
	return out
}

// StoreLatency measures how long each defense takes for a sample of the texts
// while n records are stored. A defense that fails is left out.
func (x *Experiment) StoreLatency(ctx context.Context, n, sample int) (map[string]summary.Latency, error) {
	if n < 0 || n > maxStored {
		return nil, &settings.Problem{Where: "--stored", What: fmt.Sprintf("%d is out of range", n), Hint: fmt.Sprintf("at least 0, at most %d", maxStored)}
	}
	stored := storedRecords(n)
	out := map[string]summary.Latency{}
	step := max(1, len(x.Plan.Cases)/max(1, sample))
	for arm, a := range x.Plan.Arms {
		var sketch stats.Sketch
		err := func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			g, err := x.openText(ctx, arm, stored, 0)
			if err != nil {
				return err
			}
			if c, ok := g.(interface{ Close() error }); ok {
				defer c.Close()
			}
			warm := 0
			for at := 0; at < len(x.Plan.Cases); at += step {
				for _, u := range x.textStage(&x.Plan.Set.Cases[x.Plan.Cases[at]]).units {
					_, took, err := x.ask(ctx, g, x.texts.gates[arm], &u)
					if err != nil {
						return err
					}
					if warm++; warm > 8 || len(x.Plan.Cases) <= 8 {
						sketch.Add(float64(took.Nanoseconds()) / 1000)
					}
				}
			}
			return nil
		}()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			out[a.Defense.Name] = summary.LatencyOf(&sketch)
		}
	}
	return out, nil
}
