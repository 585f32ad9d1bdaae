package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/memtox/memtox/internal/disk"
)

// Run is run.json: what a run is, written before its first row. Unknown keys
// are kept, so that a file of a later version passes through unharmed.
type Run struct {
	Format  int       `json:"format"` // RunFormat; Create sets it
	ID      string    `json:"run_id"`
	Version string    `json:"version"` // of memtox
	Started time.Time `json:"started"`

	Dataset Dataset `json:"dataset"`
	Split   string  `json:"split"`
	Model   string  `json:"model"`
	// LLM says whether the model is a language model. The reference model is
	// none, and every table says so.
	LLM      bool     `json:"llm"`
	Agents   []string `json:"agents"`
	Defenses []string `json:"defenses"`
	Seed     uint64   `json:"seed"`
	// Planned is the number of trials in the plan, all arms and epochs.
	Planned int64 `json:"planned"`
	// Whole is the number of trials of all shards together, where the run is one
	// shard of a plan; else 0.
	Whole int64 `json:"whole,omitempty"`

	// Settings is every setting of the run, as the configuration prints it.
	// Numbers are json.Number where they were read, so that none loses digits.
	Settings map[string]any `json:"settings"`
	// Host says where it ran: operating system, processors, Go version, …
	Host map[string]any `json:"host,omitempty"`

	// Rejudged says from which run memtox rejudge made this one; nil elsewhere.
	Rejudged *Rejudged `json:"rejudged,omitempty"`

	extra map[string]json.RawMessage
}

// Rejudged names the run whose trials were judged again. Everything but the judged
// columns is that run's.
type Rejudged struct {
	RunID string `json:"run_id"`
	Judge string `json:"judge"` // its model and the version of its prompts
}

// Dataset says what was measured on.
type Dataset struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	Attacks int    `json:"attacks"` // cases that the run uses
	Benign  int    `json:"benign"`
}

// RunFormat is the format of a run directory. It counts up when an older memtox
// could no longer read a newer directory rightly.
const RunFormat = 2

// maxRunFile bounds what is read of a run.json.
const maxRunFile = 64 << 20

// MarshalJSON writes the fields in order and then the unknown keys.
func (r Run) MarshalJSON() ([]byte, error) {
	type plain Run
	b, err := json.Marshal(plain(r))
	if err != nil || len(r.extra) == 0 {
		return b, err
	}
	extra, err := json.Marshal(r.extra)
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), extra[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Run) UnmarshalJSON(b []byte) error {
	type plain Run
	var p plain
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	known, err := json.Marshal(plain{Host: map[string]any{"": 0}, Whole: 1, Rejudged: &Rejudged{}})
	if err != nil {
		return err
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(known, &names); err != nil {
		return err
	}
	for name := range names {
		delete(all, name)
	}
	*r = Run(p)
	r.extra = all
	return nil
}

// ReadRun reads the run.json of a run directory. Where there is none the error
// is an [fs.ErrNotExist].
func ReadRun(dir string) (*Run, error) {
	path := in(dir, runFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w: %s is no run directory", path, fs.ErrNotExist, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the run: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRunFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(b) > maxRunFile {
		return nil, fmt.Errorf("reading %s: larger than %d MB; this is no run.json of memtox", path, maxRunFile>>20)
	}
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if r.Format < 1 || r.Format > RunFormat {
		return nil, fmt.Errorf("reading %s: format %d, but this memtox reads formats 1 to %d; use memtox %s", path, r.Format, RunFormat, r.Version)
	}
	return &r, nil
}

// writeRun writes run.json in one step.
func writeRun(d disk.FS, dir string, r *Run) error { return writeJSON(d, in(dir, runFile), r) }
