package anomaly

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/memtox/memtox/agents/memory"
)

// baseline is what ordinary records look like. It is fitted once a run and
// never changes.
type baseline struct {
	opts   Options
	dim    int
	rows   []float32 // n vectors of length 1, one after another
	n      int
	center []float32 // their mean, scaled to length 1

	// The same statistic for every baseline record against the others, sorted:
	// what is ordinary for a record that the baseline has not seen.
	distances []float64
	sparsity  []float64
	mean, sd  float64 // of distances

	cluster []memory.Class // of each row
	margins map[memory.Class][]float64
}

// fit calibrates the signals on the vectors of records by leaving each out in turn.
func fit(opts Options, records []memory.Record, vectors [][]float32) *baseline {
	b := &baseline{opts: opts, margins: make(map[memory.Class][]float64)}
	for i, v := range vectors {
		if b.dim == 0 {
			b.dim = len(v)
		}
		if len(v) != b.dim || !unit(v) {
			continue
		}
		b.rows = append(b.rows, v...)
		b.cluster = append(b.cluster, records[i].Origin.Class)
		b.n++
	}
	if b.n < opts.MinObservations {
		return b
	}
	sum := make([]float64, b.dim)
	for i := range b.n {
		for j, x := range b.row(i) {
			sum[j] += float64(x)
		}
	}
	b.center = scaled(sum)
	rest := make([]float64, b.dim)
	sims := make([]float32, b.n)
	for i := range b.n {
		v := b.row(i)
		for j := range rest {
			rest[j] = sum[j] - float64(v[j])
		}
		b.distances = append(b.distances, distance(v, scaled(rest)))
		b.similarities(v, sims)
		sims[i] = -2 // not its own neighbour
		b.sparsity = append(b.sparsity, b.sparse(sims, nil, -1))
	}
	for i := range b.n {
		b.similarities(b.row(i), sims)
		sims[i] = -2
		if m, ok := b.margin(sims, b.cluster[i]); ok {
			b.margins[b.cluster[i]] = append(b.margins[b.cluster[i]], m)
		}
	}
	b.mean, b.sd = moments(b.distances)
	slices.Sort(b.distances)
	slices.Sort(b.sparsity)
	for _, m := range b.margins {
		slices.Sort(m)
	}
	return b
}

// sample takes at most n records, evenly spread over the list.
func sample(all []memory.Record, n int) []memory.Record {
	if len(all) <= n {
		return all
	}
	out := make([]memory.Record, 0, n)
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}

func (b *baseline) row(i int) []float32 { return b.rows[i*b.dim : (i+1)*b.dim] }

// similarities fills dst with the cosines of v with every row.
func (b *baseline) similarities(v, dst []float32) {
	x := blas32.Vector{N: b.dim, Inc: 1, Data: v}
	for i := range b.n {
		dst[i] = blas32.Dot(x, blas32.Vector{N: b.dim, Inc: 1, Data: b.row(i)})
	}
}

// sparse is the mean cosine distance to the k nearest of the rows and of the
// extra vectors' similarities; class −1 takes every row, another only its own.
func (b *baseline) sparse(sims, extra []float32, class int) float64 {
	var best [maxK]float32
	k := b.opts.K
	top := best[:k]
	for i := range top {
		top[i] = -2
	}
	push := func(s float32) {
		if s <= top[k-1] {
			return
		}
		j := k - 1
		for j > 0 && top[j-1] < s {
			top[j] = top[j-1]
			j--
		}
		top[j] = s
	}
	for i, s := range sims {
		if class < 0 || int(b.cluster[i]) == class {
			push(s)
		}
	}
	for _, s := range extra {
		push(s)
	}
	sum, n := 0.0, 0
	for _, s := range top {
		if s > -2 {
			sum += 1 - float64(s)
			n++
		}
	}
	if n == 0 {
		return 2
	}
	return sum / float64(n)
}

// margin is how much nearer the record is to some other cluster than to its
// own: positive where another is nearer. ok is false where its own cluster, or
// every other one, is too small to tell.
func (b *baseline) margin(sims []float32, own memory.Class) (float64, bool) {
	var count [4]int
	for _, c := range b.cluster {
		count[c&3]++
	}
	if count[own&3] < b.opts.MinObservations {
		return 0, false
	}
	here := b.sparse(sims, nil, int(own))
	nearest, ok := math.Inf(1), false
	for c := range count {
		if c != int(own) && count[c] >= b.opts.MinObservations {
			nearest, ok = min(nearest, b.sparse(sims, nil, c)), true
		}
	}
	return here - nearest, ok
}

// beyond reports whether x lies beyond the calibrated quantile: fewer than a
// share of 1−Quantile of ordinary records, itself included, are as extreme. For
// records like the baseline's the share of false alarms is at most 1−Quantile,
// whatever the dimension (split conformal prediction, Vovk et al. 2005).
func (b *baseline) beyond(sorted []float64, x float64) bool {
	if len(sorted) == 0 {
		return false
	}
	i, _ := slices.BinarySearch(sorted, x)
	asExtreme := len(sorted) - i
	return float64(1+asExtreme)/float64(1+len(sorted)) <= 1-b.opts.Quantile
}

func unit(v []float32) bool {
	var s float64
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return s > 0.5 && !math.IsInf(s, 0)
}

func scaled(sum []float64) []float32 {
	var s float64
	for _, x := range sum {
		s += x * x
	}
	out := make([]float32, len(sum))
	if s == 0 {
		return out
	}
	s = math.Sqrt(s)
	for i, x := range sum {
		out[i] = float32(x / s)
	}
	return out
}

func distance(a, b []float32) float64 {
	return 1 - float64(blas32.Dot(blas32.Vector{N: len(a), Inc: 1, Data: a}, blas32.Vector{N: len(b), Inc: 1, Data: b}))
}

func moments(xs []float64) (mean, sd float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	for _, x := range xs {
		sd += (x - mean) * (x - mean)
	}
	if len(xs) > 1 {
		sd = math.Sqrt(sd / float64(len(xs)-1))
	}
	return mean, sd
}
