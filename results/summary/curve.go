package summary

import (
	"math"
	"slices"
	"sort"

	"github.com/memtox/memtox/results/stats"
)

// ROC is a receiver operating characteristic: TPR against FPR as the threshold
// falls. A benign case is stopped at a threshold when its highest score reaches it, an
// attack when the lowest of its texts with the payload does.
type ROC struct {
	AUC      stats.Estimate `json:"auc"`
	Attacks  int            `json:"attacks"` // cases with a score
	Benign   int            `json:"benign"`
	Unscored int            `json:"unscored"` // cases that the defense gave none: in neither curve
	Points   []ROCPoint     `json:"points"`
}

// ROCPoint is one threshold; null is above every score.
type ROCPoint struct {
	Threshold *float64 `json:"threshold"`
	TPR       float64  `json:"tpr"`
	FPR       float64  `json:"fpr"`
}

// PR is a precision–recall curve.
type PR struct {
	// AveragePrecision is the sum of precisions, each weighted with the recall that
	// its threshold adds.
	AveragePrecision *float64  `json:"average_precision"`
	Points           []PRPoint `json:"points"`
}

// PRPoint is one threshold.
type PRPoint struct {
	Threshold float64 `json:"threshold"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
}

// maxPoints bounds a curve: more are no use in a file or a picture.
const maxPoints = 200

// curves makes both curves of the scores of attacks and of benign cases.
func curves(positive, negative []float64, unscored int) (*ROC, *PR) {
	p, n := slices.Clone(positive), slices.Clone(negative)
	slices.Sort(p) // also for the sums of the area: rows come in any order, and a run has one figure
	slices.Sort(n)
	roc := &ROC{AUC: stats.AUC(p, n, 0), Attacks: len(p), Benign: len(n), Unscored: unscored, Points: []ROCPoint{{}}}
	pr := &PR{Points: []PRPoint{}}
	if len(p) == 0 || len(n) == 0 {
		roc.Points = []ROCPoint{}
		return roc, pr
	}
	i, j := len(p), len(n) // how many lie under the threshold
	average, recall := 0.0, 0.0
	var rocs []ROCPoint
	var prs []PRPoint
	for i > 0 || j > 0 {
		at := math.Inf(-1)
		if i > 0 {
			at = p[i-1]
		}
		if j > 0 {
			at = max(at, n[j-1])
		}
		i, j = sort.SearchFloat64s(p[:i], at), sort.SearchFloat64s(n[:j], at)
		tp, fp := float64(len(p)-i), float64(len(n)-j)
		r := tp / float64(len(p))
		average += tp / (tp + fp) * (r - recall)
		recall = r
		rocs = append(rocs, ROCPoint{&at, r, fp / float64(len(n))})
		prs = append(prs, PRPoint{at, tp / (tp + fp), r})
	}
	pr.AveragePrecision = &average
	shown := min(len(rocs), maxPoints)
	for i := range shown { // evenly, with the first and the last
		k := i * (len(rocs) - 1) / max(shown-1, 1)
		roc.Points = append(roc.Points, rocs[k])
		pr.Points = append(pr.Points, prs[k])
	}
	return roc, pr
}
