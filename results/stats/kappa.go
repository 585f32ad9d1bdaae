package stats

import "math"

// Kappa returns Cohen's agreement beyond chance between two judges of the same
// texts: table[i][j] counts texts that the first put in category i and the
// second in category j. The interval is the large-sample one, cut at −1 and 1.
//
// Where the standard error is 0, as under full agreement, the interval comes
// from Wilson's for the share of agreement, with chance agreement as observed.
// Where both judges used a single category, the same one, agreement beyond
// chance does not exist and is not measured.
//
// Sources: J. Cohen (1960), A coefficient of agreement for nominal scales,
// Educ. Psychol. Meas. 20:37–46; J. L. Fleiss, J. Cohen, B. S. Everitt (1969),
// Large sample standard errors of kappa and weighted kappa, Psychol. Bull.
// 72:323–327.
func Kappa(table [][]int, level float64) Estimate {
	const method = "cohen-kappa"
	level, ws := checkLevel(level)
	n, bad := checkSquare(table)
	if bad != nil {
		return unmeasured(method, level, -1, 1, append(ws, bad...))
	}
	size := float64(n)
	share := func(i, j int) float64 { return float64(table[i][j]) / size }
	first, second := make([]float64, len(table)), make([]float64, len(table))
	for i := range table {
		for j := range table {
			first[i] += share(i, j)
			second[j] += share(i, j)
		}
	}
	var agree, chance float64
	for i := range table {
		agree += share(i, i)
		chance += first[i] * second[i]
	}
	if 1-chance < 1e-12 {
		return unmeasured(method, level, -1, 1, append(ws, warn(NoVariation,
			"both judges put all %d texts in one category; agreement beyond chance does not exist", n)))
	}
	e := Estimate{value: (agree - chance) / (1 - chance), measured: true, Level: level, N: n, Method: method, Warnings: ws}
	var sum float64
	for i := range table {
		for j := range table {
			if i == j {
				d := (1 - chance) - (first[i]+second[i])*(1-agree)
				sum += share(i, i) * d * d
			} else {
				d := (second[i] + first[j]) * (1 - agree)
				sum += share(i, j) * d * d
			}
		}
	}
	d := agree*chance - 2*chance + agree
	if spread := sum - d*d; spread > 1e-13*sum { // else it is rounding
		e.SE = math.Sqrt(spread/size) / ((1 - chance) * (1 - chance))
		half := criticalZ(level) * e.SE
		e.within(e.value-half, e.value+half, -1, 1)
		return e
	}
	e.Warnings = append(ws, warn(NoVariation, "the judges agree on %.4g of %d texts without variation; the interval is "+
		"that of the share of agreement", agree, n))
	lo, hi := wilson(min(agree, 1), size, level)
	e.within((lo-chance)/(1-chance), (hi-chance)/(1-chance), -1, 1)
	return e
}

func checkSquare(table [][]int) (n int, bad []Warning) {
	for i, row := range table {
		if len(row) != len(table) {
			return 0, warning(BadInput, "row %d of the agreement table has %d columns; a table of %d categories needs %d", i+1,
				len(row), len(table), len(table))
		}
		for _, v := range row {
			if v < 0 || v > maxTrials-n {
				return 0, warning(BadInput, "row %d of the agreement table counts %d texts", i+1, v)
			}
			n += v
		}
	}
	if n == 0 {
		return 0, warning(NotMeasured, "the judges have no text in common")
	}
	return n, nil
}
