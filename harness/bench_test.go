package harness

import (
	"context"
	"testing"

	"github.com/memtox/memtox/results"
)

// nowhere is a Sink that drops everything.
func nowhere() Sink { return SinkOf(func(results.Finished) error { return nil }) }

// BenchmarkTrials runs the smoke set, every arm of a case after another on one
// worker, and reports the time a trial takes.
func BenchmarkTrials(b *testing.B) {
	for _, transcripts := range []string{"none", "all"} {
		b.Run("transcripts="+transcripts, func(b *testing.B) {
			c := DefaultConfig()
			c.Defenses, c.Transcripts, c.Concurrency = []string{"none", "signed", "memoryguard", "origin-only"}, transcripts, 1
			x, err := Prepare(context.Background(), c, Builtin())
			if err != nil {
				b.Fatal(err)
			}
			trials := int64(0)
			for b.Loop() {
				if err := x.Run(context.Background(), nowhere(), new(Progress), nil); err != nil {
					b.Fatal(err)
				}
				trials += x.Plan.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(trials), "µs/trial")
		})
	}
}

// BenchmarkArms runs cases whose outcome is a state in nine arms, at both ends of compliance.
func BenchmarkArms(b *testing.B) {
	c := DefaultConfig()
	c.Dataset, c.Split, c.Limit, c.Model, c.Concurrency = "memtox-bench@v2", "tune", 40, "reference", 1
	c.Defenses = []string{"none", "no-memory", "origin-only", "attribution-only", "keyword", "provenance",
		"contradiction", "anomaly", "guard"}
	x, err := Prepare(context.Background(), c, Builtin())
	if err != nil {
		b.Fatal(err)
	}
	trials := int64(0)
	for b.Loop() {
		if err := x.Run(context.Background(), nowhere(), new(Progress), nil); err != nil {
			b.Fatal(err)
		}
		trials += x.Plan.Len()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(trials), "µs/trial")
}

// BenchmarkStage is what preparing a case costs, once for all its arms.
func BenchmarkStage(b *testing.B) {
	x, err := Prepare(context.Background(), noneOnly(), Builtin())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, i := range x.Plan.Cases {
			x.stage(&x.Plan.Set.Cases[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(x.Plan.Cases)), "µs/case")
}

func noneOnly() Config {
	c := DefaultConfig()
	c.Defenses = []string{"none"}
	return c
}
