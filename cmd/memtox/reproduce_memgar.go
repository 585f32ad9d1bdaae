package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/memtox/memtox/defenses/anomaly"
	"github.com/memtox/memtox/results/reproduce"
	"github.com/memtox/memtox/results/stats"
)

// memgarAnomaly asks memgar's detector, as its code behaves, about vectors from
// the very distribution that its baseline is from: every alarm is a false one.
// How many there are hangs on the baseline, so there are several, and the vectors
// of one count as a cluster.
func memgarAnomaly(ctx context.Context) (map[string]reproduce.Measurement, error) {
	const (
		baselines = 20
		observed  = 200 // as many as it remembers
		asked     = 100 // of each baseline
		noise     = 0.1 // standard deviation of every component around the centre
		cluster   = "ordinary"
	)
	out := map[string]reproduce.Measurement{}
	for _, dimension := range []int{8, 64, 384} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(uint64(dimension), 7))
		draw := func() []float64 {
			v := make([]float64, dimension)
			for i := range v {
				v[i] = noise * rng.NormFloat64()
			}
			v[0]++ // the centre is the first axis
			return v
		}
		outliers, sparse := make([]stats.Count, baselines), make([]stats.Count, baselines)
		for b := range baselines {
			m := anomaly.NewMemgar()
			for range observed {
				m.Observe(draw(), cluster)
			}
			outliers[b].N, sparse[b].N = asked, asked
			for range asked {
				v := m.Score(draw(), cluster)
				if v.Insufficient {
					return nil, fmt.Errorf("memgar's detector has too small a baseline: %s", v.Explanation)
				}
				if v.Outlier {
					outliers[b].K++
				}
				if v.Sparse {
					sparse[b].K++
				}
			}
		}
		for what, counts := range map[string][]stats.Count{"outlier": outliers, "density": sparse} {
			r := stats.ClusteredWilson(counts, stats.DefaultLevel)
			out[fmt.Sprintf("%s alarms at dimension %d", what, dimension)] = reproduce.Measurement{Rate: &r}
		}
	}
	return out, nil
}
