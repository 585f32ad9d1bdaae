package stats_test

import (
	"encoding/json"
	"fmt"

	"github.com/memtox/memtox/results/stats"
)

func ExampleClusteredWilson() {
	r := stats.ClusteredWilson([]stats.Count{{K: 9, N: 10}, {K: 4, N: 10}}, stats.DefaultLevel)
	fmt.Println(r)
	none := stats.ClusteredWilson(nil, stats.DefaultLevel)
	fmt.Println(none)
	b, _ := json.Marshal(none)
	fmt.Println(string(b))
	// Output:
	// 13/20 65.0% [25.4%, 91.0%]
	// 0/0 not measured
	// {"k":0,"n":0,"rate":null,"lo":null,"hi":null}
}
