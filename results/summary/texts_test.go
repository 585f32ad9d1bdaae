package summary

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/metric"
)

func textRows(score func(i int) *float64) []results.Entry {
	yes, no := true, false
	var out []results.Entry
	for i := range 8 {
		attack := i < 4
		hit := &no
		if i%2 == 0 {
			hit = &yes
		}
		e := results.Entry{Trial: results.Trial{Case: string(rune('a' + i)), Family: string(rune('a' + i)), Agent: "text",
			Defense: "d", Status: results.Scored, Label: results.Benign, Kind: "k"},
			Decisions: []results.Decision{{Gate: "write", Action: "allow", Origin: "USER", LatencyNS: int64(1000 * (i + 1)),
				Score: score(i), Reasons: "one;two"}}}
		if attack {
			e.Trial.Label, e.Trial.Kind, e.Trial.Class, e.Trial.Detected = results.Attack, "", "c", hit
			e.Decisions[0].Poison = true
		} else {
			e.Trial.LegitStopped = hit
		}
		out = append(out, e)
	}
	out = append(out, results.Entry{Trial: results.Trial{Case: "z", Agent: "text", Defense: "d", Status: results.Error,
		Label: results.Attack, Reason: "dead\x1b[31m"}})
	return out
}

var atWrite = map[string]string{"d": "write", "absent": "write"}

func textSummary(score func(i int) *float64) *Summary {
	a := New(&results.Run{Agents: []string{"text"}, Defenses: []string{"d", "absent"},
		Dataset: results.Dataset{Name: "x", Attacks: 5, Benign: 4}},
		Options{Gates: atWrite})
	list := textRows(score)
	for i := range list {
		a.Add(&list[i], 50*(i+1))
	}
	return a.Summary()
}

// Scores 8 7 5 3 of attacks and 6 4 2 1 of benign cases: of 16 pairs 13 are in
// order; the precisions at the four recalls are 1, 1, 3/4 and 4/6.
func TestCurvesWorkedByHand(t *testing.T) {
	scores := []float64{8, 7, 5, 3, 6, 4, 2, 1}
	s := textSummary(func(i int) *float64 { return &scores[i] })
	d := &s.Arms[0]
	if v, _ := d.Texts.ROC.AUC.Value(); math.Abs(v-13./16) > 1e-12 {
		t.Errorf("AUC %v", v)
	}
	if v := *d.Texts.PR.AveragePrecision; math.Abs(v-(1+1+3./4+4./6)/4) > 1e-12 {
		t.Errorf("average precision %v", v)
	}
	if p := d.Texts.ROC.Points; len(p) != 9 || p[0].Threshold != nil || *p[3].Threshold != 6 || p[3].TPR != .5 ||
		p[3].FPR != .25 || p[8].TPR != 1 || p[8].FPR != 1 {
		t.Errorf("%+v", p)
	}
}

// On the curve an attack is stopped by what stops it in the table: all of its texts
// that carry the payload, and no other text.
func TestACurveStopsWhatTheTableStops(t *testing.T) {
	low, mid, high := 1.0, 2.0, 3.0
	attack := func(scores ...*float64) results.Entry {
		e := textRows(func(int) *float64 { return nil })[0]
		e.Decisions = nil
		for i, s := range scores {
			e.Decisions = append(e.Decisions, results.Decision{Gate: "write", Action: "allow", Score: s, Poison: i > 0})
		}
		return e
	}
	benign := textRows(func(int) *float64 { return &mid })[7]
	for want, e := range map[float64]results.Entry{0: attack(&high, &low), 1: attack(&low, &high),
		.5: attack(&high, &mid, &high)} {
		a := New(&results.Run{}, Options{Gates: atWrite})
		a.Add(&e)
		a.Add(&benign)
		if v, ok := a.Summary().Arms[0].Texts.ROC.AUC.Value(); !ok || v != want {
			t.Errorf("AUC %v, want %v", v, want)
		}
	}
	a, e := New(&results.Run{}, Options{Gates: atWrite}), attack(&high, nil, &high)
	a.Add(&e)
	a.Add(&benign)
	if r := a.Summary().Arms[0].Texts.ROC; r.Unscored != 1 {
		t.Errorf("an attack of which a text has no score: %+v", r)
	}
}

func TestScoresThatAreNoneMakeNoCurve(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), 1, 2, math.Inf(-1), 1, 2, math.NaN()}
	s := textSummary(func(i int) *float64 { return &odd[i] })
	if r := s.Arms[0].Texts.ROC; r.Attacks != 2 || r.Benign != 2 || r.Unscored != 4 {
		t.Errorf("%+v", r)
	}
	if s := textSummary(func(int) *float64 { return nil }); s.Arms[0].Texts.ROC != nil {
		t.Error("a curve of nothing")
	}
}

