package harness

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// Arm is one agent, driven by one model, under one defense.
type Arm struct {
	Profile *agents.Profile
	Defense defenses.Built
	Life    Life
	Model   int // of the run's models
}

// Plan is what a run does: every chosen case in every arm in every epoch. It
// holds no trial; [Plan.Trials] counts through them, so a plan of a million
// trials is as small as one of ten.
type Plan struct {
	Set    *datasets.Set
	Models []string
	Arms   []Arm
	Cases  []int // indices into Set.Cases, in the order of the set
	Epochs int

	shard shard
	len   int64
	via   map[string]string // by which channel content comes, by the id of the case
}

// Trial is one case in one arm in one epoch.
type Trial struct {
	Index int64 // place in the plan
	Case  int   // index into the set's cases
	Arm   int   // index into the plan's arms
	Epoch int
}

// NewPlan chooses the cases that the settings name, samples them down to the
// limit, mutates the attacks, and crosses all with the arms.
func NewPlan(c Config, set *datasets.Set, models []string, arms []Arm) (*Plan, error) {
	p := &Plan{Set: set, Models: models, Arms: arms, Epochs: c.Epochs}
	if err := knownFilters(c, set); err != nil {
		return nil, err
	}
	splits := set.HasSplits()
	for i := range set.Cases {
		if c.takes(&set.Cases[i], splits) {
			p.Cases = append(p.Cases, i)
		}
	}
	if len(p.Cases) == 0 {
		hint := "see `memtox datasets show " + set.Name + "` for what it holds"
		if c.Split != AllSplits {
			hint = "the split is " + c.Split + ", --split all takes every case; " + hint
		}
		return nil, &settings.Problem{What: fmt.Sprintf("no case of %s passes the filters", set.Name), Hint: hint}
	}
	if !slices.ContainsFunc(p.Cases, func(i int) bool { return set.Cases[i].Text == nil }) &&
		!slices.ContainsFunc(arms, func(a Arm) bool { return a.Profile.Name == TextAgent }) {
		return nil, &settings.Problem{Where: "--dataset",
			What: fmt.Sprintf("the cases of %s are texts without sessions: no agent can meet them", set.Name),
			Hint: "measure defenses on them with `memtox detect --dataset " + c.Dataset + "`"}
	}
	p.via = vias(set, p.Cases, &c)
	p.Cases = Sample(set, p.Cases, c.Limit, c.Seed)
	var err error
	if p.Set, p.Cases, err = mutated(c, set, p.Cases); err != nil {
		return nil, err
	}
	if p.shard, err = parseShard(c.Shard); err != nil {
		return nil, settings.Placed("--shard", err)
	}
	p.len = p.Whole()
	if p.shard.count > 0 {
		p.len = 0
		for range p.Trials() {
			p.len++
		}
		if p.len == 0 {
			return nil, &settings.Problem{Where: "--shard",
				What: fmt.Sprintf("none of the %d trials is in shard %s", p.Whole(), c.Shard), Hint: "choose fewer shards"}
		}
	}
	return p, nil
}

// takes reports whether the settings choose a case. Filters on what only attacks
// have leave benign cases in.
func (c *Config) takes(k *datasets.Case, splits bool) bool {
	split := k.Split
	if split == "" || !splits {
		split = datasets.Report
	}
	if c.Split != AllSplits && c.Split != string(split) {
		return false
	}
	for _, f := range filters {
		values := f.values(c)
		if len(values) > 0 && !slices.Contains(values, f.of(k)) && (k.Label == datasets.Attack || f.key == "domain") {
			return false
		}
	}
	return true
}

// filters are the settings that choose cases by what they say of themselves.
var filters = []struct {
	key    string
	values func(*Config) []string
	of     func(*datasets.Case) string
}{
	{"class", func(c *Config) []string { return c.Classes }, func(k *datasets.Case) string { return k.Class }},
	{"channel", func(c *Config) []string { return c.Channels }, func(k *datasets.Case) string { return k.Channel }},
	{"domain", func(c *Config) []string { return c.Domains }, func(k *datasets.Case) string { return k.Domain }},
	{"goal", func(c *Config) []string { return c.Goals }, func(k *datasets.Case) string { return k.Goal }},
	{"signal", func(c *Config) []string { return c.Signals }, func(k *datasets.Case) string { return k.Signal }},
}

