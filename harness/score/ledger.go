package score

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/memtox/memtox/results"
)

// File is the name of the file of verdicts in a run directory.
const File = results.VerdictsFile

// maxLine bounds a line of the file of verdicts.
const maxLine = 1 << 16

// ledger keeps verdicts, one JSON object a line. nil keeps nothing.
type ledger struct {
	mu sync.Mutex
	f  *os.File
}

type line struct {
	Key      string `json:"key"` // of the content, the model and the prompts
	Question string `json:"question"`
	Verdict
	// Sum is the CRC-32C of the line without it. Lines of an earlier memtox have none.
	Sum string `json:"sum,omitempty"`
}

// sum is what a line's Sum has to be.
func (l line) sum() string {
	l.Sum = ""
	b, _ := json.Marshal(l) // texts and numbers
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// Keep reads the verdicts of a file, if it is there, and adds to it what is
// decided from now on. A last line that was torn by the death of the process is
// cut off; any other line that is none is an error.
func (j *ModelJudge) Keep(path string) error {
	f, err := results.OpenFile(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return fmt.Errorf("opening the verdicts: %w", err)
	}
	good, err := j.load(f)
	if err == nil {
		err = f.Truncate(good)
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("reading %s: %w", path, err)
	}
	j.file = &ledger{f: f}
	return nil
}

// load returns up to where the file is whole.
func (j *ModelJudge) load(f io.Reader) (good int64, err error) {
	r := bufio.NewReaderSize(f, maxLine)
	for n := 1; ; n++ {
		b, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return good, nil // torn, or the end
		}
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		var l line
		if err := json.Unmarshal(b, &l); err != nil {
			return 0, fmt.Errorf("line %d is no verdict: %w", n, err)
		}
		key, err := hex.DecodeString(l.Key)
		if err != nil || len(key) != 32 {
			return 0, fmt.Errorf("line %d is no verdict: its key is not 64 hexadecimal digits", n)
		}
		if l.Sum != "" && l.Sum != l.sum() {
			return 0, fmt.Errorf("line %d is not what was written: the file is damaged or was changed; remove it, and the judge is asked again", n)
		}
		good += int64(len(b))
		if len(j.verdicts) < maxCached {
			e := &entry{done: make(chan struct{}), verdict: l.Verdict}
			close(e.done)
			j.verdicts[[32]byte(key)] = e
		}
	}
}

func (l *ledger) add(v line) error {
	if l == nil {
		return nil
	}
	v.Sum = v.sum()
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keeping a verdict: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("keeping a verdict: %w", err)
	}
	return nil
}

func (l *ledger) close() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}
