package summary

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
)

// Summary is what `run --format json` and `detect --format json` print.
type Summary struct {
	RunID string `json:"run_id"`
	// Digest covers names and digests of the arms. Runs in which the same
	// happened have the same.
	Digest  string `json:"digest"`
	Resumed int    `json:"resumed"` // trials that were taken from the journal of an interrupted run
	Model   string `json:"model"`
	LLM     bool   `json:"llm"` // false: the model is no language model
	// Embeddings names what recall and defenses compared texts by, and says where that is
	// no language model; absent where nothing did.
	Embeddings string          `json:"embeddings,omitempty"`
	Dataset    results.Dataset `json:"dataset"`
	Split      string          `json:"split"`
	// Interval says how lo and hi of every rate were made.
	Interval Interval `json:"interval"`
	Planned  int64    `json:"planned"` // trials in the plan
	Trials   int64    `json:"trials"`  // trials with a row; fewer than planned where the run is not finished
	// Whole is the number of trials of all shards, where the run is one of them.
	Whole int64 `json:"whole,omitempty"`
	// Duplicates is how many rows `merge` met twice and counted once; absent
	// elsewhere.
	Duplicates *int64 `json:"duplicates,omitempty"`
	// OnlyVariants says that every attack is a variant. Elsewhere variants are in
	// the slices by mutation and in no other rate of attacks.
	OnlyVariants bool  `json:"only_variants,omitempty"`
	Arms         []Arm `json:"arms"`
	// Sweeps are the sweeps over thresholds that the run has.
	Sweeps []Sweep `json:"sweeps,omitempty"`
	// Texts is there where texts were handed to defenses without an agent, Verdict elsewhere.
	Texts   *Texts   `json:"-"`
	Verdict *Verdict `json:"-"`

	// Attacks is the number of scored attack trials, Uncountable that of those whose
	// case names no value to look for and that no judge judged.
	Attacks     int64 `json:"-"`
	Uncountable int64 `json:"-"`
	// Reasons are those of trials that are in no rate, and Checks what spoke, each by
	// arm and defense in the order of the run, the most frequent first.
	Reasons []Reason `json:"-"`
	Checks  []Check  `json:"-"`
}

// Reason says how many trials of an arm are not scored for a reason.
type Reason struct {
	Agent, Defense string
	Status, Reason string
	N              int64
}

// Check says in how many trials a check of a defense spoke, and what then was stopped: a
// trial is in the first that holds of poison, what is legitimate, and the rest.
type Check struct {
	Defense, Name                                string
	N, PoisonStopped, LegitStopped, OtherStopped int64
}

// MarshalJSON writes what `run` prints, or `detect` where texts were handed to
// defenses.
func (s Summary) MarshalJSON() ([]byte, error) {
	if s.Texts == nil {
		type run Summary
		return json.Marshal(run(s))
	}
	return json.Marshal(struct {
		RunID    string          `json:"run_id,omitempty"` // where rows were written
		Dataset  results.Dataset `json:"dataset"`
		Split    string          `json:"split"`
		Interval Interval        `json:"interval"`
		*Texts
		Defenses []Arm `json:"defenses"`
	}{s.RunID, s.Dataset, s.Split, s.Interval, s.Texts, s.Arms})
}

// Has reports whether some arm has a rate, measured or not. All have it where there is
// no arm.
func (s *Summary) Has(m *metric.Metric) bool {
	return len(s.Arms) == 0 || slices.ContainsFunc(s.Arms,
		func(a Arm) bool { return m.Index() < len(a.Rates) && a.Rates[m.Index()] != nil })
}

// Arm returns an arm, or nil.
func (s *Summary) Arm(agent, defense string) *Arm {
	for i := range s.Arms {
		if a := &s.Arms[i]; a.Agent == agent && a.Defense == defense {
			return a
		}
	}
	return nil
}