// knownFilters refuses a filter value that no case of the set has: most likely
// it is mistyped, and a run of nothing must not look like a result.
func knownFilters(c Config, set *datasets.Set) error {
	for _, f := range filters {
		values := f.values(&c)
		if len(values) == 0 {
			continue
		}
		var have []string
		for i := range set.Cases {
			if v := f.of(&set.Cases[i]); v != "" && !slices.Contains(have, v) {
				have = append(have, v)
			}
		}
		slices.Sort(have)
		for _, v := range values {
			if !slices.Contains(have, v) {
				return settings.Unknown(set.Name, f.key, v, have)
			}
		}
	}
	return nil
}

// Excludes says why a case does not apply to an arm, or "". Skill-procedure
// attacks, and benign cases whose memory is a skill, need an agent that turns
// experience into skills; a text without sessions needs `memtox detect`.
func (p *Plan) Excludes(k *datasets.Case, arm Arm) string {
	if k.Text != nil && arm.Profile.Name != TextAgent {
		return "a text without sessions: memtox detect measures it"
	}
	if (k.Class == datasets.SkillProcedure || k.Channel == "C4") && !arm.Profile.Applies("C4") {
		return "the profile " + arm.Profile.Name + " writes no skills"
	}
	return ""
}

// Len is the number of trials: those of the shard, where the plan is one.
func (p *Plan) Len() int64 { return p.len }

// Whole is the number of trials of all shards together.
func (p *Plan) Whole() int64 {
	return int64(len(p.Cases)) * int64(len(p.Arms)) * int64(p.Epochs)
}

// Trials visits every trial, of the shard where the plan is one, in order: case by case,
// epoch by epoch, and the arms of a case next to each other, so that a run that ends
// early has compared like with like.
func (p *Plan) Trials() iter.Seq[Trial] { return p.Span(0, p.Whole()) }

// Span visits the trials from place first on, n places of the whole plan; of
// these, those of the shard. The arms of one case are next to each other.
func (p *Plan) Span(first, n int64) iter.Seq[Trial] {
	return func(yield func(Trial) bool) {
		for i := first; i < min(first+n, p.Whole()); i++ {
			if t := p.at(i); (p.shard.count == 0 || p.shard.holds(p.ID(t))) && !yield(t) {
				return
			}
		}
	}
}

// at is the trial at a place of the whole plan.
func (p *Plan) at(i int64) Trial {
	arms, epochs := int64(len(p.Arms)), int64(p.Epochs)
	return Trial{Index: i, Case: p.Cases[i/arms/epochs], Epoch: int(i / arms % epochs), Arm: int(i % arms)}
}

// ID is the trial's id: see [results.TrialID].
func (p *Plan) ID(t Trial) string { return p.idOf(&p.Set.Cases[t.Case], t) }

// idOf is the id of a trial of a case that need not be in the set.
func (p *Plan) idOf(k *datasets.Case, t Trial) string {
	a := &p.Arms[t.Arm]
	return results.TrialID(k.ID, a.Agent(), a.Defense.Name, a.Defense.Canonical, p.Models[a.Model], t.Epoch)
}

// Counts is the number of attack and benign cases in the plan.
func (p *Plan) Counts() (attacks, benign int) {
	for _, i := range p.Cases {
		if p.Set.Cases[i].Label == datasets.Attack {
			attacks++
		}
	}
	return attacks, len(p.Cases) - attacks
}

