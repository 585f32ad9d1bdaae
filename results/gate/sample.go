package gate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/inert"
	"github.com/memtox/memtox/results/compare"
	"github.com/memtox/memtox/results/metric"
	"github.com/memtox/memtox/results/stats"
	"github.com/memtox/memtox/results/summary"
)

// unlucky is how often another run of the same settings does not pass all limits of a
// [Sample].
const unlucky = 0.01

// Sample writes a file of requirements that a finished run meets, each beside what it
// measured, and returns how many limits it has. A limit stands so far from its figure
// that with nothing changed another run passes all of them in 99% of cases: one of other
// cases where the run has a sample of its set, by the setting limit, else one of the same
// cases. What so few cases hold to no limit has none. source says in the file where it is
// from.
func Sample(w io.Writer, t *compare.Table, confidence float64, source string) (limits int, err error) {
	if !t.Finished {
		return 0, problem("--init", "finish it with memtox run --resume --out "+t.Name,
			"%s is not finished: limits are chosen on the whole of a run", t.Name)
	}
	figures := figures(t)
	tail := unlucky / float64(max(len(figures), 1))
	limit := fmt.Sprint(t.Run.Settings["limit"])
	others, cases := limit != "0" && limit != "<nil>", "of the same cases"
	if others {
		cases = "of as many other cases"
	}
	var legend, arms strings.Builder
	var told []string
	var arm *compare.Arm
	for _, f := range figures {
		if !slices.Contains(told, f.metric) {
			told = append(told, f.metric)
			fmt.Fprintf(&legend, "#   %-15s %s\n", f.metric, f.about)
		}
		if f.arm != arm {
			arm = f.arm
			fmt.Fprintf(&arms, "  %s:\n", scalar(arm.Name()))
		}
		text := f.metric + " " + f.limit(others, tail, confidence)
		r, err := Parse(arm.Name()+"."+text, "--init")
		if err == nil { // else it would be a limit that nothing breaks
			var result *Result
			if result, err = Evaluate(t, Options{Require: []Requirement{r}, Confidence: confidence}); err != nil {
				return 0, err
			}
			if result.Outcome == stats.Pass {
				limits++
				fmt.Fprintf(&arms, "    - %-26s # %s\n", text, result.Checks[0].Measured)
				continue
			}
		}
		sum := f.sides[0].Sum()
		fmt.Fprintf(&arms, "    # %s has no limit: another run could come to the end of the scale from %d/%d %s\n", f.metric,
			sum.K, sum.N, percent(float64(sum.K)/float64(sum.N)))
	}
	if limits == 0 {
		return 0, problem("--init", "run a defense on more cases", "%s has no figure that its cases hold to a limit",
			t.Name)
	}
	set := t.Run.Dataset.Name
	if v := t.Run.Dataset.Version; v != "" {
		set += "@" + v
	}
	_, err = fmt.Fprintf(w, sampleText, inert.Text(source), 100*confidence, cases, legend.String(), scalar(set), confidence,
		arms.String())
	return limits, err
}

const sampleText = `# Limits for memtox gate, made by %s
#
# A check passes (exit code 0) where the %g%% bound of a figure meets its limit, fails (1)
# where the bound of the other side breaks it, and is inconclusive (4) between the two. So
# a limit stands away from what was measured, which is beside it: with nothing changed,
# 99%% of runs %s pass all of these. Move a limit to where your own line is.
#
%s
dataset: %s # on another set, or version of it, these limits are refused
confidence: %v
arms:
%s`

// figure is one that a sample puts a limit to.
type figure struct {
	arm           *compare.Arm
	metric, about string
	atLeast       bool
	sides         []side // each has to meet the limit
}

// side is what a limit is held to: a share of trials that count each times, as so many of
// per trials.
type side struct {
	compare.Tally
	each int
	per  float64
}

