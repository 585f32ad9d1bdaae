package gate_test

import (
	"errors"
	"testing"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results/gate"
)

// Whatever somebody writes is a requirement that can be judged, or a usage error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"guard.end_to_end <= 0.05", "a/b/c.tpr>=90%", "x.latency_us.write.p99 <= 4 us", "<=",
		".<=1", "guard.asr <= 1e-400", "guard.asr <= 0x1p-2",
		"guard.not_scored <= 99999999999999999999", "\xff\x00.tpr >= .5", "a<=b.tpr >= 0.5 <= 3"} {
		f.Add(s)
	}
	whole := table(spec())
	f.Fuzz(func(t *testing.T, s string) {
		r, err := gate.Parse(s, "here")
		if err == nil {
			_, err = gate.Evaluate(whole, gate.Options{Require: []gate.Requirement{r}})
		}
		var u *settings.Problem
		if err != nil && !errors.As(err, &u) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
