package harness

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/stats"
)

// Span is an estimate with what it may lie between.
type Span struct {
	Low      float64 `json:"low"`
	Expected float64 `json:"expected"`
	High     float64 `json:"high"`
}

func (s Span) times(f float64) Span { return Span{s.Low * f, s.Expected * f, s.High * f} }

// Detectable is the smallest true difference between two arms that a run finds
// with 80% power at 5%, if the arms differ on a share of the cases.
type Detectable struct {
	Discordance float64 `json:"discordance"`
	// Independent counts every attack case for itself, Families only every
	// template family: the truth lies between them. nil is none that could be
	// found.
	Independent *float64 `json:"independent"`
	Families    *float64 `json:"families"`
}

// Estimate says what a run would take, before anything is spent.
type Estimate struct {
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	LLM      bool   `json:"llm"`
	Arms     int    `json:"arms"`
	Cases    int    `json:"cases"`
	Attacks  int    `json:"attacks"`
	Families int    `json:"families"` // of attacks
	Trials   int64  `json:"trials"`
	Excluded int64  `json:"excluded"` // of these, that do not apply to their agent

	Calls            Span `json:"calls"`
	PromptTokens     Span `json:"prompt_tokens"`
	CompletionTokens Span `json:"completion_tokens"`
	// USD is the cost by price_prompt and price_completion; nil where neither is
	// set.
	USD *Span `json:"usd"`
	// Seconds is the time at the run's concurrency and SecondsPerCall.
	Seconds        Span    `json:"seconds"`
	SecondsPerCall float64 `json:"seconds_per_call"`
	Concurrency    int     `json:"concurrency"`

	Detectable []Detectable `json:"detectable"`

	// Walked is how many trials were walked through to estimate the rest, Pilot
	// how many of them with the model itself.
	Walked int64 `json:"walked"`
	Pilot  int64 `json:"pilot"`
	// Basis says how the figures were made; Notes what they leave out.
	Basis string   `json:"basis"`
	Notes []string `json:"notes,omitempty"`
}

// EstimateOptions choose how an estimate is made.
type EstimateOptions struct {
	// SecondsPerCall is how long a server is assumed to take for an answer.
	SecondsPerCall float64
	// Pilot is how many trials are run with the model itself; 0 calls no model.
	Pilot int
}

// Of each family so many cases are walked through, and of all families together
// so many cases: cases of one family are alike in what they take.
const (
	perFamily  = 2
	mostWalked = 600
)