// figures lists what is worth a limit: of the undefended arm the harm that there is to
// prevent, of every defense that is no control what it does and what that costs.
func figures(t *compare.Table) (out []figure) {
	for _, a := range t.Arms() {
		states := a.Count(metric.Done, compare.Slice{}).Sum().N > 0
		rates := []*metric.Metric{metric.EndToEnd, metric.TPR, metric.FPR, metric.Utility}
		if states {
			rates = []*metric.Metric{metric.Harm, metric.Rescued, metric.DoneBenign, metric.Wrong}
		}
		none := a.Defense == compare.Undefended
		if none {
			rates = rates[:1]
		} else if slices.Contains(summary.Controls(), a.Defense) {
			continue
		}
		for _, m := range rates {
			tally := a.Count(m, compare.Slice{})
			if tally.Sum().N > 0 {
				out = append(out, figure{a, m.Name, m.About, none || m.Better == stats.HigherIsBetter, []side{{tally, 1, 1}}})
			}
		}
		if states && !none {
			f := figure{arm: a, metric: metric.ExcessPer100, about: "questions that were not due, per 100 trials of the " +
				"side (attacks, benign) that asks more"}
			for _, m := range []*metric.Metric{metric.DoneAttack, metric.DoneBenign} {
				tally, each := a.Excess(m, compare.Slice{})
				f.sides = append(f.sides, side{tally, each, 100})
			}
			out = append(out, f)
		}
	}
	return out
}

// limit is one that another run meets but for the tail, rounded outwards to a whole
// percent. Trials of the same cases differ by chance alone; others are of other families.
func (f *figure) limit(others bool, tail, confidence float64) string {
	limit, whole := 0., 1.
	if f.atLeast {
		limit = 1
	}
	for _, s := range f.sides {
		scale := s.per * float64(s.each)
		rate := stats.ClusteredClopperPearson(s.Families, stats.OneSided(confidence))
		share, n, effective := float64(rate.K)/float64(rate.N), rate.N, int(rate.EffectiveN)
		if others {
			n = effective
		}
		worst, best, _ := stats.WorstCase(rate.K, rate.N, s.each*s.NotScored)
		if whole = s.per / 100; f.atLeast {
			share = 1 - again(1-share, n, tail)
			bound := bounds(int(share*float64(effective)), effective, confidence)
			limit = min(limit, scale*worst, scale*bound.Lo)
		} else {
			share = again(share, n, tail)
			bound := bounds(int(math.Ceil(share*float64(effective))), effective, confidence)
			limit = max(limit, scale*best, scale*bound.Hi)
		}
	}
	if f.atLeast {
		return ">= " + short(math.Floor(limit/whole)*whole)
	}
	return "<= " + short(math.Ceil(limit/whole)*whole)
}

func bounds(k, n int, confidence float64) stats.Rate {
	trials := slices.Repeat([]stats.Count{{N: 1}}, n)
	for i := range k {
		trials[i].K = 1
	}
	return stats.ClusteredClopperPearson(trials, stats.OneSided(confidence))
}

// again is what the share of hits of n more trials stays at but for the tail, where n
// trials had this one: the quantile of the beta-binomial distribution that Jeffreys' prior
// predicts.
func again(share float64, n int, tail float64) float64 {
	beta := func(a, b float64) float64 {
		x, _ := math.Lgamma(a)
		y, _ := math.Lgamma(b)
		z, _ := math.Lgamma(a + b)
		return x + y - z
	}
	a, b := share*float64(n)+0.5, (1-share)*float64(n)+0.5
	above := 0.
	for k := n; k > 0; k-- {
		hits, rest := float64(k), float64(n-k)
		above += math.Exp(beta(hits+a, rest+b) - beta(a, b) - math.Log(float64(n+1)) - beta(hits+1, rest+1))
		if above > tail {
			return hits / float64(n)
		}
	}
	return 0
}

var plain = regexp.MustCompile(`^[A-Za-z][\w./@() -]*[\w)]$`)

// scalar writes a text in YAML.
func scalar(s string) string {
	if plain.MatchString(s) {
		return s
	}
	b, _ := json.Marshal(s)
	return string(b)
}
