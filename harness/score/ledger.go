package score

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/memtox/memtox/results"
)

// File is the name of the file of verdicts in a run directory.
const File = results.VerdictsFile

// maxLine bounds a line of the file of verdicts.
const maxLine = 1 << 16

type line struct {
	Key      string   `json:"key"` // of the content, the model and the prompts
	Question Question `json:"question"`
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

// Keep reads the verdicts of a run directory, if it has any, and adds to them what is
// decided from now on. A last line that was torn by the death of the process is
// cut off; any other line that is none is an error.
func (j *ModelJudge) Keep(dir string) (err error) {
	j.file, err = results.OpenLines(dir, File, maxLine, func(n int, b []byte, whole bool) error {
		var l line
		if !whole {
			return nil
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("reading %s: line %d is %w", filepath.Join(dir, File), n, fmt.Errorf(format, args...))
		}
		if err := json.Unmarshal(b, &l); err != nil {
			return bad("no verdict: %w", err)
		}
		key, err := hex.DecodeString(l.Key)
		if err != nil || len(key) != 32 {
			return bad("no verdict: its key is not 64 hexadecimal digits")
		}
		if l.Sum != "" && l.Sum != l.sum() {
			return bad("not what was written: the file is damaged or was changed; remove it, and the judge is asked again")
		}
		if len(j.verdicts) < maxCached {
			j.verdicts[[32]byte(key)] = &entry{known: true, verdict: l.Verdict}
		}
		return nil
	})
	return err
}

// keep adds a verdict.
func (j *ModelJudge) keep(v line) error {
	if j.file == nil {
		return nil
	}
	v.Sum = v.sum()
	b, err := json.Marshal(v)
	if err == nil {
		err = j.file.Append(b)
	}
	if err != nil {
		return fmt.Errorf("keeping a verdict: %w", err)
	}
	return nil
}
