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

// unlucky is how often another sample of the same settings does not pass all limits of a
// [Sample].
const unlucky = 0.01

// Sample writes a file of requirements that a finished run meets, each beside what it
// measured, and returns how many limits it has. A limit stands so far from its figure
// that with nothing changed another sample of as many cases passes all of them in 99% of
// cases. What so few cases hold to no limit has none. source says in the file where it
// is from.
func Sample(w io.Writer, t *compare.Table, confidence float64, source string) (limits int, err error) {
	if !t.Finished {
		return 0, problem("--init", "finish it with memtox run --resume --out "+t.Name,
			"%s is not finished: limits are chosen on the whole of a run", t.Name)
	}
	figures := figures(t)
	tail := unlucky / float64(max(len(figures), 1))
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
		text := f.metric + " " + f.limit(tail, confidence)
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
		fmt.Fprintf(&arms, "    # %s: no limit, the cases are too few to hold it to one\n", f.metric)
	}
	if limits == 0 {
		return 0, problem("--init", "run a defense on more cases", "%s has no figure that its cases hold to a limit",
			t.Name)
	}
	set := t.Run.Dataset.Name
	if v := t.Run.Dataset.Version; v != "" {
		set += "@" + v
	}
	_, err = fmt.Fprintf(w, sampleText, inert.Text(source), 100*confidence, legend.String(), scalar(set), confidence,
		arms.String())
	return limits, err
}

const sampleText = `# Limits for memtox gate, made by %s
#
# A check passes (exit code 0) where the %g%% bound of a figure meets its limit, fails (1)
# where the bound of the other side breaks it, and is inconclusive (4) between the two. So
# a limit stands away from what was measured, which is beside it: with nothing changed,
# another sample of as many cases passes all of these in 99%% of cases. More cases allow
# closer limits. Move a limit to where your own line is.
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

// limit is one that another sample of as many trials meets but for the tail, rounded
// outwards to a whole percent.
func (f *figure) limit(tail, confidence float64) string {
	limit, whole := 0., 1.
	if f.atLeast {
		limit = 1
	}
	for _, s := range f.sides {
		scale := s.per * float64(s.each)
		rate := stats.ClusteredClopperPearson(s.Families, stats.OneSided(confidence))
		n := int(rate.EffectiveN)
		hits := float64(rate.K) / float64(rate.N) * float64(n)
		worst, best, _ := stats.WorstCase(rate.K, rate.N, s.each*s.NotScored)
		if whole = s.per / 100; f.atLeast {
			k := n - again(float64(n)-hits, n, tail)
			limit = min(limit, scale*worst, scale*bounds(k, n, confidence).Lo)
		} else {
			limit = max(limit, scale*best, scale*bounds(again(hits, n, tail), n, confidence).Hi)
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

// again is how many hits n more trials stay at but for the tail, where n trials had so
// many: the quantile of the beta-binomial distribution that Jeffreys' prior predicts.
func again(hits float64, n int, tail float64) int {
	a, b := hits+0.5, float64(n)-hits+0.5
	beta := func(a, b float64) float64 {
		x, _ := math.Lgamma(a)
		y, _ := math.Lgamma(b)
		z, _ := math.Lgamma(a + b)
		return x + y - z
	}
	above := 0.
	for k := n; k > 0; k-- {
		above += math.Exp(beta(float64(k)+a, float64(n-k)+b) - beta(a, b) - math.Log(float64(n+1)) -
			beta(float64(k)+1, float64(n-k)+1))
		if above > tail {
			return k
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
