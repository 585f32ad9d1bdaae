// Package compare compares arms on the same cases: the arms of a run with each
// other, or runs with each other.
//
// [Load] streams a run directory, finished, running or killed, into a [Table],
// which keeps a few bytes a trial. [Compare] pairs the trials of two arms by
// case and epoch and returns a [Report]: differences with intervals, tests that
// are adjusted for their number, what was dropped and why. [Report.Write] prints
// it.
//
//	t, err := compare.Load("runs/a", compare.LoadOptions{})
//	r, err := compare.Compare([]*compare.Table{t}, compare.Options{})
//	err = r.Write(os.Stdout, "table")
//
// The rates ([Metrics]) carry the names of the JSON of a run. RSR is not
// compared across arms: its denominator is what each arm let be written.
package compare