// Estimate walks through a sample of the plan with the reference model and
// counts. The model of the settings is called only for a pilot.
func (c Config) Estimate(ctx context.Context, cat Catalog, o EstimateOptions) (*Estimate, error) {
	local, name, llm := c, c.Model, true
	kind, _, _ := strings.Cut(c.Model, ":")
	if kind == "reference" {
		llm = false
		if _, err := (ModelOptions{}).Model(ctx, c); err != nil {
			return nil, settings.Placed("--model", err)
		}
	} else {
		local.Model = "reference:" + string(reference.Cautious)
	}
	local.BaseURL, local.Record, local.Replay, local.KeyFile, local.Transcripts, local.TrialTimeout = "", "", "", "",
		"none", 0
	var notes []string
	local.Defenses, notes = callFree(c.Defenses)
	local.Judge, local.Embeddings = Deterministic, Hashed
	if c.embeds() {
		notes = append(notes, c.Embeddings+" is asked once for each text that is recalled by it or that anomaly is shown: "+
			"these requests are not in the figures")
	}
	if c.Judge != Deterministic {
		notes = append(notes, fmt.Sprintf("%s is asked one question for each record that a scored attack trial leaves "+
			"without its value, and one for what the agent then says: its calls are not in the figures", c.Judge))
	}
	quiet := cat
	quiet.Models = ModelOptions{}.Model
	if local.Epochs > 1 {
		local.Epochs = 1 // the reference model would refuse to repeat itself
	}
	x, err := Prepare(ctx, local, quiet)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	if !llm {
		name = x.Name()
	}
	e := &Estimate{Dataset: x.Plan.Set.Name, Model: name, LLM: llm, Arms: len(x.Plan.Arms), Cases: len(x.Plan.Cases),
		Notes:          notes,
		SecondsPerCall: o.SecondsPerCall, Concurrency: cmp.Or(c.Concurrency, remoteWorkers)}
	families := map[string]bool{}
	for _, i := range x.Plan.Cases {
		k := &x.Plan.Set.Cases[i]
		if k.Label == datasets.Attack {
			e.Attacks++
			families[cmp.Or(k.Family, k.ID)] = true
		}
		for _, a := range x.Plan.Arms {
			if x.Plan.Excludes(k, a) != "" {
				e.Excluded += int64(c.Epochs)
			}
		}
	}
	e.Families = len(families)
	e.Trials = x.Plan.Len() * int64(c.Epochs)
	e.Detectable = detectable(float64(e.Attacks), float64(e.Families))

	began := time.Now()
	walked, err := x.walk(ctx, x.Plan.someOfEach(c.Seed, perFamily, mostWalked))
	if err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	e.Walked = walked.all
	var all takings
	all.add(walked.scaled(x.Plan), float64(c.Epochs)*float64(x.Plan.Len())/float64(x.Plan.Whole()))
	if x.Plan.shard.count > 0 {
		e.Excluded = int64(math.Round(float64(e.Excluded) / float64(x.Plan.shard.count)))
	}
	exactly := func(v float64) Span { return Span{v, v, v} }
	for i, span := range e.spans() {
		*span = exactly(all[i])
	}
	if !llm {
		e.Basis = fmt.Sprintf("%d trials walked through with %s; cases of one family take the same, within some percent",
			walked.all, name)
		perTrial := took / float64(max(1, walked.all))
		e.SecondsPerCall, e.Concurrency = 0, cmp.Or(c.Concurrency, 1)
		e.Seconds = exactly(perTrial * float64(e.Trials))
		return e, nil
	}
	e.Basis = fmt.Sprintf("%d trials walked through with the reference model, no call made. low: one call for each "+
		"user turn; high: twice the calls of the reference model. An LLM may take more: --pilot N measures", walked.all)
	least := all[turns] / max(all[calls], 1)
	for _, span := range e.spans() {
		span.Low, span.High = span.Expected*least, 2*span.Expected
	}
	if o.Pilot > 0 {
		if err := e.pilot(ctx, c, cat, o.Pilot, x); err != nil {
			return nil, err
		}
	}
	e.Seconds = e.Calls.times(e.SecondsPerCall / float64(e.Concurrency))
	if c.PricePrompt > 0 || c.PriceCompletion > 0 {
		p, q := e.PromptTokens.times(c.PricePrompt/1e6), e.CompletionTokens.times(c.PriceCompletion/1e6)
		e.USD = &Span{p.Low + q.Low, p.Expected + q.Expected, p.High + q.High}
	}
	return e, nil
}

// callFree puts none in the place of defenses that call a model or a program of
// others, and says so.
func callFree(specs []string) (out, notes []string) {
	free := 0
	for _, s := range specs {
		kind := s
		if p, err := defenses.Parse(s); err == nil {
			kind = p.Kind
		}
		switch kind {
		case "judge", "exec", "http":
			free++
			out = append(out, fmt.Sprintf("outside-%d=none", free))
			notes = append(notes, fmt.Sprintf("%s is counted as an arm without a defense: what it calls itself is not in the "+
				"figures", s))
		default:
			out = append(out, s)
		}
	}
	return out, notes
}

func detectable(cases, families float64) []Detectable {
	var out []Detectable
	for _, d := range []float64{0.05, 0.1, 0.2} {
		x := Detectable{Discordance: d}
		if v, ok := stats.MinimumDetectableEffect(cases, d, 0.8, 0.95); ok {
			x.Independent = &v
		}
		if v, ok := stats.MinimumDetectableEffect(families, d, 0.8, 0.95); ok {
			x.Families = &v
		}
		out = append(out, x)
	}
	return out
}

// takings are sums over trials.
type takings [5]float64

// The members of takings. The first three are those of [Estimate.spans].
const (
	calls = iota
	prompt
	completion
	turns
	trials
)

func (t *takings) add(o takings, times float64) {
	for i := range t {
		t[i] += o[i] * times
	}
}

func (e *Estimate) spans() []*Span { return []*Span{&e.Calls, &e.PromptTokens, &e.CompletionTokens} }

// walk is what the trials of some cases took.
type walk struct {
	cases         []int
	all, excluded int64
	sum           takings             // of those that were scored
	by            map[string]*takings // the same by case
	seconds       float64
	reason        string // why the last that failed was not scored
}

// walk runs some cases of the plan and keeps only what they took.
func (x *Experiment) walk(ctx context.Context, cases []int) (*walk, error) {
	w := &walk{cases: cases, by: map[string]*takings{}}
	part := *x.Plan
	part.Cases, part.shard = cases, shard{}
	part.len = part.Whole()
	y := *x
	y.Plan = &part
	said := map[string]float64{}
	for _, i := range cases {
		k := &x.Plan.Set.Cases[i]
		said[k.ID] = float64(len(k.Write))
		if k.Retrieval != nil {
			said[k.ID]++
		}
		w.by[k.ID] = new(takings)
	}
	err := y.Run(ctx, SinkOf(func(f results.Finished) error {
		t := f.Trial
		w.all++
		switch t.Status {
		case results.Excluded:
			w.excluded++
			return nil
		case results.Error:
			w.reason = t.Reason
			return nil
		}
		took := takings{float64(t.ModelCalls), float64(t.PromptTokens), float64(t.CompletionTokens), said[t.Case], 1}
		w.by[t.Case].add(took, 1)
		w.sum.add(took, 1)
		w.seconds += float64(t.WallUS) / 1e6
		return nil
	}), new(Progress), nil)
	return w, cmp.Or(err, ctx.Err())
}

