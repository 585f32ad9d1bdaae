package stats

import (
	"encoding/json"
	"fmt"
)

// A Count is K successes of N trials, for example of one template family.
type Count struct{ K, N int }

// Add counts a trial.
func (c *Count) Add(hit bool) {
	c.N++
	if hit {
		c.K++
	}
}

// maxTrials bounds N. Far above any run, it keeps sums from overflowing and the
// distributions within the range where they are accurate: beyond a billion
// gonum's incomplete beta function loses digits.
const maxTrials = 1_000_000_000

func (c Count) valid() bool { return c.K >= 0 && c.K <= c.N && c.N <= maxTrials }

// A Rate is a proportion k/n with its interval. Functions of this package make
// it ([Wilson], [ClusteredWilson], [ClusteredClopperPearson]). The zero Rate is
// not measured.
//
// The rate itself is behind [Rate.Value], so that 0/0 cannot be taken for 0.
type Rate struct {
	// K successes of N scored trials; raw counts, never adjusted.
	K, N int
	// Lo and Hi are the ends of the interval. Where N is 0 they are 0 and 1:
	// nothing is known.
	Lo, Hi float64
	// Level is the two-sided confidence level of Lo and Hi.
	Level float64
	// Method names the interval: "wilson", "wilson-clustered" or
	// "clopper-pearson-clustered".
	Method string
	// Families is the number of clusters with trials, 0 where the method knows
	// none; EffectiveN the number of independent trials that the interval
	// counts (N where the method knows no clusters); ICC the intraclass
	// correlation that was used, from 0 to 1.
	Families   int
	EffectiveN float64
	ICC        float64
	Warnings   []Warning
}

// Measured reports whether there was at least one trial.
func (r Rate) Measured() bool { return r.N > 0 }

// Value returns K/N. ok is false, and the value 0, where nothing was measured.
func (r Rate) Value() (v float64, ok bool) {
	if r.N <= 0 {
		return 0, false
	}
	return float64(r.K) / float64(r.N), true
}

// String returns the counts, the rate and the interval, as in
// "37/40 92.5% [80.1%, 97.4%]", or "0/0 not measured".
func (r Rate) String() string {
	v, ok := r.Value()
	if !ok {
		return "0/0 not measured"
	}
	return fmt.Sprintf("%d/%d %.1f%% [%.1f%%, %.1f%%]", r.K, r.N, 100*v, 100*r.Lo, 100*r.Hi)
}

// MarshalJSON writes {"k","n","rate","lo","hi"}; the last three are null where
// N is 0.
func (r Rate) MarshalJSON() ([]byte, error) {
	out := struct {
		K    int      `json:"k"`
		N    int      `json:"n"`
		Rate *float64 `json:"rate"`
		Lo   *float64 `json:"lo"`
		Hi   *float64 `json:"hi"`
	}{K: r.K, N: r.N}
	if v, ok := r.Value(); ok {
		out.Rate, out.Lo, out.Hi = &v, &r.Lo, &r.Hi
	}
	return json.Marshal(out)
}

// notMeasured is the rate of nothing.
func notMeasured(method string, level float64, ws []Warning) Rate {
	return Rate{Lo: 0, Hi: 1, Level: level, Method: method, Warnings: ws}
}
