package harness

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/memtox/memtox/results"
)

// A trial that both ends share is the trial that each would have had by itself, and
// what is attributed is not shared.
func TestBothEndsOfComplianceAreAsIfRunApart(t *testing.T) {
	const arms = "defense=none,origin-only,attribution-only,provenance,guard"
	by := func(settings ...string) map[string]results.Trial {
		settings = append(settings, "dataset=../attacks/testdata/states", "split=all", arms)
		_, out := runAll(t, Builtin(), settings...)
		rows := map[string]results.Trial{}
		for _, r := range out.trials() {
			rows[r.ID] = r
		}
		return rows
	}
	both := by("model=reference")
	outcomes := map[string]string{}
	differ := 0
	for _, end := range []string{"reference:naive", "reference:cautious"} {
		for id, alone := range by("model=" + end) {
			r, ok := both[id]
			if !ok || r.Digest != alone.Digest || r.Model != end || r.PromptTokens != alone.PromptTokens {
				t.Fatalf("%s %s %s: together %q %s, apart %s", alone.Case, alone.Defense, end, r.Model, r.Digest, alone.Digest)
			}
			key := r.Case + " " + r.Agent + " " + r.Defense
			if other, ok := outcomes[key]; ok && other != r.Digest {
				differ++
			}
			outcomes[key] = r.Digest
		}
	}
	if len(both) == 0 || differ == 0 {
		t.Errorf("%d trials, %d that the ends tell apart", len(both), differ)
	}
}

// What an agent outside this process asks its model is not seen here, so that its
// trials are never shared.
func TestTrialsOfAnAgentElsewhereAreNotShared(t *testing.T) {
	c := DefaultConfig()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"mine","version":"1"}`)
	}))
	defer srv.Close()
	for _, s := range []string{"dataset=../attacks/testdata/states", "model=reference", "defense=none,attribution-only",
		"agent=hermes,mine=" + srv.URL} {
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Prepare(t.Context(), c, Builtin())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i, a := range x.Plan.Arms {
		if want := a.Profile.Name == "hermes" && a.Model == 0; x.ends(i) != want {
			t.Errorf("%s, %s, %s is shared: %v", a.Agent(), a.Defense.Name, x.Models[a.Model].Name, !want)
		}
	}
}
