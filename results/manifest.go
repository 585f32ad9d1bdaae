package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Manifest is manifest.json, written last: a directory that has one holds a
// finished run.
type Manifest struct {
	Format int    `json:"format"`
	Files  []File `json:"files"` // trials, decisions and, where there are transcripts, their index
	// Transcripts are the files that the index points into. The index holds the
	// checksum of every frame, so their content is covered by its hash.
	Transcripts []File `json:"transcripts,omitempty"`
}

// File is one file of a finished run.
type File struct {
	Name   string `json:"name"` // relative to the run directory, with slashes
	Rows   int64  `json:"rows,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// ReadManifest reads the manifest of a finished run. Where there is none the
// error is an [fs.ErrNotExist].
func ReadManifest(dir string) (*Manifest, error) {
	path := in(dir, manifestFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if m.Format < 1 || m.Format > RunFormat {
		return nil, fmt.Errorf("reading %s: format %d, but this memtox reads formats 1 to %d; use the memtox that wrote it", path, m.Format, RunFormat)
	}
	return &m, nil
}

// Verify compares the files of a finished run with its manifest.
func Verify(dir string) error {
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	for _, want := range m.Files {
		size, sum, err := hashFile(in(dir, want.Name))
		if err != nil {
			return fmt.Errorf("verifying %s: %w", dir, err)
		}
		if size != want.Bytes || sum != want.SHA256 {
			return fmt.Errorf("verifying %s: %s is not the file that the run wrote (%d bytes, SHA-256 %s; the manifest says %d bytes, %s)",
				dir, want.Name, size, sum, want.Bytes, want.SHA256)
		}
	}
	for _, want := range m.Transcripts {
		st, err := os.Stat(in(dir, want.Name))
		if err != nil {
			return fmt.Errorf("verifying %s: %w", dir, err)
		}
		if st.Size() != want.Bytes {
			return fmt.Errorf("verifying %s: %s has %d bytes; the manifest says %d", dir, want.Name, st.Size(), want.Bytes)
		}
	}
	return nil
}

func hashFile(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}
