package gate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/gate"
	"github.com/memtox/memtox/results/stats"
)

// judged holds a run to the limits that a sample of another wrote.
func judged(t *testing.T, x *compare.Table, file string) *gate.Result {
	t.Helper()
	var o gate.Options
	arm := ""
	for line := range strings.Lines(file) {
		line, _, _ = strings.Cut(line, "#")
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), ":"); ok {
			arm = name
		} else if text, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			o.Require = append(o.Require, require(t, arm+"."+text)...)
		}
	}
	return evaluate(t, x, o)
}

// Limits of a run hold for the run itself and for another with the same rates, of other
// cases if it was a sample of a set, and not where a rate got worse: of 120 pairs each.
func TestLimitsOfASampleHoldUntilARateGetsWorse(t *testing.T) {
	const n = 120
	for _, c := range []struct {
		name       string
		s          sample
		sampled    bool
		was, worse float64
	}{
		{"independent cases", sample{families: 250, size: 1}, true, 0.28, 0.5},
		{"seldom", sample{families: 250, size: 1}, true, 0.01, 0.13},
		{"families of five, alike", sample{families: 60, size: 5, spread: 0.1}, true, 0.2, 0.42},
		{"many families", sample{families: 400, size: 5, spread: 0.1}, true, 0.3, 0.4},
		{"the same cases", sample{families: 100, size: 5, spread: 0.25}, false, 0.3, 0.42},
	} {
		kept, red := 0, 0
		for seed := range uint64(n) {
			c.s.lands = map[string]float64{"guard": c.was, "second": c.was}
			first, again, epoch := c.s.table(2*seed, 0), 2*seed+1, int32(0)
			if first.Run.Settings = map[string]any{"limit": 300}; !c.sampled {
				first.Run.Settings["limit"], again, epoch = 0, 2*seed, 1
			}
			var b bytes.Buffer
			if limits, err := gate.Sample(&b, first, 0.95, "a test"); err != nil || limits != 2 {
				t.Fatal(limits, err)
			}
			if r := judged(t, first, b.String()); r.Outcome != stats.Pass {
				t.Fatalf("%s: the run itself: %s\n%s", c.name, r.Verdict(), b.String())
			}
			if judged(t, c.s.table(again, epoch), b.String()).Outcome == stats.Pass {
				kept++
			}
			c.s.lands = map[string]float64{"guard": c.worse, "second": c.was}
			if judged(t, c.s.table(again, epoch), b.String()).Outcome != stats.Pass {
				red++
			}
		}
		t.Logf("%s: passed again %.4f, worse seen %.3f", c.name, float64(kept)/n, float64(red)/n)
		if most := slack(0.01, n); float64(n-kept)/n > 0.01+most || float64(red)/n < 0.8 {
			t.Errorf("%s: %d of %d passed again, %d worse ones were seen", c.name, kept, n, red)
		}
	}
}

func TestASampleNeedsAWholeRunWithADefense(t *testing.T) {
	for want, x := range map[string]*compare.Table{
		"is not finished": compare.NewTable("half", nil),
		"no figure":       sample{families: 2, size: 1, lands: map[string]float64{"guard": 0.5}}.table(1, 0),
	} {
		if n, err := gate.Sample(new(bytes.Buffer), x, 0.95, "a test"); n != 0 || err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d limits, %v; want %q", n, err, want)
		}
	}
}