// MostFrequentError is the reason of most of the trials that ended in an error, and
// how many those are: in an arm, or in all for nil.
func (s *Summary) MostFrequentError(a *Arm) (reason string, trials int64) {
	all := map[string]int64{}
	for _, r := range s.Reasons {
		if r.Status == results.Error && (a == nil || a.Agent == r.Agent && a.Defense == r.Defense) {
			all[r.Reason] += r.N
		}
	}
	for _, r := range slices.Sorted(maps.Keys(all)) {
		if all[r] > trials {
			reason, trials = r, all[r]
		}
	}
	return reason, trials
}

// Interval names the method of the intervals.
type Interval struct {
	Method string  `json:"method"`
	Level  float64 `json:"level"`
}

// Arm is one agent under one defense. The formulas stand in the package comment.
type Arm struct {
	// Agent is the agent's label ([results.Run.Label]); the JSON has name and model apart.
	Agent   string `json:"-"`
	Defense string `json:"-"`
	Model   string `json:"-"`
	name    string // the agent's, where that is not its label
	// Digest covers the digests of the arm's trials, in no order.
	Digest string `json:"-"`

	// Rates are those of [metric.All], each under its name in the JSON. The judged
	// ones are absent where no language model judged.
	Rates `json:"-"`

	// ExcessPer100 are the questions that were not due per 100 trials, of attacks or of
	// benign cases, whichever has more; absent where no outcome is a state.
	ExcessPer100 *float64 `json:"excess_per_100,omitempty"`

	// Dominated is the control of the same agent that does no worse by harm, tasks done,
	// wrong and questions too many, and better by one; empty where none does.
	Dominated string `json:"dominated_by,omitempty"`

	// NotEnforced are the gates of the defense that had nothing to hold on to in some trial.
	NotEnforced []string `json:"not_enforced,omitempty"`

	Verdicts  Verdicts `json:"verdicts"`
	Unsure    int64    `json:"unsure"` // verdicts of a defense that had too little to judge by
	LatencyUS Gates    `json:"latency_us"`
	// WireUS is the time on the way to a defense outside the process and back,
	// which LatencyUS does not have: only where a defense says how long it took
	// itself.
	WireUS *Gates `json:"wire_us,omitempty"`

	Scored    int64 `json:"scored"`     // trials that count
	NotScored int64 `json:"not_scored"` // trials that ended in an error
	Excluded  int64 `json:"excluded"`   // trials whose case does not apply to the agent
	// Errors counts the trials that ended in an error by the error's kind
	// ([ErrorKind]).
	Errors map[string]int64 `json:"errors,omitempty"`
	// WriteExpected is the number of scored trials in which a working agent may be
	// expected to propose a write, WriteProposed that of those in which it did.
	WriteExpected int64 `json:"write_expected"`
	WriteProposed int64 `json:"write_proposed"`
	// Bounds holds, by metric, between what the rate could lie had the trials
	// that were not scored been scored: only metrics that could have had some.
	Bounds map[string]Bound `json:"bounds,omitempty"`

	Costs Costs `json:"costs"`

	Classes  []Slice `json:"classes"`
	Signals  []Slice `json:"signals"`
	Channels []Slice `json:"channels"` // by the channel that the attack intends
	// Vias has the figures by the channel by which content came to an installed product.
	Vias            []Slice `json:"vias,omitempty"`
	Vulnerabilities []Slice `json:"vulnerabilities"`
	// Mutations has the figures of variants, each mutation apart, and of the
	// attacks that they vary under [Original]; nothing where there are no variants.
	Mutations []Slice `json:"mutations,omitempty"`
	// Situations has the figures by situation, where outcomes are states; Mixed those
	// with the situations weighed by the mix of the options.
	Situations []Situated `json:"situations,omitempty"`
	Mixed      *Mixed     `json:"mixed,omitempty"`
	// Texts is there where texts were handed to the defense without an agent.
	Texts *ArmTexts `json:"-"`

	// Warnings qualify rates: they change no number.
	Warnings []string `json:"warnings,omitempty"`

	times *[len(gateNames)]stats.Sketch
}