func TestFiguresWorkedByHand(t *testing.T) {
	s := textSummary(func(int) *float64 { return nil })
	d := &s.Arms[0]
	// 2 of 4 attacks and 2 of 4 benign cases were stopped.
	tpr, fpr, precision, f1 := d.Rate(metric.TPR), d.Rate(metric.FPR), d.Rate(metric.Precision),
		ScoreOf(metric.F1, d.Rate(metric.F1))
	if tpr.K != 2 || tpr.N != 4 || fpr.K != 2 || fpr.N != 4 || precision.K != 2 || precision.N != 4 || *f1.Value != .5 ||
		d.NotScored != 1 || d.Scored != 8 {
		t.Errorf("%+v", d)
	}
	if *f1.Lo >= .5 || *f1.Hi <= .5 || d.Texts.Findings["one"] != 8 || d.LatencyUS.Write.N != 8 ||
		*d.LatencyUS.Write.Max != 8 {
		t.Errorf("%+v", d)
	}
	if by := d.Texts.BySize; len(by) != 3 || by[0].UpTo != 100 || by[0].N != 2 {
		t.Errorf("%+v", by)
	}
	if a := &s.Arms[1]; a.Rate(metric.TPR).Measured() || a.Rate(metric.F1).Measured() ||
		a.Rate(metric.Precision).Measured() {
		t.Errorf("measured nothing, says %+v", a)
	}
	if reason, n := s.MostFrequentError(d); reason != "dead\x1b[31m" || n != 1 {
		t.Errorf("%q %d times", reason, n)
	}
}

// A script reads these keys, in whatever order.
func TestJSONOfTextsHasItsKeys(t *testing.T) {
	b, err := json.Marshal(textSummary(func(i int) *float64 { x := float64(i); return &x }))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Defenses []map[string]any
	}
	top := mustMap(t, b)
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	keys := func(m map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
	slice := got.Defenses[0]["classes"].([]any)[0].(map[string]any)
	for what, c := range map[string][2]string{
		"detect": {keys(top), "cases dataset defenses interval origin split stored texts"},
		"a defense": {keys(got.Defenses[0]), "classes defense deferred_attack deferred_benign error_reasons errors f1 " +
			"findings fpr gate latency_us latency_us_by_size mutations pr precision roc scored signals sources tpr unsure " +
			"verdicts"},
		"a slice": {keys(slice), "deferred_attack f1 fpr name precision tpr"},
		"f1":      {keys(slice["f1"].(map[string]any)), "hi lo value"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s has the keys %s, want %s", what, c[0], c[1])
		}
	}
}

// Cases of one family are no independent evidence.
func TestFamiliesWidenTheInterval(t *testing.T) {
	width := func(family func(i int) string) float64 {
		a := New(&results.Run{}, Options{Gates: atWrite})
		for i := range 100 {
			hit := i/10%2 == 0
			a.Add(&results.Entry{Trial: results.Trial{Case: string(rune('0' + i)), Family: family(i), Agent: "text",
				Defense: "d", Status: results.Scored, Label: results.Attack, Class: "c", Detected: &hit}})
		}
		r := a.Summary().Arms[0].Rate(metric.TPR)
		return r.Hi - r.Lo
	}
	if alone, shared := width(func(i int) string { return string(rune('0' + i)) }),
		width(func(i int) string { return string(rune('a' + i/10)) }); shared < 1.5*alone {
		t.Errorf("%v alone, %v in families", alone, shared)
	}
}

// Rows come in the order in which the trials ended, and a run has one figure.
func TestTheAreaDoesNotHangOnTheOrderOfRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var attacks, benign []float64
	for range 300 {
		attacks = append(attacks, rng.NormFloat64()+1)
		benign = append(benign, rng.NormFloat64())
	}
	first, _ := curves(attacks, benign, 0)
	for range 20 {
		rng.Shuffle(len(attacks), func(i, j int) { attacks[i], attacks[j] = attacks[j], attacks[i] })
		rng.Shuffle(len(benign), func(i, j int) { benign[i], benign[j] = benign[j], benign[i] })
		if roc, _ := curves(attacks, benign, 0); !reflect.DeepEqual(roc, first) {
			t.Fatalf("%+v, and in another order %+v", roc.AUC, first.AUC)
		}
	}
}
