package metric

import "github.com/memtox/memtox/results"

// ExcessPer100 names the questions that were not due, per 100 trials of the side
// (attacks, benign cases) that has more of them. It is no share: a trial may ask
// several times.
const ExcessPer100 = "excess_per_100"

// Excess returns how many of a trial's questions were not due; ok is false where its
// outcome is no state.
func Excess(t *results.Trial) (n int, ok bool) {
	return max(0, int(t.Asked)-int(t.Due)), t.Status == results.Scored && t.Done != nil
}
