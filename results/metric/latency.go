package metric

import (
	"fmt"
	"strings"

	"github.com/memtox/memtox/results"
)

// Latency names a quantile of the time inside a gate, as in
// latency_us.write.p99.
type Latency struct {
	Gate     string  // results.GateWrite, …
	Quantile float64 // 0.5, 0.95 or 0.99
}

var quantiles = []struct {
	name string
	p    float64
}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}}

// Gates are the gates whose time is measured.
var Gates = [...]string{results.GateInput, results.GateWrite, results.GateRead, results.GateAct}

// String returns the name in the JSON.
func (l Latency) String() string {
	for _, q := range quantiles {
		if q.p == l.Quantile {
			return "latency_us." + l.Gate + "." + q.name
		}
	}
	return fmt.Sprintf("latency_us.%s.%g", l.Gate, l.Quantile)
}

// Latencies returns every latency that has a name.
func Latencies() []Latency {
	var out []Latency
	for _, g := range Gates {
		for _, q := range quantiles {
			out = append(out, Latency{g, q.p})
		}
	}
	return out
}

// FindLatency finds a latency by its name.
func FindLatency(name string) (Latency, bool) {
	if !strings.HasPrefix(name, "latency_us.") {
		return Latency{}, false
	}
	for _, l := range Latencies() {
		if l.String() == name {
			return l, true
		}
	}
	return Latency{}, false
}
