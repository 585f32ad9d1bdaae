package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

type Merged struct {
	Trials int64 // with a row, each counted once
	// Duplicates are rows of trials that another of the runs had already given;
	// Conflicts are those of them in which something else happened. The first
	// run's row is kept.
	Duplicates, Conflicts int64
	// Unfinished names the runs that had not ended, with what they lack, and
	// Absent the shards that no run is.
	Unfinished, Absent []string
}

// MergedRun is the run.json of what the runs are together: the whole plan of
// which each is a shard, or a part for another reason. Runs of different
// settings, or of settings that stand for something else, are refused with the
// difference. names say in messages which run is which.
func MergedRun(names []string, runs []*results.Run) (*results.Run, error) {
	out := *runs[0]
	var first Config
	for i, r := range runs {
		c, err := RecordedConfig(r)
		if err != nil {
			return nil, &settings.Problem{Where: names[i], Err: err}
		}
		whole := r.Planned
		if c.Shard != "" {
			whole = r.Whole
		}
		c.Shard = ""
		if i == 0 {
			first, out.Planned, out.Whole = c, whole, 0
			continue
		}
		diff := Differences(first, c)
		ours, _ := r.Settings[resolvedKey].(map[string]any)
		if len(diff) == 0 {
			diff = ResolvedDifferences(runs[0].Settings[resolvedKey], ours)
		}
		if len(diff) == 0 && runs[0].Version != r.Version {
			diff = append(diff, settings.Differ("version of memtox", runs[0].Version, r.Version))
		}
		if len(diff) == 0 && out.Planned != whole {
			diff = append(diff, settings.Differ("number of trials of the whole plan", fmt.Sprint(out.Planned),
				fmt.Sprint(whole)))
		}
		if len(diff) > 0 {
			var parts []string
			for _, d := range diff {
				parts = append(parts, fmt.Sprintf("%s is %q in %s and %q in %s", d.Key, d.Theirs, names[0], d.Ours, names[i]))
			}
			return nil, &settings.Problem{What: "these runs are not parts of one: " + strings.Join(parts, "; "),
				Hint: "`memtox compare` puts runs of different settings side by side"}
		}
		if r.Started.Before(out.Started) {
			out.Started = r.Started
		}
	}
	out.Settings = maps.Clone(runs[0].Settings)
	out.Settings["shard"] = ""
	out.Host = maps.Clone(runs[0].Host)
	if out.Host == nil {
		out.Host = map[string]any{}
	}
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	out.Host["merged_from"] = ids
	return &out, nil
}

// Merge copies the rows and transcripts of the runs into a journal, each trial
// once, and none that contradicts the plan. It keeps the rows of one case in memory
// at a time, and 24 bytes a trial.
func Merge(ctx context.Context, plan *Experiment, names []string, runs []*results.Reader,
	into *results.Journal) (Merged, error) {
	var m Merged
	digests := map[string]string{}
	count, have := 0, map[int]bool{}
	var batch []results.Finished // of one case: their transcripts share a frame
	bytes := 0
	hand := func() error {
		err := into.AppendAll(batch)
		clear(batch)
		batch, bytes = batch[:0], 0
		return err
	}
	for i, r := range runs {
		var rows int64
		first := func(t *results.Trial) bool {
			rows++
			d, twice := digests[t.ID]
			switch {
			case !twice:
				digests[strings.Clone(t.ID)] = strings.Clone(t.Digest)
			case d != t.Digest:
				m.Conflicts++
				fallthrough
			default:
				m.Duplicates++
			}
			return !twice
		}
		for f, err := range plan.finished(ctx, names[i], r, first) {
			if n := len(batch); err == nil && n > 0 && (batch[n-1].Trial.Case != f.Trial.Case || bytes >= groupBytes) {
				err = hand()
			}
			if err != nil {
				return m, err
			}
			batch = append(batch, f)
			bytes += len(f.Transcript)
			m.Trials++
		}
		if err := hand(); err != nil {
			return m, err
		}
		if run := r.Run(); rows < run.Planned {
			m.Unfinished = append(m.Unfinished, fmt.Sprintf("%s has %d of its %d trials", names[i], rows, run.Planned))
		}
		if s, ok := r.Run().Settings["shard"].(string); ok && s != "" {
			if part, err := parseShard(s); err == nil {
				have[part.index], count = true, max(count, part.count)
			}
		}
	}
	for i := 1; i <= count && m.Trials < into.Run().Planned; i++ {
		if !have[i] {
			m.Absent = append(m.Absent, fmt.Sprintf("%d/%d", i, count))
		}
	}
	slices.Sort(m.Unfinished)
	return m, nil
}
