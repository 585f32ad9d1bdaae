package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/results"
)

// campaign attacks a sample of the benchmark.
func campaign(t *testing.T, dir string, change func(*Options, *harness.Catalog)) (*Campaign, *Result) {
	t.Helper()
	c, cat := DefaultOptions(), harness.Builtin()
	c.Config.Agents, c.Config.Defenses, c.Config.Limit, c.Learn, c.Budget = []string{"hermes"},
		[]string{"none", "keyword"}, 40, 20, 30
	c.Config.Dataset, c.Config.Model = "memtox-bench@v1", "reference:cautious" // where the static attack leaves room
	change(&c, &cat)
	s, err := Prepare(context.Background(), c, cat)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Open(dir); err != nil {
		t.Fatal(err)
	}
	done, err := s.Run(context.Background(), new(Progress), nil)
	if err != nil || !done {
		t.Fatalf("done %v: %v", done, err)
	}
	r, err := s.Result(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// trialsOf runs a benchmark and returns its rows.
func trialsOf(t *testing.T, settings ...string) (rows []results.Trial) {
	t.Helper()
	c := harness.DefaultConfig()
	for _, s := range settings {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := harness.Prepare(t.Context(), c, harness.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Run(t.Context(), harness.SinkOf(func(f results.Finished) error {
		rows = append(rows, *f.Trial)
		return nil
	}), new(harness.Progress), nil); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestAnAttackLearnsOnTuneAndReportsOnReport(t *testing.T) {
	dir := t.TempDir()
	s, r := campaign(t, dir, func(c *Options, _ *harness.Catalog) { c.Config.Concurrency = 1 })
	for _, i := range s.report {
		if s.x.Plan.Set.Cases[i].Split != datasets.Report {
			t.Fatal("a case of tune is reported on")
		}
	}
	for _, i := range s.learn {
		if s.x.Plan.Set.Cases[i].Split != datasets.Tune {
			t.Fatal("a case of report is learned on")
		}
	}
	if len(s.learn) != 20 || len(s.report) != 40 {
		t.Errorf("%d cases to learn on, %d to report on", len(s.learn), len(s.report))
	}
	for _, a := range r.Arms {
		static, _ := a.At(1)
		full, ok := a.At(30)
		if !ok || static.EndToEnd.N != 40 || full.EndToEnd.N != 40 || full.EndToEnd.K < static.EndToEnd.K ||
			full.ASR.K < full.EndToEnd.K {
			t.Errorf("%s: static %v, adaptive %v", a.Defense, static.EndToEnd, full.EndToEnd)
		}
		if full.EndToEnd.K == static.EndToEnd.K {
			t.Errorf("%s: the search found nothing", a.Defense)
		}
	}
	// The static figure is the run's own.
	want := map[string]int{}
	for _, row := range trialsOf(t, "dataset=memtox-bench@v1", "model=reference:cautious", "agent=hermes",
		"defense=none,keyword", "transcripts=none") {
		for _, i := range s.report {
			if row.Case == s.x.Plan.Set.Cases[i].ID && row.Written && row.Influenced {
				want[row.Defense]++
			}
		}
	}
	for _, a := range r.Arms {
		if l, _ := a.At(1); l.EndToEnd.K != want[a.Defense] {
			t.Errorf("%s: static end to end %d, a run has %d", a.Defense, l.EndToEnd.K, want[a.Defense])
		}
	}
	// Any concurrency finds the same.
	_, again := campaign(t, t.TempDir(), func(c *Options, _ *harness.Catalog) { c.Config.Concurrency = 5 })
	if diff := cmp.Diff(jsonOf(t, r), jsonOf(t, again)); diff != "" {
		t.Errorf("five workers find something else than one:\n%s", diff)
	}
	// The winning variants are a set, and they land when they are run.
	for _, a := range r.Arms {
		winners, err := datasets.Open(context.Background(), filepath.Join(dir, a.File))
		if err != nil {
			t.Fatal(err)
		}
		landed := trialsOf(t, "dataset="+filepath.Join(dir, a.File), "model=reference:cautious", "agent=hermes",
			"defense="+a.Defense, "split=all",
			"transcripts=none")
		for _, row := range landed {
			if !row.Written || !row.Influenced {
				t.Errorf("%s: the winner %s (%s) does not land", a.Defense, row.Case, row.Variant)
			}
		}
		if len(landed) != len(winners.Cases) || len(winners.Cases) == 0 {
			t.Errorf("%d winners, %d trials", len(winners.Cases), len(landed))
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAStoppedAttackGoesOnToTheSameResult(t *testing.T) {
	whole := t.TempDir()
	_, want := campaign(t, whole, func(*Options, *harness.Catalog) {})
	journal, err := os.ReadFile(filepath.Join(whole, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	// Killed in the middle of a line.
	dir := t.TempDir()
	lines := strings.SplitAfter(string(journal), "\n")
	torn := strings.Join(lines[:20], "") + lines[20][:len(lines[20])/2]
	if err := os.WriteFile(filepath.Join(dir, journalFile), []byte(torn), 0o666); err != nil {
		t.Fatal(err)
	}
	_, got := campaign(t, dir, func(c *Options, _ *harness.Catalog) { c.Resume = true })
	if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, got)); diff != "" {
		t.Errorf("resuming finds something else:\n%s", diff)
	}

	c := DefaultOptions()
	c.Config.Agents, c.Config.Defenses, c.Config.Limit, c.Learn, c.Budget = []string{"hermes"},
		[]string{"none", "keyword"}, 40, 20, 31
	for resume, want := range map[bool]string{false: "holds an attack already", true: "with other settings"} {
		c.Resume = resume
		s, err := Prepare(context.Background(), c, harness.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resume %v: got %v", resume, err)
		}
		s.Close()
	}
}

// A bit of any file of a finished attack that is another one is told, at the latest
// when the attack is resumed, and so is a line that says what no search can have found.
func TestNoDamageToAnAttackIsSilent(t *testing.T) {
	dir := t.TempDir()
	change := func(c *Options, _ *harness.Catalog) {
		c.Config.Defenses, c.Config.Limit, c.Learn, c.Resume = []string{"keyword"}, 12, 4, true
	}
	s, r := campaign(t, dir, change)
	open := func() error {
		again := &Campaign{Options: s.Options, x: s.x, report: s.report, learn: s.learn, fresh: s.fresh,
			learned: map[string]line{}, found: map[string]map[string]line{}}
		defer again.Close()
		return again.Open(dir)
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if len(s.files) != 2 || r.Arms[0].File == "" {
		t.Fatalf("the attack has the files %v", s.files)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	damage := func(name, want string, other []byte) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, other, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, to be told as %q: %v", name, want, err)
		}
		if err := os.WriteFile(path, sound, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	journal, err := os.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{journalFile, resultFile, r.Arms[0].File} {
		sound, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			at := rng.IntN(len(sound))
			if i == 0 {
				at = len(sound) - 1
			}
			flipped := bytes.Clone(sound)
			flipped[at] ^= 1 << rng.IntN(8)
			damage(name, "", flipped)
		}
		if name != journalFile {
			damage(name, "the run wrote", sound[:len(sound)/2])
		}
	}
	// Somebody who computes the digests anew still has to say what can be.
	forge := func(want string, change func(l *line) bool) {
		t.Helper()
		var out []byte
		sum, changed := "", false
		for text := range bytes.Lines(journal) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				t.Fatal(err)
			}
			changed = !changed && change(&l) || changed
			b, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			b, sum = seal(sum, b)
			out = append(append(out, b...), '\n')
		}
		if !changed {
			t.Fatalf("%s: nothing was changed", want)
		}
		damage(journalFile, want, out)
	}
	found := func(change func(l *line)) func(l *line) bool {
		return func(l *line) bool {
			if l.Found == nil || l.Found.Landed < 2 {
				return false
			}
			change(l)
			return true
		}
	}
	forge("the arm", found(func(l *line) { l.Arm = "hermes/none" }))
	forge("is not one that is reported on", found(func(l *line) { l.Found.Case = "a-0" }))
	forge("of the family", found(func(l *line) { l.Found.Family = "mine" }))
	forge("where the budget is 30", found(func(l *line) { l.Found.Queries = 31 }))
	forge("failed", found(func(l *line) { l.Found.Errors = l.Found.Queries + 1 }))
	forge("stored by query", found(func(l *line) { l.Found.Written = 0 }))
	forge("it landed by query", found(func(l *line) { l.Found.Landed-- }))
	forge("unknown mutation", found(func(l *line) { l.Found.Sequence = "nope" }))
	forge("not what the sequence", found(func(l *line) { l.Winner = json.RawMessage("{}") }))
	forge("fresh epochs", found(func(l *line) { l.Fresh = 1 }))
	forge("is found twice", func() func(*line) bool {
		var first *line
		return func(l *line) bool {
			if l.Found == nil || first == nil {
				if l.Found != nil {
					first = &line{Arm: l.Arm, Found: l.Found, Winner: l.Winner}
				}
				return false
			}
			*l = *first
			return true
		}
	}())
	learned := func(change func(l *line)) func(l *line) bool {
		return func(l *line) bool {
			if l.Learned {
				change(l)
			}
			return l.Learned
		}
	}
	forge("within the budget", learned(func(l *line) { l.Queries = 4*30 + 1 }))
	forge("unknown mutation", learned(func(l *line) { l.Portfolio = []string{"nope"} }))
	forge("is no file of an attack", func(l *line) bool {
		if l.Files != nil {
			l.Files[1].Name = "../" + l.Files[1].Name
		}
		return l.Files != nil
	})
	if err := os.Remove(filepath.Join(dir, resultFile)); err != nil {
		t.Fatal(err)
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "it is missing") {
		t.Errorf("without its result: %v", err)
	}
}

func TestStoppingAnAttackLeavesWhatWasDone(t *testing.T) {
	dir := t.TempDir()
	c := DefaultOptions()
	c.Config.Agents, c.Config.Defenses, c.Config.Limit, c.Learn, c.Budget, c.Config.Concurrency = []string{"hermes"},
		[]string{"block-all"}, 10, 0, 20, 1
	s, err := Prepare(context.Background(), c, harness.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Open(dir); err != nil {
		t.Fatal(err)
	}
	second, err := Prepare(context.Background(), c, harness.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.Resume = true
	if err := second.Open(dir); !errors.Is(err, results.ErrInUse) {
		t.Errorf("another process may write to it: %v", err)
	}
	stop := make(chan struct{})
	close(stop)
	p := new(Progress)
	if done, err := s.Run(context.Background(), p, stop); done || err != nil || p.Cases.Load() != 0 {
		t.Errorf("done %v, %d cases: %v", done, p.Cases.Load(), err)
	}
}

func TestCampaignSettingsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		change func(*Options)
		want   string
	}{
		{func(c *Options) { c.Budget = 0 }, "--budget: 0 is out of range"},
		{func(c *Options) { c.Config.Mutate = []string{"echo"} }, "--mutate: attack has no such setting"},
		{func(c *Options) { c.Config.Split = "tune" }, "--split: attack has no such setting"},
		{func(c *Options) { c.Rewriter = "reference" }, "--rewriter: reference:cautious is not a language model"},
		{func(c *Options) { c.Rewriter = "nonsense" }, `--model: unknown model "nonsense"`},
		{func(c *Options) { c.Config.Dataset = "memtox-smoke"; c.Config.Classes = []string{"nope"} },
			`memtox-smoke: unknown class "nope"`},
	} {
		c := DefaultOptions()
		c.Config.Dataset = "memtox-smoke"
		tt.change(&c)
		s, err := Prepare(context.Background(), c, harness.Builtin())
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// moody is a model that calls itself stochastic.
type moody struct {
	model.Model
}

func (m *moody) Name() string        { return "moody" }
func (m *moody) IsLLM() bool         { return true }
func (m *moody) Deterministic() bool { return false }

// parrot is a rewriter that keeps the sentence and adds a word.
type parrot struct{ asked atomic.Int64 }

func (p *parrot) Next(_ context.Context, r model.Request) (model.Reply, error) {
	p.asked.Add(1)
	_, claim, _ := strings.Cut(r.Messages[0].Content, "Sentence: ")
	claim, _, _ = strings.Cut(claim, "\n")
	return model.Reply{Text: `"Indeed, ` + claim + `"`}, nil
}

func TestAStochasticModelsWinnersRunAgainAndARewriterHelps(t *testing.T) {
	p := &parrot{}
	_, r := campaign(t, t.TempDir(), func(c *Options, cat *harness.Catalog) {
		c.Config.Model, c.Rewriter, c.Config.Defenses, c.Config.Limit, c.Learn = "openai:moody", "openai:parrot",
			[]string{"guard"}, 12, 0
		cat.Models = func(_ context.Context, c harness.Config) (model.Model, error) {
			if c.Model == "openai:parrot" {
				return p, nil
			}
			return &moody{Model: reference.New(reference.Naive, nil)}, nil
		}
	})
	a := r.Arms[0]
	if a.Fresh == nil || a.Fresh.N != 12 {
		t.Errorf("winners were not run again: %+v", a.Fresh)
	}
	if full, _ := a.At(30); a.Fresh.K != full.EndToEnd.K {
		t.Errorf("a model that does the same in every epoch lands %d again of %d", a.Fresh.K, full.EndToEnd.K)
	}
	if p.asked.Load() == 0 {
		t.Error("the rewriter was never asked")
	}
	if r.Rewriter != "openai:parrot" || !r.LLM {
		t.Errorf("%+v", r)
	}
}
