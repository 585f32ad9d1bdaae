// Package gate decides whether a run is good enough, for CI.
//
// A [Requirement] is a limit on a rate, a count or a latency of an arm; a
// baseline is a run that the new one must not be worse than by a margin, or,
// where everything is deterministic, must repeat exactly. [Evaluate] judges them
// all and returns a [Result], which prints as text, JSON, Markdown, JUnit XML,
// SARIF and GitHub annotations.
//
// # What the outcomes mean
//
// Nothing is judged by a point estimate: "TPR ≥ 0.90" with a true rate of 0.92
// and 100 cases would go red 17.6% of the time. A check passes where a one-sided
// confidence bound meets the requirement, fails where the bound of the other
// side breaks it, and is inconclusive between the two: more cases are needed, or
// a limit further from the true rate. The gate fails if any check fails, else it
// is inconclusive if any check is, else it passes.
//
// With confidence 0.95, which is the default:
//
//   - when every requirement is truly met, the gate goes red in at most 5% of
//     runs, however many checks it has (the bound that must be broken is taken
//     at 1 − 0.05/m for m checks, after Bonferroni);
//   - when some requirement is truly broken, the gate goes green in at most 5%
//     of runs (it must pass every check, so no adjustment is needed).
//
// The bounds are Clopper–Pearson's on the effective number of trials where a
// rate is held against a limit, and those of the paired difference where it is
// held against a baseline. Template families count as clusters; under some 30
// families the levels are approximate.
//
// An arm whose every case ended exactly as in the baseline, under a model that is
// deterministic, is not worse than it on these cases, and passes.
//
// Trials that were not scored, and trials of the plan that a run has not come to
// yet, count for neither side, but a check is conclusive only if it would be so
// whatever their outcome. Hence a run without scored trials never passes.
package gate
