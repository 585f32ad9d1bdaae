package stats

import (
	"encoding/json"
	"testing"
)

func TestRateJSONHasExactlyFiveKeysAndNullsWhereNothingWasMeasured(t *testing.T) {
	for _, c := range []struct {
		r    Rate
		want string
	}{
		{Rate{}, `{"k":0,"n":0,"rate":null,"lo":null,"hi":null}`},
		{Wilson(0, 0, 0), `{"k":0,"n":0,"rate":null,"lo":null,"hi":null}`},
		{ClusteredWilson(nil, 0), `{"k":0,"n":0,"rate":null,"lo":null,"hi":null}`},
		{Rate{K: 1, N: 4, Lo: 0.125, Hi: 0.5}, `{"k":1,"n":4,"rate":0.25,"lo":0.125,"hi":0.5}`},
		{Rate{K: 0, N: 4, Lo: 0, Hi: 0.5}, `{"k":0,"n":4,"rate":0,"lo":0,"hi":0.5}`},
	} {
		b, err := json.Marshal(c.r)
		if err != nil || string(b) != c.want {
			t.Errorf("Marshal(%+v) = %s, %v; want %s", c.r, b, err, c.want)
		}
	}
}

func TestNothingMeasuredIsNeverZero(t *testing.T) {
	for name, r := range map[string]Rate{
		"zero value":     {},
		"Wilson 0/0":     Wilson(0, 0, 0),
		"clustered none": ClusteredWilson(nil, 0),
		"clustered 0/0":  ClusteredWilson([]Count{{0, 0}, {0, 0}}, 0),
		"impossible":     Wilson(3, 2, 0),
		"negative":       ClusteredWilson([]Count{{1, 2}, {-1, 2}}, 0),
		"overflow":       ClusteredWilson([]Count{{0, maxTrials}, {0, 1}}, 0),
	} {
		if v, ok := r.Value(); ok || v != 0 || r.Measured() {
			t.Errorf("%s: Value() = %v, %v, Measured() = %v; want not measured", name, v, ok, r.Measured())
		}
		if got := r.String(); got != "0/0 not measured" {
			t.Errorf("%s: String() = %q", name, got)
		}
		if name == "zero value" {
			continue
		}
		if r.Lo != 0 || r.Hi != 1 {
			t.Errorf("%s: interval [%v, %v], want [0, 1]", name, r.Lo, r.Hi)
		}
		if len(r.Warnings) == 0 {
			t.Errorf("%s: no warning", name)
		}
	}
}

func TestRateString(t *testing.T) {
	if got, want := Wilson(37, 40, 0).String(), "37/40 92.5% [80.1%, 97.4%]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
