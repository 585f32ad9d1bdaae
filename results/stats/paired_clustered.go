package stats

import "math"

// MinClusters is the number of clusters below which the t interval of a
// clustered difference is replaced by the bootstrap.
const MinClusters = 30

// A Cluster is the paired differences of one template family: N pairs of
// outcomes of arms A and B, and the sum of A's minus B's. Outcomes lie between
// 0 and 1; for binary ones Sum is A's successes minus B's. Repeats of a case
// are pairs of its family's cluster.
type Cluster struct {
	N   int
	Sum float64
}

// PairedDifference returns the mean paired difference A − B by
// [PairedClustered], or, under [MinClusters] clusters, by
// [PairedClusterBootstrap].
func PairedDifference(clusters []Cluster, level float64, seed uint64) Estimate {
	cs, _, _ := poolClusters(clusters)
	if len(cs) < MinClusters {
		return PairedClusterBootstrap(clusters, level, seed)
	}
	return PairedClustered(clusters, level)
}

// PairedClustered returns the mean paired difference A − B over all pairs, with
// the cluster-robust standard error
//
//	SE² = C/(C−1) · Σ_g (S_g − N_g·d)² / n²
//
// (S_g the sum, N_g the pairs of cluster g, d the mean, n all pairs) and a t
// interval on C−1 degrees of freedom, cut at −1 and 1. With one pair in every
// cluster it is the paired t interval.
//
// With one cluster the interval is [−1, 1]. Where all clusters have the same
// mean d the standard error is 0, which says nothing; then the interval is that
// of a new cluster that differs from d with a probability up to Wilson's upper
// bound of 0 in C.
//
// Sources: K.-Y. Liang, S. L. Zeger (1986), Longitudinal data analysis using
// generalized linear models, Biometrika 73:13–22; A. C. Cameron, D. L. Miller
// (2015), A practitioner's guide to cluster-robust inference, J. Human Resources
// 50:317–372, for C/(C−1) and t on C−1; E. Miller (2024), Adding error bars to
// evals, arXiv:2411.00640, for its use on model evaluations.
func PairedClustered(clusters []Cluster, level float64) Estimate {
	e, _, done := pairedMean(clusters, level, "paired-clustered-t")
	if done {
		return e
	}
	e.Warnings = append(e.Warnings, fewClusters(e.Clusters)...)
	half := criticalT(e.Level, e.DF) * e.SE
	e.within(e.value-half, e.value+half, -1, 1)
	return e
}

// fewClusters warns where no interval of clusters keeps its level.
func fewClusters(n int) []Warning {
	if n >= MinClusters {
		return nil
	}
	return []Warning{warn(FewClusters, "%d clusters: the interval may cover less often than its level under %d", n,
		MinClusters)}
}

// pairedMean returns the mean difference with its standard error. done means
// that there is no standard error and e already has its honest interval.
func pairedMean(clusters []Cluster, level float64, method string) (e Estimate, cs []Cluster, done bool) {
	level, ws := checkLevel(level)
	cs, n, bad := poolClusters(clusters)
	if bad != nil {
		return unmeasured(method, level, -1, 1, append(ws, bad...)), nil, true
	}
	var sum float64
	for _, c := range cs {
		sum += c.Sum
	}
	e = Estimate{value: sum / float64(n), measured: true, Lo: -1, Hi: 1,
		Level: level, N: n, Clusters: len(cs), Method: method}
	c := float64(len(cs))
	if len(cs) == 1 {
		e.Warnings = append(ws, warn(OneCluster, "all %d pairs are of one family; how families differ is unknown", n))
		return e, cs, true
	}
	var squares, largest float64
	for _, c := range cs {
		// Shares of n keep the terms in range and exact where all means agree.
		r := (c.Sum - float64(c.N)*e.value) / float64(n)
		squares += r * r
		largest = max(largest, math.Abs(r))
	}
	e.DF = c - 1
	if largest < 1e-14 { // rounding of equal means
		_, u := wilson(0, c, level)
		e.within(e.value-u*(1+e.value), e.value+u*(1-e.value), -1, 1)
		e.Warnings = append(ws, warn(NoVariation, "all %d clusters have the same difference; the interval allows for "+
			"clusters unlike them", len(cs)))
		return e, cs, true
	}
	e.SE = math.Sqrt(c / (c - 1) * squares)
	e.Warnings = ws
	return e, cs, false
}

// poolClusters drops clusters without pairs. bad says why nothing is left.
func poolClusters(clusters []Cluster) (cs []Cluster, n int, bad []Warning) {
	cs = make([]Cluster, 0, len(clusters))
	for _, c := range clusters {
		if c.N < 0 || c.N > maxTrials || n+c.N > maxTrials || !(math.Abs(c.Sum) <= float64(c.N)) {
			return nil, 0, warning(BadInput, "a cluster of %d pairs cannot have differences that add up to %v", c.N, c.Sum)
		}
		if c.N > 0 {
			cs = append(cs, c)
			n += c.N
		}
	}
	if n == 0 {
		return nil, 0, warning(NotMeasured, "the arms have no pair in common")
	}
	return cs, n, nil
}
