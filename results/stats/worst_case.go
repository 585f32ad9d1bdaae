package stats

// WorstCase returns between which values the rate of k successes in n scored
// trials could lie had the notScored trials been scored too: all of them
// failures, or all of them successes. They bound what missing trials can hide
// and hold no sampling error. ok is false, and the bounds 0 and 1, where there
// was no trial or a count is impossible.
//
// Source: C. F. Manski (1989), Anatomy of the selection problem, J. Human
// Resources 24:343–360.
func WorstCase(k, n, notScored int) (lo, hi float64, ok bool) {
	if !(Count{k, n}).valid() || notScored < 0 || notScored > maxTrials || n+notScored == 0 {
		return 0, 1, false
	}
	all := float64(n) + float64(notScored)
	return float64(k) / all, (float64(k) + float64(notScored)) / all, true
}
