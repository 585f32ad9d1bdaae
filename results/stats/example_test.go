package stats_test

import (
	"encoding/json"
	"fmt"

	"github.com/memtox/memtox/results/stats"
)

func ExampleClusteredWilson() {
	r := stats.ClusteredWilson([]stats.Count{{K: 9, N: 10}, {K: 4, N: 10}, {K: 7, N: 10}, {K: 8, N: 10}}, stats.DefaultLevel)
	fmt.Println(r)
	none := stats.ClusteredWilson(nil, stats.DefaultLevel)
	fmt.Println(none)
	b, _ := json.Marshal(none)
	fmt.Println(string(b))
	// Output:
	// 28/40 70.0% [35.1%, 90.9%]
	// 0/0 not measured
	// {"k":0,"n":0,"rate":null,"lo":null,"hi":null}
}

// Two arms on the same cases, grouped by template family: what a comparison
// prints, and whether the candidate keeps the baseline's utility.
func ExamplePairedDifference() {
	// Per family: its pairs, and the candidate's successes minus the baseline's.
	families := []stats.Cluster{{N: 20, Sum: -1}, {N: 20, Sum: 0}, {N: 20, Sum: 1}, {N: 20, Sum: 0}, {N: 10, Sum: -1},
		{N: 30, Sum: 1}}
	d := stats.PairedDifference(families, stats.OneSided(0.95), 1)
	fmt.Println(d)
	fmt.Println(stats.NonInferior(d, 0.05, stats.HigherIsBetter))
	for _, w := range d.Warnings {
		fmt.Println(w)
	}
	fmt.Printf("p = %.3f\n", stats.SignFlip(families, 1).P)
	// Output:
	// 0 [-0.04444, 0.03679]
	// pass
	// 6 clusters: the interval may cover less often than its level under 30
	// p = 1.000
}
