package attacks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memtox/memtox/datasets"
)

// attacksOf are the attacks of the smoke set.
func attacksOf(t testing.TB) []datasets.Case {
	t.Helper()
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(set.Cases), func(c datasets.Case) bool { return c.Label != datasets.Attack })
}

// target counts queries and lets those pass whose variant a filter accepts.
type target struct {
	mu      sync.Mutex
	queries map[string]int // by original case
	passes  func(c datasets.Case) bool
}

func (g *target) try(_ context.Context, c datasets.Case) (Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queries == nil {
		g.queries = map[string]int{}
	}
	id := c.VariantOf
	if id == "" {
		id = c.ID
	}
	g.queries[id]++
	ok := g.passes(c)
	return Outcome{Proposed: true, Written: ok, Landed: ok, Stopped: !ok}, nil
}

func TestTheBudgetIsKeptAndCountsEveryQuery(t *testing.T) {
	for _, budget := range []int{1, 7, 60} {
		g := &target{passes: func(datasets.Case) bool { return false }}
		for _, c := range attacksOf(t)[:12] {
			f, err := Search(context.Background(), c, nil, Options{Budget: budget, Seed: 1}, g.try)
			if err != nil {
				t.Fatal(err)
			}
			if f.Queries != g.queries[c.ID] || f.Queries != budget || f.Landed != 0 || f.Written != 0 || f.Winner != nil {
				t.Errorf("budget %d: %+v after %d queries", budget, f, g.queries[c.ID])
			}
		}
	}
}

func TestTheFirstQueryIsTheAttackAsItIs(t *testing.T) {
	c := attacksOf(t)[0]
	g := &target{passes: func(c datasets.Case) bool { return c.VariantOf == "" }}
	f, err := Search(context.Background(), c, nil, Options{Budget: 50}, g.try)
	if err != nil || f.Queries != 1 || f.Landed != 1 || f.Sequence != "" || f.Winner != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestTheSearchFindsACombinationThatItWasNotGiven(t *testing.T) {
	both := func(c datasets.Case) bool {
		return strings.Contains(c.Variant, "echo") && strings.Contains(c.Variant, "paraphrase")
	}
	landed := 0
	cases := attacksOf(t)[:20]
	for _, c := range cases {
		g := &target{passes: both}
		f, err := Search(context.Background(), c, nil, Options{Budget: 400, Seed: 3}, g.try)
		if err != nil {
			t.Fatal(err)
		}
		if f.Landed > 0 {
			landed++
			if f.Winner == nil || !both(*f.Winner) || f.Winner.VariantOf != c.ID || f.Sequence != f.Winner.Variant ||
				f.Landed != f.Queries {
				t.Errorf("%+v", f)
			}
		}
	}
	if landed < len(cases)/2 {
		t.Errorf("%d of %d found two steps within 400 queries", landed, len(cases))
	}
}

func TestLearningFindsWhatWorksAndIsTriedFirst(t *testing.T) {
	cases := attacksOf(t)
	passes := func(c datasets.Case) bool { return strings.HasPrefix(c.Variant, "padding") }
	g := &target{passes: passes}
	o := Options{Budget: 40, Seed: 1, Workers: 4}
	p, queries, err := Learn(context.Background(), cases[:20], o, g.try)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) == 0 || !strings.HasPrefix(p[0].String(), "padding") {
		t.Fatalf("learned %v", p.Names())
	}
	total := 0
	for _, n := range g.queries {
		total += n
	}
	if total != queries || queries > 40*20 {
		t.Errorf("%d queries were made, %d counted, at most %d allowed", total, queries, 40*20)
	}
	again, _, err := Learn(context.Background(), cases[:20], Options{Budget: 40, Seed: 1, Workers: 1},
		(&target{passes: passes}).try)
	if err != nil || cmp.Diff(p.Names(), again.Names()) != "" {
		t.Errorf("one worker learns %v, four %v: %v", again.Names(), p.Names(), err)
	}
	back, err := ParsePortfolio(p.Names())
	if err != nil || cmp.Diff(p.Names(), back.Names()) != "" {
		t.Errorf("%v came back as %v: %v", p.Names(), back.Names(), err)
	}
	f, err := Search(context.Background(), cases[30], p, o, g.try)
	if err != nil || f.Landed != 2 {
		t.Errorf("the learned sequence is not the second query: %+v, %v", f, err)
	}
}

func TestEqualSearchesAreEqual(t *testing.T) {
	c := attacksOf(t)[5]
	passes := func(c datasets.Case) bool {
		return strings.Count(c.Variant, "+") >= 2 && strings.Contains(c.Variant, "case")
	}
	var first Found
	for i := range 3 {
		f, err := Search(context.Background(), c, nil, Options{Budget: 300, Seed: 9}, (&target{passes: passes}).try)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if diff := cmp.Diff(first, f, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
		first = f
	}
}

func TestFailedQueriesAreSpentAndScoreNothing(t *testing.T) {
	c := attacksOf(t)[0]
	f, err := Search(context.Background(), c, nil, Options{Budget: 5},
		func(context.Context, datasets.Case) (Outcome, error) {
			return Outcome{Error: true, Landed: true}, nil
		})
	if err != nil || f.Queries != 5 || f.Errors != 5 || f.Landed != 0 || f.Scored() {
		t.Errorf("%+v, %v", f, err)
	}
	broken := errors.New("the target is gone")
	if _, err := Search(context.Background(), c, nil, Options{Budget: 5},
		func(context.Context, datasets.Case) (Outcome, error) { return Outcome{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, _, err := Learn(context.Background(), attacksOf(t)[:3], Options{Budget: 5, Workers: 2},
		func(context.Context, datasets.Case) (Outcome, error) { return Outcome{}, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestARewriterIsAskedAndHeldToTheValue(t *testing.T) {
	c := attacksOf(t)[0]
	asked := 0
	rewrite := func(_ context.Context, claim, value string, tried []string) (string, error) {
		asked++
		if !strings.Contains(claim, value) {
			t.Errorf("the claim %q does not hold %q", claim, value)
		}
		if asked%2 == 0 {
			return "Something without it.", nil
		}
		return fmt.Sprintf("Wording %d has %s in it.", asked, value), nil
	}
	g := &target{passes: func(c datasets.Case) bool {
		if strings.HasPrefix(c.Variant, "rewriter#") && !datasets.Holds(c.Write[0].Segments[0].Text, "Wording") {
			t.Errorf("%s does not have the wording: %s", c.Variant, c.Write[0].Segments[0].Text)
		}
		return c.Variant == "rewriter#5"
	}}
	f, err := Search(context.Background(), c, nil, Options{Budget: 200, Rewrite: rewrite}, g.try)
	if err != nil || f.Sequence != "rewriter#5" || f.Winner == nil || f.Winner.VariantOf != c.ID || asked != 5 {
		t.Errorf("%+v after %d wordings: %v", f, asked, err)
	}
}