func familyOf(k *datasets.Case) string { return cmp.Or(k.Family, "\x00"+k.Class+"\x00"+k.Kind) }

// someOfEach are at most each cases of every family, and at most most of all.
func (p *Plan) someOfEach(seed uint64, each, most int) []int {
	order := slices.Clone(p.Cases)
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(draw(seed, p.Set.Cases[a].ID), draw(seed, p.Set.Cases[b].ID))
	})
	var out []int
	taken := map[string]int{}
	for _, i := range order {
		if f := familyOf(&p.Set.Cases[i]); taken[f] < each && len(out) < most {
			taken[f]++
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// scaled is what all cases of the plan take, once.
func (w *walk) scaled(p *Plan) (sum takings) {
	planned, walked := map[string]float64{}, map[string]float64{} // cases by family
	for _, i := range p.Cases {
		planned[familyOf(&p.Set.Cases[i])]++
	}
	for _, i := range w.cases {
		walked[familyOf(&p.Set.Cases[i])]++
	}
	for _, i := range w.cases {
		f := familyOf(&p.Set.Cases[i])
		sum.add(*w.by[p.Set.Cases[i].ID], planned[f]/walked[f])
	}
	for f, n := range planned {
		if walked[f] == 0 {
			sum.add(w.sum, n/float64(len(w.cases)))
		}
	}
	return sum
}

// pilot runs trials with the model itself and scales the estimate by how much
// more, or less, it took than the reference model on the same trials.
func (e *Estimate) pilot(ctx context.Context, c Config, cat Catalog, n int, x *Experiment) error {
	c.Limit = min(len(x.Plan.Cases), max(1, (n+len(x.Plan.Arms)-1)/len(x.Plan.Arms)))
	c.Epochs, c.Shard, c.Transcripts = 1, "", "none"
	real, err := Prepare(ctx, c, cat)
	if err != nil {
		return err
	}
	defer real.Close()
	began := time.Now()
	took, err := real.walk(ctx, real.Plan.Cases)
	if err != nil {
		return err
	}
	wall := time.Since(began).Seconds()
	tried := took.all - took.excluded
	if e.Pilot = int64(took.sum[trials]); e.Pilot == 0 {
		return &settings.Problem{Where: "--pilot", What: fmt.Sprintf("none of the %d trials of the pilot ended well: %s",
			tried, took.reason), Hint: "try `memtox doctor`"}
	}
	same, err := x.walk(ctx, real.Plan.Cases)
	if err != nil {
		return err
	}
	if e.SecondsPerCall = took.seconds / max(took.sum[calls], 1); e.SecondsPerCall == 0 {
		e.SecondsPerCall = wall * float64(e.Concurrency) / max(took.sum[calls], 1)
	}
	for i, span := range e.spans() {
		*span = scaledBy(span.Expected, took.by, same.by, i)
	}
	e.Basis = fmt.Sprintf("a pilot of %d trials with %s, which took %.0f calls, %.0f prompt and %.0f completion "+
		"tokens; scaled by %d trials walked through with the reference model; low and high are a 95%% interval by cases",
		e.Pilot, e.Model, took.sum[calls], took.sum[prompt], took.sum[completion], e.Walked)
	if tried > e.Pilot {
		e.Notes = append(e.Notes, fmt.Sprintf("%d of the pilot's %d trials were not scored: %s", tried-e.Pilot, tried,
			took.reason))
	}
	return nil
}

// scaledBy multiplies an expectation by the ratio of what was measured to what
// was expected of the same cases.
func scaledBy(expected float64, measured, assumed map[string]*takings, of int) Span {
	var y, x []float64
	for id, t := range measured {
		if r := assumed[id]; r != nil && r[trials] > 0 && t[trials] > 0 {
			y, x = append(y, t[of]/t[trials]), append(x, r[of]/r[trials])
		}
	}
	ratio, lo, hi, ok := stats.Ratio(y, x, stats.DefaultLevel)
	if !ok {
		return Span{0, expected, 2 * expected}
	}
	return Span{expected * lo, expected * ratio, expected * min(hi, 2*ratio)}
}
