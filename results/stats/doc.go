// Package stats turns counts and measurements into numbers that can be
// trusted: every rate carries its interval, every comparison its method, and
// everything that could not be computed says so.
//
// # Where to start
//
// A rate is k successes of n trials. [Wilson] gives its interval when trials
// are independent. Cases made from one template are not, so a rate over
// template families is given by [ClusteredWilson]:
//
//	families := []stats.Count{{K: 9, N: 10}, {K: 4, N: 10}, {K: 7, N: 10}, {K: 8, N: 10}}
//	r := stats.ClusteredWilson(families, stats.DefaultLevel)
//	fmt.Println(r) // 28/40 70.0% [35.1%, 90.9%]
//	if v, ok := r.Value(); ok { … }
//
// # What is here, by question
//
//   - How large is a rate? [Wilson], [ClusteredWilson]; [ClusteredClopperPearson]
//     for claims that others will quote; [WorstCase] for trials that were not
//     scored.
//   - Do two arms on the same cases differ? [McNemar] with [Newcombe] where
//     cases are independent and run once; with families or repeats
//     [PairedDifference], which takes the t interval of [PairedClustered] or,
//     under [MinClusters] clusters, [PairedClusterBootstrap], and [SignFlip].
//   - Is an arm worse than its baseline by less than a margin? [NonInferior].
//   - Several comparisons at once? [Holm] where they were declared,
//     [BenjaminiHochberg] where they were explored.
//   - How small a difference can a run see? [MinimumDetectableEffect].
//   - How long does it take? [Sketch] gives quantiles, and the difference of two
//     arms, in bounded memory.
//   - Unpaired arms, scores, judges: [NewcombeIndependent], [AUC], [Kappa].
//
// # Rules that hold everywhere
//
// Functions are pure: the same arguments give the same result. What needs
// randomness takes a seed. Results are plain proportions ([Rate]), other numbers
// ([Estimate]) or p-values ([Test]). A level is the two-sided confidence level, between
// 0 and 1; the zero level stands for [DefaultLevel]. For a one-sided bound
// give [OneSided] of its level and use one end of the interval.
//
// Nothing panics on odd input and no result is a silent NaN. What could not be
// measured says so (Measured is false, Value's ok is false, JSON is null), and
// what was measured on thin ground carries a [Warning].
package stats
