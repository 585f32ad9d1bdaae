package stats

import (
	"encoding/json"
	"fmt"
	"math"
)

// An Estimate is a number that is not a plain proportion, with its interval: a
// difference of rates or latencies, a quantile, an area, an agreement. The zero
// Estimate is not measured.
type Estimate struct {
	value    float64
	measured bool

	// Lo and Hi are the ends of the interval; -Inf or +Inf where the data set
	// no bound. What can only lie between two numbers has them as widest ends.
	Lo, Hi float64
	// Level is the two-sided confidence level of Lo and Hi.
	Level float64
	// N is the number of observations (of pairs, for paired differences; of
	// both samples together for others).
	N int
	// Clusters is the number of clusters, 0 where the method knows none.
	Clusters int
	// SE is the standard error and DF the degrees of freedom of its t
	// distribution; 0 where the method has none.
	SE, DF float64
	// Method names how the interval was made.
	Method   string
	Warnings []Warning
}

// Measured reports whether there is a value.
func (e Estimate) Measured() bool { return e.measured }

// Value returns the point estimate. ok is false, and the value 0, where nothing
// was measured.
func (e Estimate) Value() (v float64, ok bool) {
	if !e.measured {
		return 0, false
	}
	return e.value, true
}

// Times returns the estimate in another unit, f of which make one of this; f is positive.
func (e Estimate) Times(f float64) Estimate {
	e.value, e.Lo, e.Hi, e.SE = f*e.value, f*e.Lo, f*e.Hi, f*e.SE
	return e
}

// String returns "0.062 [0.005, 0.119]" or "not measured".
func (e Estimate) String() string {
	if !e.measured {
		return "not measured"
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", e.value, e.Lo, e.Hi)
}

// MarshalJSON writes {"value","lo","hi","level","n"}. value, lo and hi are null
// where nothing was measured; an end without a bound is null too.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := struct {
		Value *float64 `json:"value"`
		Lo    *float64 `json:"lo"`
		Hi    *float64 `json:"hi"`
		Level float64  `json:"level"`
		N     int      `json:"n"`
	}{Level: e.Level, N: e.N}
	if e.measured {
		out.Value = &e.value
		if !math.IsInf(e.Lo, 0) {
			out.Lo = &e.Lo
		}
		if !math.IsInf(e.Hi, 0) {
			out.Hi = &e.Hi
		}
	}
	return json.Marshal(out)
}

// unmeasured is the estimate of something that lies between lo and hi.
func unmeasured(method string, level, lo, hi float64, ws []Warning) Estimate {
	return Estimate{Lo: lo, Hi: hi, Level: level, Method: method, Warnings: ws}
}

// within sets the ends, kept within [least, most] and around the value.
func (e *Estimate) within(lo, hi, least, most float64) {
	e.Lo = min(max(lo, least), e.value)
	e.Hi = max(min(hi, most), e.value)
}
