package results

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memtox/memtox/internal/disk"
)

func TestRunFileComesBackWithAllItsDigitsAndUnknownKeys(t *testing.T) {
	dir := t.TempDir()
	run := testRun()
	run.Seed = 18446744073709551615
	run.Settings = map[string]any{"seed": json.Number("18446744073709551615"), "window": json.Number("8192"),
		"nested": map[string]any{"a": []any{"b", nil, true}}}
	run.Format = RunFormat
	run.extra = map[string]json.RawMessage{"calibration_ns": json.RawMessage("12345678901234567890")}
	if _, err := writeRun(disk.OS, dir, run); err != nil {
		t.Fatal(err)
	}
	for range 2 { // written as it was read, twice
		got, err := ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(run, got, cmp.AllowUnexported(Run{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if _, err := writeRun(disk.OS, dir, got); err != nil {
			t.Fatal(err)
		}
	}
	checkFiles(t, dir, "run.json")
}

func TestARunFileThatIsNoneIsOneClearError(t *testing.T) {
	for content, want := range map[string]string{
		"":                             "unexpected end",
		"{":                            "unexpected end",
		`{"format":0}`:                 "format 0",
		`{"format":99,"version":"v9"}`: "use memtox v9",
		`[]`:                           "cannot unmarshal",
		"\x00\x1b[2J":                  "invalid character",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(in(dir, runFile), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRun(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), runFile) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
		if _, err := Resume(dir, Options{}); err == nil {
			t.Errorf("%q was resumed", content)
		}
		if _, err := Create(dir, testRun(), Options{}); !errors.Is(err, ErrExists) {
			t.Errorf("%q was overwritten: %v", content, err)
		}
	}
	if _, err := ReadRun(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no run.json: %v", err)
	}
}

func TestIDsAndDigestsTellApartExactlyWhatTheyShould(t *testing.T) {
	base := TrialID("c", "a", "d", "s", "m", 0)
	if len(base) != 16 {
		t.Fatalf("id %q", base)
	}
	seen := map[string]bool{base: true}
	for _, id := range []string{TrialID("c2", "a", "d", "s", "m", 0), TrialID("c", "a2", "d", "s", "m", 0),
		TrialID("c", "a", "d2", "s", "m", 0),
		TrialID("c", "a", "d", "s2", "m", 0), TrialID("c", "a", "d", "s", "m2", 0), TrialID("c", "a", "d", "s", "m", 1),
		TrialID("ca", "", "d", "s", "m", 0), TrialID("", "ca", "d", "s", "m", 0)} {
		if seen[id] {
			t.Errorf("id %s stands for two trials", id)
		}
		seen[id] = true
	}
	tr, ds := synthetic(24)
	want := OutcomeDigest(&tr, ds)
	same := tr
	same.ID, same.Index, same.Model, same.Defense, same.WallUS, same.Digest, same.PromptTokens = "x", 9, "y", "z", 1, "", 3
	calls := append([]Decision(nil), ds...)
	calls[0].LatencyNS, calls[0].Reasons, calls[0].Score, calls[0].Trial = 1, "other", nil, "x"
	if OutcomeDigest(&same, calls) != want {
		t.Error("the digest depends on something that is no outcome")
	}
	other := func(name string, f func(*Trial, []Decision)) {
		t2, d2 := tr, append([]Decision(nil), ds...)
		f(&t2, d2)
		if OutcomeDigest(&t2, d2) == want {
			t.Errorf("the digest does not see %s", name)
		}
	}
	no := false
	other("the case", func(t *Trial, _ []Decision) { t.Case += "x" })
	other("the epoch", func(t *Trial, _ []Decision) { t.Epoch++ })
	other("the status", func(t *Trial, _ []Decision) { t.Status = Error })
	other("written", func(t *Trial, _ []Decision) { t.Written = !t.Written })
	other("null and false", func(t *Trial, _ []Decision) { t.LegitStopped = &no })
	other("an action", func(_ *Trial, d []Decision) { d[2].Action = "quarantine" })
	other("the order of decisions", func(_ *Trial, d []Decision) { d[0], d[7] = d[7], d[0] })
}

func BenchmarkFinish(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		b.StopTimer()
		j := mustCreate(b, b.TempDir(), Options{PartRows: 4000})
		for i := range int64(n) {
			tr, ds := synthetic(i)
			if err := j.Append(&tr, ds, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if _, err := j.Finish(nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/trial")
}

func BenchmarkRead(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	j := mustCreate(b, dir, Options{})
	for i := range int64(n) {
		tr, ds := synthetic(i)
		if err := j.Append(&tr, ds, nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := j.Finish(nil); err != nil {
		b.Fatal(err)
	}
	r, err := OpenReader(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct {
		name string
		want Want
	}{{"everything", Everything}, {"latencies", Latencies}, {"trials", TrialsOnly}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range r.Entries(c.want) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/trial")
		})
	}
}
