package stats

import "gonum.org/v1/gonum/stat/distuv"

// DefaultLevel is the two-sided confidence level used when a level is zero.
const DefaultLevel = 0.95

// OneSided returns the two-sided level whose interval has one-sided bounds of
// the given level at each end: the upper end of a 90% interval is a 95% upper
// bound. The level is above 0.5 and below 1; the zero level stands for
// [DefaultLevel]. Any other level gives a level that every interval of this
// package refuses with a warning.
func OneSided(level float64) float64 {
	if level == 0 {
		level = DefaultLevel
	}
	if !(level > 0.5 && level < 1) {
		return -1
	}
	return 2*level - 1
}

// checkLevel replaces the zero level by the default, and so, with a warning,
// any level that is none.
func checkLevel(level float64) (float64, []Warning) {
	if level == 0 {
		return DefaultLevel, nil
	}
	if level > 0 && level < 1 {
		return level, nil
	}
	return DefaultLevel, []Warning{warn(BadInput,
		"confidence level %v is not between 0 and 1; %v is used", level, DefaultLevel)}
}

// criticalZ is the half width, in standard errors, of a normal interval. The
// lower tail is used because 1-level loses no digits where level is near 1.
func criticalZ(level float64) float64 { return -distuv.UnitNormal.Quantile((1 - level) / 2) }

// criticalT is criticalZ for Student's t with df degrees of freedom.
func criticalT(level, df float64) float64 {
	return -distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile((1 - level) / 2)
}
