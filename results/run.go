package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
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
	// Models are those of its arms where there are several; Model is then what they are
	// called together.
	Models []string `json:"models,omitempty"`
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

// ModelNames are the models of the run's arms.
func (r *Run) ModelNames() []string {
	if len(r.Models) > 0 {
		return r.Models
	}
	return []string{r.Model}
}

// Label is what an agent is called in this run: its name, and where the run has several
// models the one that drives it, as in "hermes (naive)".
func (r *Run) Label(agent, model string) string {
	if r == nil || len(r.Models) < 2 {
		return agent
	}
	return agent + " (" + strings.TrimPrefix(model, "reference:") + ")"
}

// Named is the agent of a label.
func (r *Run) Named(label string) string {
	if r == nil || len(r.Models) < 2 {
		return label
	}
	return label[:max(0, strings.LastIndex(label, " ("))]
}

// Labels are the labels of the run's agents, in the order of its arms.
func (r *Run) Labels() (out []string) {
	for _, a := range r.Agents {
		for _, m := range r.ModelNames() {
			out = append(out, r.Label(a, m))
		}
	}
	return out
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
	// Of these, cases that ask something: they are in rates of their own.
	QuestionAttacks int `json:"question_attacks,omitempty"`
	QuestionBenign  int `json:"question_benign,omitempty"`
}

// Questions is how many of the cases ask something.
func (d Dataset) Questions() int { return d.QuestionAttacks + d.QuestionBenign }

// Tasks is the data set without its questions; all of it if it has nothing else.
func (d Dataset) Tasks() Dataset {
	if d.Questions() < d.Attacks+d.Benign {
		d.Attacks, d.Benign = d.Attacks-d.QuestionAttacks, d.Benign-d.QuestionBenign
	}
	return d
}

// RunFormat is the format of a run directory. It counts up when an older memtox
// could no longer read a newer directory rightly.
const RunFormat = 3

// maxArms bounds the arms that a run.json names: whoever reads it lists them.
const maxArms = 100_000

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
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(all, name)
	}
	if p.Settings == nil {
		p.Settings = map[string]any{} // null, which nobody wrote: what copies it sets some
	}
	*r = Run(p)
	r.extra = all
	return nil
}

// ReadRun reads the run.json of a run directory. Where there is none the error
// is an [fs.ErrNotExist].
func ReadRun(dir string) (*Run, error) {
	r, about, err := readRun(dir)
	if err == nil {
		err = sealed(dir, about)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readRun reads run.json and says what a manifest has to say of it.
func readRun(dir string) (*Run, File, error) {
	path, about := in(dir, runFile), File{Name: runFile}
	b, err := readFile(dir, runFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, about, fmt.Errorf("reading %s: %w: %s is no run directory; name one that memtox run "+
			"made, as with --out", path, fs.ErrNotExist, dir)
	}
	if err != nil {
		return nil, about, fmt.Errorf("reading the run: %w", err)
	}
	var r Run
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, about, Changed(path, "%v", err)
	}
	if r.Format < 1 || r.Format > RunFormat {
		return nil, about, fmt.Errorf("reading %s: format %d, but this memtox reads formats 1 to %d; use memtox %s", path,
			r.Format, RunFormat, r.Version)
	}
	if r.Planned < 0 || r.Whole < 0 {
		return nil, about, Changed(path, "it plans %d trials of %d", r.Planned, r.Whole)
	}
	// Each of its numbers is small beside the length of a file of 64 MB, so that no
	// product overflows.
	if arms := int64(len(r.Agents)) * int64(len(r.Defenses)) * int64(len(r.ModelNames())); arms > maxArms {
		return nil, about, Changed(path, "it names %d arms, and no run has more than %d", arms, maxArms)
	}
	about.Bytes, about.SHA256 = int64(len(b)), digest(b)
	return &r, about, nil
}

// sealed compares run.json with what the other files say of it: the manifest, or
// those of the parts and the heads of the journals. A file that went meanwhile has
// made room for another.
func sealed(dir string, run File) error {
	if _, err := manifestFor(dir, manifestFile, run); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := listRun(disk.OS, dir)
	if err != nil {
		return err
	}
	for _, n := range files.numbers[trialParts] {
		_, err := manifestFor(dir, manifestParts.name(n), run)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, n := range files.numbers[journals] {
		f, err := openFile(disk.OS, dir, journals.name(n), os.O_RDONLY)
		if err == nil {
			_, _, err = readHead(f, run)
			f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writeRun writes run.json in one step.
func writeRun(d disk.FS, dir string, r *Run) (File, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("writing %s: %w", in(dir, runFile), err)
	}
	return writeFile(d, dir, runFile, append(b, '\n'))
}
