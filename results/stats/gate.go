package stats

// An Outcome is what an interval says about a requirement. A gate on the point
// estimate would be a coin: "TPR ≥ 0.90" with a true rate of 0.92 and 100 cases
// goes red 17.6% of the time.
type Outcome string

const (
	// Pass: the whole interval meets the requirement.
	Pass Outcome = "pass"
	// Fail: the whole interval breaks it.
	Fail Outcome = "fail"
	// Inconclusive: the interval holds values that meet it and values that
	// break it, or nothing was measured.
	Inconclusive Outcome = "inconclusive"
)

// A Direction says which way a figure is better.
type Direction int

const (
	HigherIsBetter Direction = iota // TPR, utility
	LowerIsBetter                   // ASR, FPR, latency
)

// NonInferior judges the requirement that a candidate be worse than its
// baseline by less than margin, from the estimate of candidate − baseline:
// Pass where the whole interval is on the better side of the margin, Fail where
// the whole interval is on or beyond it, else Inconclusive. Make d at
// [OneSided](0.95) for a one-sided test at 5%.
//
// The margin is in units of the estimate and positive; with any other margin
// the outcome is Inconclusive.
//
// Source: for testing by the interval, G. Piaggio et al. (2012), Reporting of
// noninferiority and equivalence randomized trials, JAMA 308:2594–2604.
func NonInferior(d Estimate, margin float64, better Direction) Outcome {
	if !d.measured || !(margin > 0) {
		return Inconclusive
	}
	worst, best := -d.Lo, -d.Hi // how much worse the candidate may be
	if better == LowerIsBetter {
		worst, best = d.Hi, d.Lo
	}
	switch {
	case worst < margin:
		return Pass
	case best >= margin:
		return Fail
	}
	return Inconclusive
}
