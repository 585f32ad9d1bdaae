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

// AtMost judges the requirement that the rate be limit or less. Make r at
// [OneSided](0.95) for a decision that is wrong in about 5% of runs in each
// direction when the true rate is on the limit, and less often elsewhere.
// [Wilson]'s one-sided bounds exceed that near 0 and 1 (with 100 trials, a rate
// of 0.03 passes a limit of 0.03 in 8%); [ClopperPearson]'s never do.
//
// A rate that was not measured is inconclusive, and so is every rate for a limit
// that is not a number.
//
// Source, for the bias: T. T. Cai (2005), One-sided confidence intervals in
// discrete distributions, J. Statist. Plann. Inference 131:63–88.
func AtMost(r Rate, limit float64) Outcome {
	switch {
	case !r.Measured():
		return Inconclusive
	case r.Hi <= limit:
		return Pass
	case r.Lo > limit:
		return Fail
	}
	return Inconclusive
}

// AtLeast judges the requirement that the rate be limit or more; see [AtMost].
func AtLeast(r Rate, limit float64) Outcome {
	switch {
	case !r.Measured():
		return Inconclusive
	case r.Lo >= limit:
		return Pass
	case r.Hi < limit:
		return Fail
	}
	return Inconclusive
}

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
