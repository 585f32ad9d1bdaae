package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/memtox/memtox/internal/disk"
)

// Manifest is manifest.json, written last: a directory that has one holds a
// finished run. Each part of a run that is not finished has one of its own,
// manifest-N.json.
type Manifest struct {
	Format int `json:"format"`
	// Files are trials, decisions, where there are transcripts their index, run.json
	// and, where a language model judged, its verdicts. What a memtox before format 3
	// wrote does not name the last two.
	Files []File `json:"files"`
	// Transcripts are the files that the index points into. The index holds the
	// checksum of every frame, so that one transcript is checked without the others.
	Transcripts []File `json:"transcripts,omitempty"`
	// Pace says by model what each server was found to bear in the last part of the run.
	// It is known at the end only, and run.json is sealed before the first row.
	Pace any `json:"pace,omitempty"`
	// SHA256 is that of the manifest itself, with zeros in the place of its digits.
	// Empty before format 3.
	SHA256 string `json:"sha256,omitempty"`
}

// File is one file of a run.
type File struct {
	Name   string `json:"name"` // relative to the run directory, with slashes
	Rows   int64  `json:"rows,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // of transcripts from format 3 on
}

// VerdictsFile is where a judge that is a language model keeps what it answered.
const VerdictsFile = "verdicts.jsonl"

// sealedFormat is the first format in which every file is named with its digest.
const sealedFormat = 3

// ReadManifest reads the manifest of a finished run. Where there is none the
// error is an [fs.ErrNotExist].
func ReadManifest(dir string) (*Manifest, error) { return readManifest(dir, manifestFile) }

func readManifest(dir, name string) (*Manifest, error) {
	path := in(dir, name)
	b, err := readFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, Changed(path, "%v", err)
	}
	// The digest comes first: what it does not cover says nothing of its format.
	if m.SHA256 != "" {
		at := bytes.LastIndex(b, []byte(m.SHA256))
		if at < 0 || m.SHA256 != digest(b[:at], zeros, b[at+len(m.SHA256):]) {
			return nil, Changed(path, "its digest is not that of its content")
		}
	}
	if m.Format < 1 || m.Format > RunFormat {
		return nil, fmt.Errorf("reading %s: format %d, but this memtox reads formats 1 to %d; use the memtox that wrote it",
			path, m.Format, RunFormat)
	}
	if m.Format >= sealedFormat && m.SHA256 == "" {
		return nil, Changed(path, "it has no digest of itself")
	}
	return &m, nil
}

// zeros stand for a digest while it is computed.
var zeros = bytes.Repeat([]byte("0"), 2*sha256.Size)

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeManifest(d disk.FS, dir, name string, m *Manifest) error {
	m.Format, m.SHA256 = RunFormat, string(zeros)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", in(dir, name), err)
	}
	b = append(b, '\n')
	m.SHA256 = digest(b)
	copy(b[bytes.LastIndex(b, zeros):], m.SHA256)
	_, err = writeFile(d, dir, name, b)
	return err
}

// file is what the manifest says of a file; nil where it does not name it.
func (m *Manifest) file(name string) *File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// check compares an opened file with what a manifest says of it.
func (want *File) check(path string, f disk.File) error {
	have, err := describe(f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return want.same(path, have)
}

func (want *File) same(path string, have File) error {
	if have.Bytes != want.Bytes || want.SHA256 != "" && have.SHA256 != want.SHA256 {
		return Changed(path, "it has %d bytes and the SHA-256 %.16s…, the run wrote %d bytes and %.16s…", have.Bytes,
			have.SHA256, want.Bytes, want.SHA256)
	}
	return nil
}

// manifestFor reads a manifest and holds it to the run.json that was read.
func manifestFor(dir, name string, run File) (*Manifest, error) {
	m, err := readManifest(dir, name)
	if err != nil {
		return nil, err
	}
	if want := m.file(runFile); want != nil {
		err = want.same(in(dir, runFile), run)
	} else if m.Format >= sealedFormat {
		err = Changed(in(dir, name), "it does not name %s", runFile)
	}
	return m, err
}

// rest checks what is in the directory of a finished run beside the rows: that of
// transcripts their number and size, for each has a checksum of its own.
func (m *Manifest) rest(dir string) error {
	if want := m.file(VerdictsFile); want != nil {
		if err := want.Check(dir); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for _, want := range m.Transcripts {
		known[want.Name] = true
		st, err := os.Lstat(in(dir, want.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Changed(in(dir, want.Name), "it is missing")
		case err != nil:
			return fmt.Errorf("reading %s: %w", in(dir, want.Name), err)
		case !st.Mode().IsRegular():
			return notPlain(in(dir, want.Name), st.Mode())
		case st.Size() != want.Bytes:
			return Changed(in(dir, want.Name), "it has %d bytes, the run wrote %d", st.Size(), want.Bytes)
		}
	}
	files, err := listRun(disk.OS, dir)
	if err != nil {
		return err
	}
	for _, n := range files.numbers[texts] {
		if !known[texts.name(n)] {
			return Changed(in(dir, texts.name(n)), "the run wrote no such file")
		}
	}
	return nil
}

// Check compares a file with what was said of it.
func (want *File) Check(dir string) error {
	f, err := openFile(disk.OS, dir, want.Name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Changed(in(dir, want.Name), "it is missing")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return want.check(in(dir, want.Name), f)
}

// FileOf is what a manifest says of a file that is whole.
func FileOf(dir, name string) (File, error) {
	f, err := openFile(disk.OS, dir, name, os.O_RDONLY)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	file, err := describe(f)
	if err != nil {
		return File{}, diskError("reading", in(dir, name), err)
	}
	file.Name = name
	return file, nil
}
