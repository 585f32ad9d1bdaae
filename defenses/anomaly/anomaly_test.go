package anomaly_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/defenses/anomaly"
	"github.com/memtox/memtox/defenses/defensetest"
)

var (
	userOrigin = memory.Origin{Class: memory.User}
	mailOrigin = memory.Origin{Class: memory.External, Medium: memory.Email}
)

// space is an embedder for tests: the text is the seed of a vector around one of
// two directions ("a7" and "b7"), or along an axis of its own ("far").
func space(dim int) memory.Embed {
	one := func(s string) []float32 {
		v := make([]float32, dim)
		switch {
		case strings.HasPrefix(s, "far"):
			v[dim-1] = 1
			return v
		case s == "":
			return v
		}
		n, err := strconv.Atoi(s[1:])
		if err != nil {
			n = len(s)
		}
		r := rand.New(rand.NewPCG(uint64(n), uint64(s[0])))
		var norm float64
		x := make([]float64, dim)
		for i := range x {
			x[i] = r.NormFloat64() * 0.6 / math.Sqrt(float64(dim))
		}
		x[int(s[0]-'a')%2] += 1
		for _, y := range x {
			norm += y * y
		}
		for i, y := range x {
			v[i] = float32(y / math.Sqrt(norm))
		}
		return v
	}
	return func(_ context.Context, texts []string) (out [][]float32, err error) {
		for _, s := range texts {
			out = append(out, one(s))
		}
		return out, nil
	}
}

func knowledge(class string, o memory.Origin, from, n int) []memory.Record {
	var out []memory.Record
	for i := range n {
		out = append(out, memory.Record{Text: fmt.Sprintf("%s%d", class, from+i), Origin: o})
	}
	return out
}

func build(t testing.TB, o anomaly.Options, env defenses.Env) defenses.Defense {
	t.Helper()
	d, err := anomaly.New(o, env)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func judge(t testing.TB, tr *defensetest.Trial, s string, o memory.Origin) memory.Verdict {
	t.Helper()
	return tr.Judge(tr.Proposal(memory.Record{Text: s, Origin: o}))
}

// On records like the baseline's each signal raises about as many false alarms
// as its quantile says, at any dimension. The peer's detector, which counts the
// point itself among its neighbours, raises them in a third of the cases at
// dimension 64 and in all of them at 384.
func TestFalseAlarmsAreAsManyAsStated(t *testing.T) {
	for _, dim := range []int{64, 192, 384} {
		env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 200), Vector: space(dim)}
		tr := defensetest.Open(t, build(t, anomaly.Options{}, env))
		peer := defensetest.Open(t, anomaly.NewCompatible(env))
		const n = 2000
		outlier, sparse, peers := 0, 0, 0
		for i := range n {
			v := judge(t, tr, fmt.Sprintf("a%d", 10_000+i), userOrigin)
			for _, f := range v.Findings {
				switch f.Check {
				case anomaly.CheckOutlier:
					outlier++
				case anomaly.CheckSparse:
					sparse++
				}
			}
			if len(judge(t, peer, fmt.Sprintf("a%d", 10_000+i), userOrigin).Findings) > 0 {
				peers++
			}
		}
		t.Logf("dimension %d: outlier %.1f%%, sparse %.1f%% (stated 5%%); memgar's mode %.1f%%", dim, 100*float64(outlier)/n,
			100*float64(sparse)/n, 100*float64(peers)/n)
		// The share given one fitted baseline of 200 scatters around the stated
		// one with a standard deviation of about 1.5 points.
		if outlier > n/10 || sparse > n/10 {
			t.Errorf("dimension %d: %d outliers and %d sparse of %d, stated 5%%", dim, outlier, sparse, n)
		}
	}
}

func TestWhatLiesNowhereNearIsQuarantined(t *testing.T) {
	env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 100), Vector: space(64)}
	tr := defensetest.Open(t, build(t, anomaly.Options{}, env))
	if v := judge(t, tr, "far", mailOrigin); v.Action != memory.Quarantine || len(v.Findings) != 2 || !v.HasScore ||
		v.Score < 3 {
		t.Errorf("verdict %+v, want quarantine for an outlier in a sparse neighbourhood", v)
	}
}

func TestCollisionWithAnotherClusterIsDeferred(t *testing.T) {
	env := defenses.Env{Knowledge: append(knowledge("a", userOrigin, 0, 80), knowledge("b", mailOrigin, 0, 80)...),
		Vector: space(64)}
	tr := defensetest.Open(t, build(t, anomaly.Options{}, env))
	v := judge(t, tr, "a5000", mailOrigin)
	if v.Action != memory.Defer || len(v.Findings) == 0 || v.Findings[len(v.Findings)-1].Check != anomaly.CheckCollision {
		t.Errorf("external content among the user's own: %+v, want it deferred for the collision", v)
	}
	if v := judge(t, tr, "b5000", mailOrigin); v.Action != memory.Allow {
		t.Errorf("external content among external content: %+v", v)
	}
}

