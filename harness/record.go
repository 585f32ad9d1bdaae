package harness

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/summary"
)

// resolvedKey holds, among the settings in run.json, what the settings stood
// for: a policy file may change though its name does not.
const resolvedKey = "resolved"

// RunID names a run: when it began, and a part of the hash of its settings.
func (c Config) RunID(at time.Time) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // the settings are strings, numbers and lists
	}
	h := sha256.Sum256(append(b, at.Format(time.RFC3339Nano)...))
	return fmt.Sprintf("%s-%x", at.UTC().Format("20060102-150405"), h[:3])
}

// Record is the run.json of the experiment.
func (x *Experiment) Record(id, version string, started time.Time) *results.Run {
	attacks, benign := x.Plan.Counts()
	run := &results.Run{
		ID: id, Version: version, Started: started.UTC().Truncate(time.Second),
		Dataset: results.Dataset{Name: x.Plan.Set.Name, Version: x.Plan.Set.Version, SHA256: x.Plan.Set.SHA256,
			Attacks: attacks, Benign: benign},
		Split: x.Config.Split, Model: x.Name(), LLM: x.LLM(), Seed: x.Config.Seed, Planned: x.Plan.Len(), Settings: x.settings(),
		Host: map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "processors": runtime.GOMAXPROCS(0),
			"go": runtime.Version(), "calibration_ns": calibrate()},
	}
	if len(x.Models) > 1 {
		run.Models = x.modelNames()
	}
	for _, i := range x.Plan.Cases {
		switch k := &x.Plan.Set.Cases[i]; {
		case k.State == nil || k.State.Question() == nil:
		case k.Label == datasets.Attack:
			run.Dataset.QuestionAttacks++
		default:
			run.Dataset.QuestionBenign++
		}
	}
	if x.Config.Shard != "" {
		run.Whole = x.Plan.Whole()
	}
	for _, a := range x.Plan.Arms {
		run.Agents = appendNew(run.Agents, a.Agent())
		run.Defenses = appendNew(run.Defenses, a.Defense.Name)
	}
	return run
}

// settings are those of the Config, and what they were resolved to.
func (x *Experiment) settings() map[string]any {
	b, err := json.Marshal(x.Config)
	var m map[string]any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber() // a seed has more digits than a float
		err = d.Decode(&m)
	}
	if err != nil {
		panic(err) // the settings are strings, numbers and lists
	}
	m[resolvedKey] = x.Resolved()
	return m
}

// Resolved is what the names in the settings stand for.
func (x *Experiment) Resolved() map[string]any {
	profiles, built := map[string]any{}, map[string]any{}
	for _, a := range x.Plan.Arms {
		profiles[a.Profile.Name] = a.Profile.Version
		built[a.Defense.Name] = a.Defense.Canonical
	}
	m := map[string]any{"dataset": x.Plan.Set.SHA256, "profiles": profiles, "defenses": built, "model": x.Name()}
	if x.Reader != nil {
		m["judge"] = x.Reader.Name()
	}
	if by := x.compared(); by != "" {
		m[summary.EmbeddingsKey] = by
	}
	if len(x.sweeps) > 0 {
		var list []any // of the types that reading run.json gives
		for _, s := range x.sweeps {
			arms := make([]any, len(s.Specs))
			for i, spec := range s.Specs {
				arms[i] = spec
			}
			list = append(list, map[string]any{"name": s.Name, "arms": arms})
		}
		m[summary.SweepKey] = list
	}
	if x.own != nil {
		m["own"] = x.own
	}
	if len(x.greeted) > 0 {
		// What they say of themselves, as the text that run.json will have.
		guards := map[string]any{}
		for name, id := range x.greeted {
			guards[name] = strings.TrimSpace(id.String() + " " + string(id.Configuration))
		}
		m["guards"] = guards
	}
	return m
}

// RecordedConfig returns the settings of a run from its run.json, as they stand
// there: [Adopt] says which of them may be acted on.
func RecordedConfig(run *results.Run) (Config, error) {
	m := map[string]any{}
	for k, v := range run.Settings {
		if k != resolvedKey {
			m[k] = v
		}
	}
	var c Config
	b, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return Config{}, fmt.Errorf("reading the settings of run %s: %w", run.ID, err)
	}
	c.Dataset = datasets.At(c.Dataset, run.Dataset.Version)
	c.Full = false // how much is printed is asked for each time
	return c, nil
}

