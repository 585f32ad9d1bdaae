package stats

import "fmt"

// A Warning qualifies a result. It never changes the numbers it comes with.
type Warning struct {
	// Code is stable and meant for programs.
	Code WarningCode
	// Text is a sentence fragment for people; it holds the figures.
	Text string
}

// String returns the text.
func (w Warning) String() string { return w.Text }

// A WarningCode names a kind of Warning.
type WarningCode string

const (
	// NotMeasured: there were no observations, so there is no number.
	NotMeasured WarningCode = "not-measured"
	// BadInput: arguments contradict each other or are not numbers. The result
	// is not measured, except for a bad level, which is replaced.
	BadInput WarningCode = "bad-input"
	// OneCluster: all observations come from one cluster, so nothing is known
	// about how clusters differ.
	OneCluster WarningCode = "one-cluster"
	// FewClusters: there are fewer clusters than the method needs for its
	// nominal level.
	FewClusters WarningCode = "few-clusters"
	// UnequalClusters: cluster sizes differ so much that the effective sample
	// size, which uses their mean, is too large.
	UnequalClusters WarningCode = "unequal-clusters"
	// TooFew: there are too few observations for a bounded interval or a
	// meaningful test.
	TooFew WarningCode = "too-few"
	// NoVariation: all observations agree, so their spread tells nothing about
	// the error of the estimate.
	NoVariation WarningCode = "no-variation"
	// Approximate: the result is approximate in a way that the text states.
	Approximate WarningCode = "approximate"
)

// warning is the only one of a result.
func warning(code WarningCode, format string, args ...any) []Warning {
	return []Warning{warn(code, format, args...)}
}

func warn(code WarningCode, format string, args ...any) Warning {
	return Warning{Code: code, Text: fmt.Sprintf(format, args...)}
}
