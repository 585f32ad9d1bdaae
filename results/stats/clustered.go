package stats

import (
	"cmp"
	"maps"
	"slices"
)

const methodClustered = "wilson-clustered"

// unequalShare is the shortfall of the effective sample size that counts as
// much: see [ClusteredWilson].
const unequalShare = 0.9

// Families are counts by the name of the template family.
type Families map[string]Count

// Add counts a trial.
func (f Families) Add(family string, hit bool) {
	c := f[family]
	c.Add(hit)
	f[family] = c
}

// Rate is [ClusteredWilson] of the families in the order of their sizes: sums of
// floating-point numbers depend on their order.
func (f Families) Rate(level float64) Rate {
	return ClusteredWilson(slices.SortedFunc(maps.Values(f), func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.K, b.K))
	}), level)
}

// ClusteredWilson returns the rate over template families with an interval
// that knows that the cases of one family resemble each other: [Wilson]'s with
// the raw rate k/n and the effective number of trials
//
//	n_eff = n / (1 + (m−1)ρ)
//
// where m = n/C is the mean size of the C families that have trials, and ρ the
// intraclass correlation ([IntraclassCorrelation]) floored at 0. n_eff is not
// rounded and lies between C and n. As ρ is estimated from C families, Student's
// t on C−1 degrees of freedom stands in place of the normal quantile: that is
// Wilson's interval on n_eff·(z/t)² trials, the EffectiveN of the rate.
//
// At k=0 and k=n families cannot differ and nothing is estimated: they count as
// one trial each (ρ = 1, n_eff = C), and the quantile is normal. With one trial
// in every family trials are independent, and the interval is [Wilson]'s. With
// one family of several trials, some of them successes, it is [0, 1]. One family
// of several trials also gives a [OneCluster] warning. A family with no trial is
// ignored.
//
// Because k=0 and k=n count families and all other k count trials, the upper
// end at k=0 can lie above the upper end at k=1. This errs on the side of
// width: zero of 90 paraphrases of one attack says little about the next attack.
//
// With unequal sizes the design effect depends on Σnᵢ²/n, which exceeds the
// mean size. Where that would take more than
// a tenth off n_eff, the rate carries an [UnequalClusters] warning.
//
// Sources: J. N. K. Rao, A. J. Scott (1992), A simple method for the analysis
// of clustered binary data, Biometrics 48:577–585, for dividing counts by the
// design effect 1 + (m−1)ρ of L. Kish (Survey Sampling, 1965); E. L. Korn,
// B. I. Graubard (1998), Confidence intervals for proportions with small
// expected number of positive counts estimated from survey data, Survey
// Methodology 24:193–201, for intervals on the effective sample size, less of it
// where clusters are few; E. Miller (2024), Adding error bars to evals,
// arXiv:2411.00640, and A. C. Cameron, D. L. Miller (2015), A practitioner's
// guide to cluster-robust inference, J. Human Resources 50:317–372, for t on C−1.
func ClusteredWilson(families []Count, level float64) Rate {
	level, ws := checkLevel(level)
	fs, total, bad := pool(families)
	if bad != nil {
		return notMeasured(methodClustered, level, append(ws, bad...))
	}
	if total.N == 0 {
		return notMeasured(methodClustered, level, append(ws, warn(NotMeasured, "no trial was scored")))
	}
	n, c := float64(total.N), float64(len(fs))
	r := Rate{K: total.K, N: total.N, Level: level, Method: methodClustered, Families: len(fs)}
	switch rho, ok := IntraclassCorrelation(fs); {
	case total.N == len(fs):
		r.ICC = 0 // one trial each: no two trials share a family
	case total.K == 0 || total.K == total.N || !ok:
		r.ICC = 1
	default:
		r.ICC = max(rho, 0)
	}
	r.EffectiveN = n / (1 + (n/c-1)*r.ICC)
	r.EffectiveN = min(max(r.EffectiveN, c), n)
	if len(fs) == 1 && total.N > 1 {
		ws = append(ws, warn(OneCluster,
			"all %d trials are of one family, which counts as a single trial; how families differ is unknown", total.N))
	}
	if r.ICC > 0 && r.ICC < 1 {
		if kish := n / (1 + (meanTrialFamily(fs, n)-1)*r.ICC); kish < unequalShare*r.EffectiveN {
			ws = append(ws, warn(UnequalClusters,
				"family sizes are unequal: %.1f effective trials are used where %.1f would allow for it", r.EffectiveN, kish))
		}
	}
	r.Warnings = ws
	if total.K > 0 && total.K < total.N && total.N > len(fs) {
		r.EffectiveN *= estimated(level, c-1)
	}
	r.Lo, r.Hi = wilson(float64(total.K)/n, r.EffectiveN, level)
	return r
}

// estimated is what is left of an effective number of trials where Student's t on df
// degrees of freedom stands for the normal quantile: nothing without a degree of freedom.
func estimated(level, df float64) float64 {
	if df <= 0 {
		return 0
	}
	ratio := criticalZ(level) / criticalT(level, df)
	return ratio * ratio
}

// IntraclassCorrelation estimates how alike trials of one family are, by
// one-way analysis of variance of the 0/1 outcomes:
//
//	ρ = (MSB − MSW) / (MSB + (n₀−1)·MSW)
//	n₀ = (n − Σnᵢ²/n) / (C−1)
//
// with the mean squares between the C families (C−1 degrees of freedom) and
// within them (n−C), and n₀ the size that replaces a common family size where
// sizes differ. The estimate may be negative: families are then more alike
// than chance makes them. ok is false where it does not exist: fewer than two
// families with trials, no family with two trials, or no variation at all.
//
// Sources: G. W. Snedecor, W. G. Cochran, Statistical Methods, 8th ed. (1989),
// §13.5, for n₀; M. S. Ridout, C. G. B. Demétrio, D. Firth (1999), Estimating
// intraclass correlation for binary data, Biometrics 55:137–148, for its use
// on binary outcomes.
func IntraclassCorrelation(families []Count) (rho float64, ok bool) {
	fs, total, bad := pool(families)
	c := len(fs)
	if bad != nil || c < 2 || total.N == c || total.K == 0 || total.K == total.N {
		return 0, false
	}
	n := float64(total.N)
	p := float64(total.K) / n
	var between, within float64
	for _, f := range fs {
		size := float64(f.N)
		q := float64(f.K) / size
		between += size * (q - p) * (q - p)
		within += size * q * (1 - q)
	}
	df := float64(c - 1)
	msb, msw := between/df, within/(n-float64(c))
	n0 := (n - meanTrialFamily(fs, n)) / df
	return (msb - msw) / (msb + (n0-1)*msw), true
}

// meanTrialFamily is Σnᵢ²/n: the size of the family that a trial is in, on
// average over trials.
func meanTrialFamily(fs []Count, n float64) float64 {
	var s float64
	for _, f := range fs {
		s += float64(f.N) * (float64(f.N) / n)
	}
	return s
}

// pool drops families without trials and adds up the others. bad says which
// count is none.
func pool(families []Count) (fs []Count, total Count, bad []Warning) {
	fs = make([]Count, 0, len(families))
	for _, f := range families {
		if !f.valid() || total.N+f.N > maxTrials {
			return nil, Count{}, []Warning{badCount(f.K, f.N)}
		}
		if f.N == 0 {
			continue
		}
		fs = append(fs, f)
		total.K += f.K
		total.N += f.N
	}
	return fs, total, nil
}
