package stats

import (
	"cmp"
	"math"
	"slices"
)

// AUC returns the area under the ROC curve of scores: the probability that the
// score of an attack (positive) exceeds that of a benign text (negative), ties
// counting half. Scores are compared, never subtracted, so infinite ones count;
// one that is no number makes the result not measured.
//
// The interval is DeLong's, on the logit scale so that it stays within 0 and 1.
// Where the scores separate perfectly there is no standard error; the interval
// then reaches from the area as far as Wilson's does for no error in as many
// trials as the smaller class has. A class of one score gives [0, 1].
//
// Sources: E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson (1988), Comparing
// the areas under two or more correlated receiver operating characteristic
// curves, Biometrics 44:837–845; X. Sun, W. Xu (2014), Fast implementation of
// DeLong's algorithm, IEEE Signal Processing Letters 21:1389–1393; M. S. Pepe,
// The Statistical Evaluation of Medical Tests (2003), §5.2, for the logit.
func AUC(positive, negative []float64, level float64) Estimate {
	const method = "delong-logit"
	level, ws := checkLevel(level)
	for _, scores := range [][]float64{positive, negative} {
		if len(scores) == 0 {
			return unmeasured(method, level, 0, 1, append(ws, warn(NotMeasured, "one class has no score")))
		}
		if slices.ContainsFunc(scores, math.IsNaN) {
			return unmeasured(method, level, 0, 1, append(ws, warn(BadInput, "a score is not a number")))
		}
	}
	m, n := float64(len(positive)), float64(len(negative))
	all := midranks(append(slices.Clone(positive), negative...))
	own, other := midranks(positive), midranks(negative)
	// For each positive, the share of negatives under it; for each negative,
	// the share of positives over it.
	wins, losses := make([]float64, len(positive)), make([]float64, len(negative))
	for i := range wins {
		wins[i] = (all[i] - own[i]) / n
	}
	for j := range losses {
		losses[j] = 1 - (all[len(positive)+j]-other[j])/m
	}
	area, varWins := meanVariance(wins)
	_, varLosses := meanVariance(losses)
	e := Estimate{value: area, measured: true, Lo: 0, Hi: 1, Level: level,
		N: len(positive) + len(negative), Method: method, Warnings: ws}
	if m < 2 || n < 2 {
		e.Warnings = append(ws, warn(TooFew, "a class with one score gives no standard error"))
		return e
	}
	e.SE = math.Sqrt(varWins/m + varLosses/n)
	if e.SE == 0 || area <= 0 || area >= 1 {
		e.Warnings = append(ws, warn(NoVariation, "all pairs of scores agree, so there is no standard error"))
		_, u := wilson(0, min(m, n), level)
		e.within(area-u*area, area+u*(1-area), 0, 1)
		return e
	}
	half := criticalZ(level) * e.SE / (area * (1 - area))
	logit := math.Log(area / (1 - area))
	e.within(logistic(logit-half), logistic(logit+half), 0, 1)
	return e
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// midranks returns the rank of every value from 1, ties sharing their mean rank.
func midranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	ranks := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			ranks[at] = float64(i+j+1) / 2
		}
		i = j
	}
	return ranks
}

// meanVariance returns the mean and the sample variance, 0 of one value.
func meanVariance(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(v)-1)
}