// ResumableConfig returns the settings of a run that `memtox run` made, in the
// directory dir, as [RecordedConfig] does.
func ResumableConfig(dir string, run *results.Run) (Config, error) {
	c, err := RecordedConfig(run)
	switch {
	case err != nil:
		return c, &settings.Problem{Where: dir, Err: err, Hint: "choose another directory with --out"}
	case run.Rejudged != nil:
		return c, &settings.Problem{Where: dir, What: "was made by memtox rejudge from run " + run.Rejudged.RunID +
			": its agent is not called again", Hint: "go on with memtox rejudge"}
	case slices.Contains(c.Agents, TextAgent):
		return c, &settings.Problem{Where: dir, What: "was made by memtox detect",
			Hint: "run that again; compare, gate and export read what is there"}
	}
	return c, nil
}

// SameSettings refuses to take one run for another whose settings decide otherwise.
func SameSettings(dir string, theirs, ours Config) error {
	return otherSettings(dir, Differences(theirs, ours))
}

// SameRun refuses to go on with a run that is another one, and says which
// settings differ.
func (x *Experiment) SameRun(dir string, run *results.Run) error {
	theirs, err := RecordedConfig(run)
	if err == nil {
		err = SameSettings(dir, theirs, x.Config)
	}
	if err != nil {
		return err
	}
	diff := ResolvedDifferences(run.Settings[resolvedKey], x.Resolved())
	if len(diff) == 0 && run.Planned != x.Plan.Len() {
		diff = append(diff, settings.Differ("number of trials", fmt.Sprint(run.Planned), fmt.Sprint(x.Plan.Len())))
	}
	return otherSettings(dir, diff)
}

// otherSettings is the problem of a run that is another one; nil where nothing differs.
func otherSettings(dir string, diff []settings.Difference) error {
	if len(diff) == 0 {
		return nil
	}
	return &settings.Problem{Where: dir, What: "holds a run with other settings: " + Listed(diff),
		Hint: "leave those settings out to go on with that run, or choose another --out"}
}

// Listed is differences as a message has them.
func Listed(diff []settings.Difference) string {
	var parts []string
	for _, d := range diff {
		parts = append(parts, fmt.Sprintf("%s was %s, is now %s", d.Key, shown(d.Theirs), shown(d.Ours)))
	}
	return strings.Join(parts, "; ")
}

// ResolvedDifferences compares what names stood for with what they stand for.
func ResolvedDifferences(theirs any, ours map[string]any) []settings.Difference {
	var out []settings.Difference
	flat := func(v any) map[string]string {
		m := map[string]string{}
		var walk func(path string, v any)
		walk = func(path string, v any) {
			if sub, ok := v.(map[string]any); ok {
				for k, v := range sub {
					walk(strings.TrimPrefix(path+" "+k, " "), v)
				}
				return
			}
			m[path] = fmt.Sprint(v)
		}
		walk("", v)
		return m
	}
	was, is := flat(theirs), flat(ours)
	if _, ok := was[summary.EmbeddingsKey]; !ok && is[summary.EmbeddingsKey] == Hashed+notLLM {
		delete(is, summary.EmbeddingsKey) // a run of a time when there was no other
	}
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if was[k] != is[k] {
			out = append(out, settings.Differ("what "+k+" stands for", was[k], is[k]))
		}
	}
	return out
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Calibration is a fixed piece of work: one HMAC-SHA256 of 600 bytes, about what
// signing a record takes. A latency as a multiple of it can be compared between
// machines, where microseconds cannot.
const (
	calibrationBytes  = 600
	calibrationRounds = 1000
	calibrationTries  = 9
)

// calibrate returns how many nanoseconds the calibration takes here: a thousand
// rounds on one processor, the median of a few tries, about five milliseconds in
// all.
func calibrate() float64 {
	text, key := make([]byte, calibrationBytes), []byte("memtox calibration")
	var sum [sha256.Size]byte
	took := make([]time.Duration, calibrationTries)
	for i := range took {
		began := time.Now()
		mac := hmac.New(sha256.New, key)
		for range calibrationRounds {
			mac.Reset()
			mac.Write(text)
			copy(text, mac.Sum(sum[:0])) // each round needs the one before
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / calibrationRounds
}
