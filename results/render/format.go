package render

import (
	"fmt"
	"math"
	"strings"

	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// NotMeasured stands where there is no figure.
const NotMeasured = "not measured"

// Rate is "1234/1620 76.2% [70.1, 81.0]", or "not measured".
func Rate(r stats.Rate) string {
	if !r.Measured() {
		return NotMeasured
	}
	return fmt.Sprintf("%s [%s, %s]", Share(r), Percent(r.Lo), Percent(r.Hi))
}

// Share is a rate without its interval: "1234/1620 76.2%", or "0/0 not measured".
func Share(r stats.Rate) string {
	v, ok := r.Value()
	if !ok {
		return "0/0 " + NotMeasured
	}
	return fmt.Sprintf("%d/%d %s%%", r.K, r.N, Percent(v))
}

// Percent is a share of one in percent, with one decimal. What is not 0 or 100 percent
// is never rounded to it: 1 of 3,240 is <0.1, not 0.0.
func Percent(v float64) string {
	switch s := fmt.Sprintf("%.1f", 100*v); {
	case v > 0 && s == "0.0":
		return "<0.1"
	case v < 1 && s == "100.0":
		return ">99.9"
	default:
		return s
	}
}

// figure is a rate as tables have it, or the figure that it stands for.
func figure(m *metric.Metric, r stats.Rate) string {
	if m.Shown == nil {
		return Rate(r)
	}
	s := summary.ScoreOf(m, r)
	return score(s.Value, s.Lo, s.Hi)
}

// score is "0.842 [0.771, 0.901]".
func score(v, lo, hi *float64) string {
	if v == nil || lo == nil || hi == nil {
		return NotMeasured
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", *v, *lo, *hi)
}

// latency is "1.2/3.4/9.8 µs" of p50, p95, p99 and, where there is one, the maximum; in
// milliseconds where p99 has ten or more.
func latency(l summary.Latency) string {
	if l.P50 == nil || l.P95 == nil || l.P99 == nil {
		return NotMeasured
	}
	unit, by := "µs", 1.0
	if *l.P99 >= 10_000 {
		unit, by = "ms", 1000
	}
	var parts []string
	for _, v := range []*float64{l.P50, l.P95, l.P99, l.Max} {
		switch {
		case v == nil:
		case math.Abs(*v/by) < 10:
			parts = append(parts, fmt.Sprintf("%.1f", *v/by))
		default:
			parts = append(parts, fmt.Sprintf("%.0f", *v/by))
		}
	}
	return strings.Join(parts, "/") + " " + unit
}

func thousands(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count(n any, what string) string {
	s := thousands(n)
	if s != "1" {
		what += "s"
	}
	return s + " " + what
}
