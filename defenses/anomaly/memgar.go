package anomaly

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Memgar's defaults.
const (
	MemgarZ               = 3.0
	MemgarK               = 5
	MemgarQuantile        = 0.95
	MemgarMinObservations = 20
	memgarWindow          = 200 // vectors that a cluster remembers
	memgarHistory         = 500 // mean neighbour distances that a cluster remembers
	memgarLeastHistory    = 20  // before there is a density threshold
)

// Memgar is memgar's detector (memgar/embedding_anomaly.py), float for float:
// sums run from left to right in double precision. The zero value is not usable;
// see [NewMemgar]. It is not safe for concurrent use.
type Memgar struct {
	Z               float64
	K               int
	Quantile        float64
	MinObservations int
	clusters        map[string]*memgarCluster
}

type memgarCluster struct {
	count    int
	centroid []float64
	mean, m2 float64 // Welford's running mean and sum of squares of the distances
	samples  [][]float64
	history  []float64
}

// NewMemgar returns a detector with memgar's defaults and no baseline.
func NewMemgar() *Memgar {
	return &Memgar{Z: MemgarZ, K: MemgarK, Quantile: MemgarQuantile, MinObservations: MemgarMinObservations,
		clusters: make(map[string]*memgarCluster)}
}

// MemgarVerdict is memgar's answer about one vector. Neighbour is the mean
// distance to the nearest neighbours; it is NaN where there are none. Collision
// names the nearer cluster, or is empty.
type MemgarVerdict struct {
	Cluster          string
	CentroidDistance float64
	Z                float64
	Outlier          bool
	Neighbour        float64
	Sparse           bool
	Collision        string
	Severity         string // none, low, medium, high
	Explanation      string
	Insufficient     bool // too small a baseline: nothing was judged
}

// Observe adds a vector to a cluster's baseline.
func (m *Memgar) Observe(v []float64, cluster string) {
	c := m.clusters[cluster]
	if c == nil {
		c = &memgarCluster{}
		m.clusters[cluster] = c
	}
	c.count++
	if c.centroid == nil {
		c.centroid = slices.Clone(v)
	} else {
		for i := range min(len(c.centroid), len(v)) {
			c.centroid[i] += (v[i] - c.centroid[i]) / float64(c.count)
		}
	}
	d := cosineDistance(v, c.centroid)
	delta := d - c.mean
	c.mean += delta / float64(c.count)
	c.m2 += delta * (d - c.mean)
	if c.samples = append(c.samples, slices.Clone(v)); len(c.samples) > memgarWindow {
		c.samples = c.samples[1:]
	}
	if near := c.neighbours(v, m.K); !math.IsNaN(near) {
		if c.history = append(c.history, near); len(c.history) > memgarHistory {
			c.history = c.history[1:]
		}
	}
}

// Score judges a vector that is declared to be of a cluster, and compares it
// with other clusters.
func (m *Memgar) Score(v []float64, cluster string, compare ...string) MemgarVerdict {
	out := MemgarVerdict{Cluster: cluster, Severity: "none", Neighbour: math.NaN()}
	c := m.clusters[cluster]
	have := 0
	if c != nil {
		have = c.count
	}
	if have < m.MinObservations {
		out.Insufficient = true
		out.Explanation = fmt.Sprintf("insufficient baseline (have %d, need %d); skipping scoring", have, m.MinObservations)
		return out
	}
	out.CentroidDistance = cosineDistance(v, c.centroid)
	if sd := c.stddev(); sd > 0 {
		out.Z = (out.CentroidDistance - c.mean) / sd
	}
	out.Outlier = out.Z >= m.Z
	out.Neighbour = c.neighbours(v, m.K)
	if t, ok := c.threshold(m.Quantile); ok && !math.IsNaN(out.Neighbour) {
		out.Sparse = out.Neighbour > t
	}
	nearest := out.Neighbour
	for _, name := range compare {
		other := m.clusters[name]
		if name == cluster || other == nil {
			continue
		}
		if d := other.neighbours(v, m.K); d < nearest {
			nearest, out.Collision = d, name
		}
	}
	var why []string
	if out.Outlier {
		why = append(why, fmt.Sprintf("centroid-distance z-score=%.2f", out.Z))
	}
	if out.Sparse {
		why = append(why, "sparse local neighborhood (k-NN density anomaly)")
	}
	if out.Collision != "" {
		why = append(why, fmt.Sprintf("closer to cluster '%s' than declared cluster", out.Collision))
	}
	out.Explanation = strings.Join(why, "; ")
	switch {
	case out.Outlier && out.Sparse:
		out.Severity = "high"
	case out.Outlier || out.Collision != "":
		out.Severity = "medium"
	case out.Sparse:
		out.Severity = "low"
	default:
		out.Explanation = "within normal embedding-space envelope"
	}
	return out
}

func (c *memgarCluster) stddev() float64 {
	if c.count < 2 {
		return 0
	}
	return math.Sqrt(c.m2 / float64(c.count-1))
}

// threshold is memgar's quantile of the mean neighbour distances, and whether
// there are enough of them.
func (c *memgarCluster) threshold(q float64) (float64, bool) {
	if len(c.history) < memgarLeastHistory {
		return 0, false
	}
	s := slices.Clone(c.history)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1))], true
}

// neighbours is the mean distance to the k nearest remembered vectors; NaN where
// there are none.
func (c *memgarCluster) neighbours(v []float64, k int) float64 {
	if len(c.samples) == 0 || k < 1 {
		return math.NaN()
	}
	d := make([]float64, len(c.samples))
	for i, s := range c.samples {
		d[i] = cosineDistance(v, s)
	}
	slices.Sort(d)
	d = d[:min(k, len(d))]
	sum := 0.0
	for _, x := range d {
		sum += x
	}
	return sum / float64(len(d))
}

// cosineDistance is one minus the cosine; 1 where either vector is zero. Of
// vectors of different lengths only the common part meets, but each is
// normalised by all of it.
func cosineDistance(a, b []float64) float64 {
	var dot, aa, bb float64
	for i := range min(len(a), len(b)) {
		dot += a[i] * b[i]
	}
	for _, x := range a {
		aa += x * x
	}
	for _, x := range b {
		bb += x * x
	}
	if aa == 0 || bb == 0 {
		return 1
	}
	return 1 - dot/(math.Sqrt(aa)*math.Sqrt(bb))
}