// Times are the latencies of a gate, in microseconds; nil where it has none.
func (a *Arm) Times(gate string) *stats.Sketch {
	i := slices.Index(gateNames[:], gate)
	if i < 0 || a.times == nil || a.times[i].Count() == 0 {
		return nil
	}
	return &a.times[i]
}

// Name is agent/defense.
func (a *Arm) Name() string { return a.Agent + "/" + a.Defense }

// Rates are rates by the index of their metric; nil is absent.
type Rates []*stats.Rate

// Rate returns a rate; nothing measured where it is absent.
func (r Rates) Rate(m *metric.Metric) stats.Rate {
	if m.Index() < len(r) && r[m.Index()] != nil {
		return *r[m.Index()]
	}
	return stats.Rate{}
}

// MarshalJSON puts the rates among the other members.
func (a Arm) MarshalJSON() ([]byte, error) {
	if a.Texts != nil {
		return a.Rates.between(struct {
			Defense string `json:"defense"`
			Gate    string `json:"gate"`
		}{a.Defense, a.Texts.Gate}, a.document())
	}
	type head struct {
		Agent   string `json:"agent"`
		Defense string `json:"defense"`
		Model   string `json:"model"`
		Digest  string `json:"digest"`
	}
	type rest Arm
	return a.Rates.between(head{cmp.Or(a.name, a.Agent), a.Defense, a.Model, a.Digest}, rest(a))
}

// MarshalJSON puts the rates behind the name.
func (s Slice) MarshalJSON() ([]byte, error) {
	return s.Rates.between(struct {
		Name string `json:"name"`
	}{s.Name}, struct{}{})
}

// MarshalJSON puts the rates behind the name.
func (s Situated) MarshalJSON() ([]byte, error) {
	return s.Rates.between(struct {
		Name string `json:"name"`
	}{s.Name}, struct {
		Excess *float64 `json:"excess_per_100"`
	}{s.Excess})
}

// between is the JSON object of what two structures and the rates between them hold.
// Rates has no MarshalJSON of its own: whoever embeds it would inherit that.
func (r Rates) between(head, rest any) ([]byte, error) {
	out, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	out = out[:len(out)-1]
	for i, rate := range r {
		if rate == nil {
			continue
		}
		m := metric.At(i)
		var shown any = rate
		switch {
		case m.Shown != nil:
			shown = ScoreOf(m, *rate)
		case m.Unit > 1:
			shown = inUnits{*rate, m.Unit}
		}
		b, err := json.Marshal(shown)
		if err != nil {
			return nil, err
		}
		out = append(append(strconv.AppendQuote(append(out, ','), m.Name), ':'), b...)
	}
	b, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	if len(b) > len("{}") {
		return append(append(out, ','), b[1:]...), nil
	}
	return append(out, '}'), nil
}

// inUnits is a rate whose trials count for several parts each.
type inUnits struct {
	stats.Rate
	unit int
}

// MarshalJSON writes numerator and denominator in trials.
func (r inUnits) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(r.Rate)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	m["k"], m["n"] = float64(r.K)/float64(r.unit), r.N/r.unit
	return json.Marshal(m)
}