// Sample takes limit of the cases: of each stratum (label, and class or kind) its
// share, at least one while there is room. An attack takes its twin with it, for the rate
// pairs is of both: the twin alone may be cut off at the limit. Built-in sets that are judged
// by words keep the samples that they always had.
// Which cases are taken depends on the seed and the ids alone, and a smaller sample is a
// part of a larger one. 0 and anything beyond the number of cases take all. The order of
// the set is kept.
func Sample(set *datasets.Set, cases []int, limit int, seed uint64) []int {
	if limit == 0 || limit >= len(cases) {
		return cases
	}
	strata, all := strataOf(set, cases, seed)
	for _, s := range strata {
		for rank, p := range s {
			// The first of each stratum comes before all others; then the strata
			// fill up in proportion.
			if rank > 0 {
				p.priority = (float64(rank) + 0.5) / float64(len(s))
			}
		}
	}
	slices.SortFunc(all, func(a, b *pick) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.draw, b.draw))
	})
	var out []int
	for _, p := range all {
		out = append(out, p.cases...)
	}
	out = out[:limit]
	slices.Sort(out)
	return out
}

// pick is a case that is drawn, with the twin that it takes along.
type pick struct {
	cases    []int
	draw     uint64
	priority float64
}

// strataOf are the picks of each stratum, in the order in which they are drawn, and all.
func strataOf(set *datasets.Set, cases []int, seed uint64) (strata map[string][]*pick, all []*pick) {
	strata = map[string][]*pick{}
	all = make([]*pick, 0, len(cases))
	ofAttack := map[string]*pick{} // by the id of the twin
	take := func(i int) *pick {
		k := &set.Cases[i]
		p := &pick{cases: []int{i}, draw: draw(seed, k.ID)}
		stratum := string(k.Label) + "/" + cmp.Or(k.Class, k.Kind)
		strata[stratum] = append(strata[stratum], p)
		all = append(all, p)
		return p
	}
	for _, i := range cases {
		if k := &set.Cases[i]; k.Label == datasets.Attack {
			if p := take(i); k.Twin != "" && (k.State != nil || !set.Builtin) {
				ofAttack[k.Twin] = p
			}
		}
	}
	for _, i := range cases {
		k := &set.Cases[i]
		switch p := ofAttack[k.ID]; {
		case k.Label == datasets.Attack:
		case p != nil:
			p.cases = append(p.cases, i)
		default:
			take(i)
		}
	}
	for _, s := range strata {
		slices.SortFunc(s, func(a, b *pick) int { return cmp.Compare(a.draw, b.draw) })
	}
	return strata, all
}

// draw is a case's place in the sample: uniform over seeds, the same everywhere.
func draw(seed uint64, id string) uint64 {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64([]byte("memtox sample 1\x00"), seed))
	h.Write([]byte(id))
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// shard is a part of a plan: every trial whose id, taken as a number, leaves the
// same rest. Ids are hashes, so shards are alike in size and in what they hold,
// and which shard a trial belongs to depends on nothing but the trial.
type shard struct{ index, count int } // index counts from 1; count 0 is the whole plan

// parseShard reads "i/n". The empty string is the whole plan. "i+1/n" is for those
// who count from 0 and cannot add: an indexed job of Kubernetes in an image
// without a shell, a matrix of a CI system.
func parseShard(s string) (shard, error) {
	if s == "" {
		return shard{}, nil
	}
	is, ns, ok := strings.Cut(s, "/")
	is, next := strings.CutSuffix(is, "+1")
	i, err1 := strconv.Atoi(is)
	if next {
		i++
	}
	n, err2 := strconv.Atoi(ns)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 1 || i > n || n > 1<<20 {
		return shard{}, &settings.Problem{What: fmt.Sprintf("%q is no shard", s),
			Hint: "i/n with i from 1 to n, for instance 2/5; from a counter that begins with 0, 1+1/5"}
	}
	return shard{i, n}, nil
}

// holds reports whether a trial belongs to the shard.
func (s shard) holds(id string) bool {
	if s.count == 0 {
		return true
	}
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		panic(fmt.Sprintf("trial id %q: %v", id, err)) // results.TrialID writes 16 hexadecimal digits
	}
	return int(n%uint64(s.count))+1 == s.index
}