// Too small a baseline is counted and is no informed allow.
func TestTooSmallABaselineIsUnsure(t *testing.T) {
	for name, d := range map[string]defenses.Defense{
		"own":    build(t, anomaly.Options{}, defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 19), Vector: space(64)}),
		"memgar": anomaly.NewCompatible(defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 19), Vector: space(64)}),
	} {
		v := judge(t, defensetest.Open(t, d), "far", mailOrigin)
		if !v.Unsure || v.HasScore || v.Findings[0].Check != anomaly.CheckInsufficient {
			t.Errorf("%s: %+v, want unsure", name, v)
		}
	}
}

// Only what the user said joins the baseline: an attacker who writes twice is
// no more ordinary the second time.
func TestOnlyTrustedRecordsJoinTheBaseline(t *testing.T) {
	env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 100), Vector: space(64)}
	d := build(t, anomaly.Options{K: 1}, env)
	for _, o := range []memory.Origin{userOrigin, mailOrigin} {
		tr := defensetest.Open(t, d)
		tr.Commit(tr.Proposal(memory.Record{Text: "far", Origin: o}), memory.Verdict{})
		v := judge(t, tr, "far", mailOrigin)
		sparse := false
		for _, f := range v.Findings {
			sparse = sparse || f.Check == anomaly.CheckSparse
		}
		if sparse != (o == mailOrigin) {
			t.Errorf("after a record of %s: %+v", o.Class, v)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	var r defenses.Registry
	anomaly.Register(&r)
	env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 30), Vector: space(64)}
	for spec, ok := range map[string]bool{
		"anomaly": true, "anomaly:memgar": true, "anomaly:z=2.5+k=7": true, "anomaly:quantile=0.9": true,
		"anomaly:z=-1": false, "anomaly:k=0x": false, "anomaly:k=99": false, "anomaly:quantile=1": false,
		"anomaly:what=1": false, "anomaly:z=NaN": false,
	} {
		if _, err := r.Build(spec, env); (err == nil) != ok {
			t.Errorf("%s: error %v, want ok %v", spec, err, ok)
		}
	}
}

// Whoever cannot embed has no opinion: neither where the baseline is fitted, nor of a
// record that was committed, nor of one that is judged. The next trial asks again.
func TestNoVectorNoVerdict(t *testing.T) {
	down := false
	var asked []string
	env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 60),
		Vector: func(ctx context.Context, texts []string) ([][]float32, error) {
			if down {
				return nil, fmt.Errorf("nobody answers")
			}
			asked = append(asked, texts...)
			return space(64)(ctx, texts)
		}}
	ctx := context.Background()
	for name, d := range map[string]defenses.Defense{"own": build(t, anomaly.Options{}, env),
		"memgar": anomaly.NewCompatible(env)} {
		down = true
		if _, err := d.Open(ctx, defensetest.NewView()); err == nil {
			t.Errorf("%s: a gate without a baseline", name)
		}
		down = false
		g, err := d.Open(ctx, defensetest.NewView())
		if err != nil {
			t.Fatalf("%s: what failed once fails for good: %v", name, err)
		}
		write := memory.Proposal{Record: memory.Record{Text: "a7", Origin: userOrigin}}
		if _, err := g.Write(ctx, write); err != nil {
			t.Error(err)
		}
		down = true
		if _, err := g.Write(ctx, memory.Proposal{Record: memory.Record{Text: "a8", Origin: userOrigin}}); err == nil {
			t.Errorf("%s: a verdict without a vector", name)
		}
		g.Committed(memory.Change{Record: memory.Record{Text: "a9", Origin: userOrigin}})
		down, asked = false, nil
		if _, err := g.Write(ctx, write); err != nil {
			t.Errorf("%s: what failed once fails for good: %v", name, err)
		}
		if name == "own" && !slices.Contains(asked, "a9") {
			t.Errorf("a record that could not be embedded is forgotten: %q", asked)
		}
	}
}

func TestConformance(t *testing.T) {
	env := defenses.Env{Knowledge: knowledge("a", userOrigin, 0, 60), Vector: space(64)}
	defensetest.Conformance(t, build(t, anomaly.Options{}, env), true)
	defensetest.Conformance(t, anomaly.NewCompatible(env), true)
	defensetest.Conformance(t, build(t, anomaly.Options{}, defenses.Env{}), true)
}

// A write decision on a 300-byte entry, embedding included; the number of stored
// records plays no part.
func BenchmarkWrite(b *testing.B) {
	var known []memory.Record
	for i := range 400 {
		known = append(known, memory.Record{Text: fmt.Sprintf("The contact %d of the depot in Elm Row is asked about "+
			"parcels on weekdays.", i), Origin: userOrigin})
	}
	text := strings.Repeat("The billing contact of Norvik Print is dana@norvik.example for orders. ", 5)[:300]
	for name, d := range map[string]defenses.Defense{"own": build(b, anomaly.Options{}, defenses.Env{Knowledge: known}),
		"memgar": anomaly.NewCompatible(defenses.Env{Knowledge: known})} {
		b.Run(name, func(b *testing.B) {
			tr := defensetest.Open(b, d)
			p := tr.Proposal(memory.Record{Text: text, Origin: mailOrigin})
			q := p
			q.Record.Text = text[1:] + "x"
			g, err := d.Open(context.Background(), defensetest.NewView())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := g.Write(context.Background(), [2]memory.Proposal{p, q}[i&1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