// Score is a figure that is no share, with its interval; null where it is not
// measured.
type Score struct {
	Value *float64 `json:"value"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
}

// ScoreOf is the figure that a rate stands for (see [metric.Metric.Shown]).
func ScoreOf(m *metric.Metric, r stats.Rate) Score {
	v, ok := r.Value()
	if !ok {
		return Score{}
	}
	f := func(share float64) *float64 { x := m.Shown(share); return &x }
	return Score{f(v), f(r.Lo), f(r.Hi)}
}

// Slice is a part of an arm's trials: of its attacks, in a run of agents.
type Slice struct {
	Name string
	Rates
}

// Verdicts counts the answers to proposals at the write gate, in scored trials.
type Verdicts struct {
	Allow      int64 `json:"allow"`
	Redact     int64 `json:"redact"`
	Defer      int64 `json:"defer"`
	Quarantine int64 `json:"quarantine"`
	Block      int64 `json:"block"`
}

func (v *Verdicts) add(t *results.Trial) {
	v.Allow += int64(t.Allow)
	v.Redact += int64(t.Redact)
	v.Defer += int64(t.Defer)
	v.Quarantine += int64(t.Quarantine)
	v.Block += int64(t.Block)
}

// Gates holds decision latencies in microseconds, by gate, of scored trials.
type Gates struct {
	Write Latency `json:"write"`
	Read  Latency `json:"read"`
	Input Latency `json:"input"`
	Act   Latency `json:"act"`
}

// Latency holds quantiles in microseconds, each within [stats.SketchError];
// null where nothing was decided.
type Latency struct {
	N   uint64   `json:"n"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max,omitempty"` // exact; of texts only
}

// LatencyOf reads the quantiles of a sketch, and its maximum.
func LatencyOf(s *stats.Sketch) Latency {
	q, ok := s.Summary()
	if !ok {
		return Latency{}
	}
	return Latency{N: q.N, P50: &q.P50, P95: &q.P95, P99: &q.P99, Max: &q.Max}
}

// Bound is a worst case: see [stats.WorstCase].
type Bound struct {
	Lo        float64 `json:"lo"`
	Hi        float64 `json:"hi"`
	NotScored int64   `json:"not_scored"` // trials that the rate could have had
}

// Costs adds up what all trials of an arm took, those that were not scored too.
type Costs struct {
	ModelCalls       int64 `json:"model_calls"`
	ToolCalls        int64 `json:"tool_calls"`
	Retries          int64 `json:"retries"`
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TokensEstimated  bool  `json:"tokens_estimated"` // at least one trial's were
	// EmptyAnswers of the model are whole, and hold neither text nor call.
	EmptyAnswers int64 `json:"empty_answers,omitempty"`
	// What the defense asked of a model of its own.
	DefenseCalls  int64 `json:"defense_calls,omitempty"`
	DefenseTokens int64 `json:"defense_tokens,omitempty"`
	Looks         int64 `json:"looks,omitempty"`
	// What the judge was asked, and the questions that have no verdict.
	JudgeCalls      int64 `json:"judge_calls,omitempty"`
	JudgeTokens     int64 `json:"judge_tokens,omitempty"`
	JudgeUnanswered int64 `json:"judge_unanswered,omitempty"`
}

func (c *Costs) add(t *results.Trial) {
	c.ModelCalls += int64(t.ModelCalls)
	c.ToolCalls += int64(t.ToolCalls)
	c.Retries += int64(t.Retries)
	c.EmptyAnswers += int64(t.EmptyAnswers)
	c.PromptTokens += t.PromptTokens
	c.CompletionTokens += t.CompletionTokens
	c.DefenseCalls += int64(t.DefenseCalls)
	c.DefenseTokens += t.DefenseTokens
	c.Looks += int64(t.Looks)
	c.JudgeCalls += int64(t.JudgeCalls)
	c.JudgeTokens += t.JudgeTokens
	c.JudgeUnanswered += int64(t.JudgeUnanswered)
	c.TokensEstimated = c.TokensEstimated || t.TokensEstimated
}

// Judged reports whether a language model judged some of the arm's trials.
func (a Arm) Judged() bool {
	_, unsure := a.Bounds[metric.ASRJudged.Name]
	return unsure || a.Rate(metric.ASRJudged).Measured() || a.Rate(metric.EndToEndJudged).Measured()
}

// Trials is the number of the arm's trials that have a row.
func (a *Arm) Trials() int64 { return a.Scored + a.NotScored + a.Excluded }
