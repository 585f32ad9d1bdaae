package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/compare"
)

// runKey is the key of a baseline's Parquet metadata that holds its run.json.
const runKey = "memtox.run"

// WriteBaseline writes the trials of a run as one Parquet file that describes
// itself. Columns that no comparison needs (costs, sizes, the trial's id) are
// empty, so that a baseline is small enough to be committed; all others are
// those of SCHEMA.md. An unfinished run is refused, and so is one that scored
// nothing.
func WriteBaseline(w io.Writer, dir string) (trials int64, err error) {
	r, err := results.OpenReader(dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if !r.Finished() {
		return 0, problem("--write-baseline", "finish it with memtox run --resume --out "+dir,
			"%s is not finished: part of a run is no baseline", dir)
	}
	about := *r.Run()
	about.Host = nil // nothing of the machine belongs in a committed file
	about.Settings = maps.Clone(about.Settings)
	delete(about.Settings, "out")
	meta, err := json.Marshal(about)
	if err != nil {
		return 0, fmt.Errorf("writing a baseline of %s: %w", dir, err)
	}
	out := parquet.NewGenericWriter[results.Trial](w, parquet.Compression(&zstd.Codec{Level: zstd.SpeedBestCompression}),
		parquet.DataPageStatistics(false), parquet.KeyValueMetadata(runKey, string(meta)),
		parquet.CreatedBy("memtox", "1", "results/gate"))
	scored := false
	for e, err := range r.Entries(results.TrialsOnly) {
		if err != nil {
			return trials, err
		}
		scored = scored || e.Trial.Status == results.Scored
		if _, err := out.Write([]results.Trial{slim(e.Trial)}); err != nil {
			return trials, fmt.Errorf("writing a baseline of %s: %w", dir, err)
		}
		trials++
	}
	if !scored {
		return trials, problem("--write-baseline", "mend the run first", "%s scored nothing: it is no baseline", dir)
	}
	if err := out.Close(); err != nil {
		return trials, fmt.Errorf("writing a baseline of %s: %w", dir, err)
	}
	return trials, nil
}

// slim empties what no comparison needs.
func slim(t results.Trial) results.Trial {
	t.ID, t.Twin, t.VariantOf, t.Reason = "", "", "", ""
	t.ModelCalls, t.ToolCalls, t.PromptTokens, t.CompletionTokens, t.TokensEstimated, t.Retries, t.EmptyAnswers = 0, 0, 0,
		0, false, 0, 0
	t.Flushes, t.Compactions, t.Reviews, t.WallUS = 0, 0, 0, 0
	t.Window, t.ReviewTurns, t.ReviewIterations, t.KeepMessages = 0, 0, 0, 0
	return t
}

// LoadBaseline reads a baseline: a file of WriteBaseline, the trials.parquet of
// a run, or a run directory.
func LoadBaseline(path string) (t *compare.Table, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	if st.IsDir() {
		return compare.Load(path, compare.LoadOptions{})
	}
	fail := func(err any) (*compare.Table, error) {
		return nil, fmt.Errorf("reading the baseline %s: the file is no Parquet file of trials, or is damaged: %v", path, err)
	}
	// The Parquet library panics on files that contradict themselves.
	defer func() {
		if p := recover(); p != nil {
			t, err = fail(p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	defer f.Close()
	p, err := parquet.OpenFile(f, st.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return fail(err)
	}
	for _, column := range []string{"case", "agent", "defense", "status", "digest"} {
		if _, ok := p.Schema().Lookup(column); !ok {
			return fail("it has no column " + column)
		}
	}
	var run *results.Run
	if text, ok := p.Lookup(runKey); ok {
		run = new(results.Run)
		if err := json.Unmarshal([]byte(text), run); err != nil {
			return fail(err)
		}
	}
	t = compare.NewTable(path, run)
	r := parquet.NewGenericReader[results.Trial](p)
	defer r.Close()
	buf := make([]results.Trial, 256)
	for n := 1; n > 0 && err == nil; {
		clear(buf)
		n, err = r.Read(buf)
		for i := range n {
			t.Add(&buf[i], nil)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(err)
	}
	t.Finished = true
	t.Close()
	return t, nil
}
