package anomaly

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

type memgarVectors struct {
	Config struct {
		MinObservations int `json:"min_observations"`
	}
	Baseline []struct {
		Cluster string
		Vector  []float64
	}
	Stats      map[string]memgarStats `json:"stats_after_baseline"`
	Candidates []memgarCandidate
	Window     struct {
		Baseline   [][]float64
		Stats      map[string]memgarStats
		Candidates []memgarCandidate
	} `json:"window_case"`
	Progressive struct {
		Config struct {
			MinObservations int `json:"min_observations"`
		}
		Probe []float64
		Steps []struct {
			Count   int `json:"baseline_count"`
			Verdict memgarAnswer
		}
	}
}

type memgarStats struct {
	Count     int
	Mean      float64 `json:"mean_distance"`
	Stddev    float64
	Variance  float64
	Centroid  []float64
	Recent    int      `json:"recent_samples"`
	History   int      `json:"density_history_len"`
	Threshold *float64 `json:"density_threshold_q"`
}

type memgarCandidate struct {
	Name    string
	Vector  []float64
	Cluster string
	Compare []string `json:"compare_clusters"`
	Verdict memgarAnswer
}

type memgarAnswer struct {
	Cluster   string
	Distance  float64  `json:"centroid_distance"`
	Z         float64  `json:"z_score"`
	Outlier   bool     `json:"is_outlier"`
	Neighbour *float64 `json:"nearest_neighbor_distance"`
	Sparse    bool     `json:"is_density_anomaly"`
	Collision *string  `json:"cross_cluster_collision"`
	Severity  string
	Why       string `json:"explanation"`
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-12+1e-12*math.Abs(b)
}

func compareAnswer(t *testing.T, name string, got MemgarVerdict, want memgarAnswer) {
	t.Helper()
	if !near(got.CentroidDistance, want.Distance) || !near(got.Z, want.Z) || got.Outlier != want.Outlier ||
		got.Sparse != want.Sparse ||
		got.Severity != want.Severity || got.Explanation != want.Why || got.Cluster != want.Cluster {
		t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
	}
	if (want.Neighbour == nil) != math.IsNaN(got.Neighbour) ||
		want.Neighbour != nil && !near(got.Neighbour, *want.Neighbour) {
		t.Errorf("%s: neighbour distance %v, want %v", name, got.Neighbour, want.Neighbour)
	}
	if (want.Collision == nil) != (got.Collision == "") || want.Collision != nil && got.Collision != *want.Collision {
		t.Errorf("%s: collision %q, want %v", name, got.Collision, want.Collision)
	}
}

func compareStats(t *testing.T, name string, c *memgarCluster, want memgarStats) {
	t.Helper()
	th, ok := c.threshold(MemgarQuantile)
	if c.count != want.Count || !near(c.mean, want.Mean) || !near(c.stddev(), want.Stddev) ||
		len(c.samples) != want.Recent || len(c.history) != want.History ||
		ok != (want.Threshold != nil) || ok && !near(th, *want.Threshold) {
		t.Errorf("%s: count %d mean %v sd %v samples %d history %d threshold %v, want %+v", name, c.count, c.mean, c.stddev(),
			len(c.samples), len(c.history), th, want)
	}
	for i, x := range want.Centroid {
		if !near(c.centroid[i], x) {
			t.Errorf("%s: centroid[%d] = %v, want %v", name, i, c.centroid[i], x)
		}
	}
}

// The detector gives what memgar's own code gave, float for float.
func TestMemgarVectors(t *testing.T) {
	dir := os.Getenv("MEMTOX_SHARED_DATA")
	if dir == "" {
		t.Skip("MEMTOX_SHARED_DATA is unset: it names the folder with memgar-vectors/embedding.json")
	}
	checkVectors(t, filepath.Join(dir, "memgar-vectors", "embedding.json"))
}

// The same on a small file of our own, worked out by testdata/make.py, an
// implementation from the description that shares no code with this one.
func TestOwnVectors(t *testing.T) { checkVectors(t, filepath.Join("testdata", "small.json")) }

func checkVectors(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d memgarVectors
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Baseline) == 0 || len(d.Candidates) == 0 {
		t.Fatalf("%s holds no baseline or no candidates", file)
	}
	m := NewMemgar()
	for _, b := range d.Baseline {
		m.Observe(b.Vector, b.Cluster)
	}
	for name, want := range d.Stats {
		compareStats(t, name, m.clusters[name], want)
	}
	for _, c := range d.Candidates {
		compareAnswer(t, c.Name, m.Score(c.Vector, c.Cluster, c.Compare...), c.Verdict)
	}
	if len(d.Window.Baseline) > 0 {
		m = NewMemgar()
		for _, v := range d.Window.Baseline {
			m.Observe(v, "w")
		}
		compareStats(t, "window", m.clusters["w"], d.Window.Stats["w"])
		for _, c := range d.Window.Candidates {
			compareAnswer(t, c.Name, m.Score(c.Vector, "w"), c.Verdict)
		}
		m = NewMemgar()
		m.MinObservations = d.Progressive.Config.MinObservations
		for i, s := range d.Progressive.Steps {
			if s.Count != i {
				t.Fatalf("step %d has a baseline of %d", i, s.Count)
			}
			compareAnswer(t, "progressive", m.Score(d.Progressive.Probe, "p"), s.Verdict)
			m.Observe(d.Window.Baseline[i], "p")
		}
	}
}
