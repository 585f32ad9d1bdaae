package metric

import (
	"fmt"

	"github.com/memtox/memtox/results"
)

// Latency names a quantile of the time inside a gate, as in
// latency_us.write.p99.
type Latency struct {
	Gate     string  // results.GateWrite, …
	Quantile float64 // 0.5, 0.95 or 0.99
}

// Gates are the gates whose time is measured.
var Gates = [...]string{results.GateInput, results.GateWrite, results.GateRead, results.GateAct}

// String returns the name in the JSON.
func (l Latency) String() string { return fmt.Sprintf("latency_us.%s.p%g", l.Gate, 100*l.Quantile) }

// Latencies returns every latency that has a name.
func Latencies() []Latency {
	var out []Latency
	for _, g := range Gates {
		for _, p := range []float64{0.5, 0.95, 0.99} {
			out = append(out, Latency{g, p})
		}
	}
	return out
}

// FindLatency finds a latency by its name.
func FindLatency(name string) (Latency, bool) {
	for _, l := range Latencies() {
		if l.String() == name {
			return l, true
		}
	}
	return Latency{}, false
}
