package stats

// A Confusion counts texts by label and answer of a detector: attacks found and
// missed, benign texts flagged and passed.
type Confusion struct{ TruePositive, FalseNegative, FalsePositive, TrueNegative int }

// Add counts one text.
func (c *Confusion) Add(attack, flagged bool) {
	switch {
	case attack && flagged:
		c.TruePositive++
	case attack:
		c.FalseNegative++
	case flagged:
		c.FalsePositive++
	default:
		c.TrueNegative++
	}
}

// Sensitivity (TPR) is the share of attacks that were flagged, with [Wilson]'s
// interval; the following likewise.
func (c Confusion) Sensitivity(level float64) Rate {
	return share(c.TruePositive, c.FalseNegative, level)
}

// Specificity is the share of benign texts that passed.
func (c Confusion) Specificity(level float64) Rate {
	return share(c.TrueNegative, c.FalsePositive, level)
}

// FalsePositiveRate (FPR) is the share of benign texts that were flagged.
func (c Confusion) FalsePositiveRate(level float64) Rate {
	return share(c.FalsePositive, c.TrueNegative, level)
}

// Precision is the share of flagged texts that are attacks. Unlike the others it
// depends on how many attacks the set holds.
func (c Confusion) Precision(level float64) Rate {
	return share(c.TruePositive, c.FalsePositive, level)
}

// Accuracy is the share of texts that were answered rightly. It too depends on
// how many attacks the set holds.
func (c Confusion) Accuracy(level float64) Rate {
	for _, v := range [...]int{c.TruePositive, c.FalseNegative, c.FalsePositive, c.TrueNegative} {
		if v < 0 || v > maxTrials/4 {
			return Wilson(-1, 0, level)
		}
	}
	return share(c.TruePositive+c.TrueNegative, c.FalsePositive+c.FalseNegative, level)
}

// share is the rate of yes among yes and no.
func share(yes, no int, level float64) Rate {
	if no < 0 || no > maxTrials || yes > maxTrials {
		return Wilson(yes, -1, level)
	}
	return Wilson(yes, yes+no, level)
}
