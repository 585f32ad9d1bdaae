package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memtox/memtox/internal/disk"
)

// unconfirmed takes from the first journal that its records have reached the disk: so
// a machine that failed may leave it.
func unconfirmed(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(in(dir, journals.name(1)), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(markOf(headSize), headSize-markSize)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// asFormat writes the manifest of a finished run as a memtox of that format would, of
// the files as they are. Before format 3 it had no digest of run.json, of transcripts
// and of itself.
func asFormat(t *testing.T, dir string, format int) {
	t.Helper()
	b, err := os.ReadFile(in(dir, runFile))
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(fmt.Sprintf(`"format": %d`, RunFormat)), []byte(fmt.Sprintf(`"format": %d`, format)), 1)
	if err := os.WriteFile(in(dir, runFile), b, 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := &Manifest{Format: format}
	for _, f := range m.Files {
		if format >= sealedFormat || f.Name != runFile {
			now, err := FileOf(dir, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			now.Rows = f.Rows
			old.Files = append(old.Files, now)
		}
	}
	for _, f := range m.Transcripts {
		if format >= sealedFormat {
			old.Transcripts = append(old.Transcripts, f)
			continue
		}
		old.Transcripts = append(old.Transcripts, File{Name: f.Name, Bytes: f.Bytes})
	}
	if format >= sealedFormat {
		if err := writeManifest(disk.OS, dir, manifestFile, old); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b, err = json.Marshal(old); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in(dir, manifestFile), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// A file of a run that is not what the run wrote is an error that names it, for
// whoever reads the directory and for whoever goes on with it.
func TestAFileThatIsNotTheRunsIsNamed(t *testing.T) {
	finished, unfinished := t.TempDir(), t.TempDir()
	for _, dir := range []string{finished, unfinished} {
		j := mustCreate(t, dir, Options{PartRows: 10}, 25)
		appendTrials(t, j, upTo(25))
		if err := os.WriteFile(in(dir, VerdictsFile), []byte("{}\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		var err error
		if dir == finished {
			_, err = j.Finish(nil)
		} else {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("what is read here may not be\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{finished, unfinished} {
		names := filesIn(t, base)
		if len(names) < 7 {
			t.Fatalf("%s holds %v only", base, names)
		}
		for _, name := range names {
			if base == unfinished && name == VerdictsFile {
				continue // whoever reads it checks it
			}
			for how, spoil := range map[string]func(path string, b []byte) error{
				"cut":      func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
				"emptied":  func(path string, _ []byte) error { return os.Truncate(path, 0) },
				"longer":   func(path string, b []byte) error { return os.WriteFile(path, append(b, "\n{}"...), 0o666) },
				"missing":  func(path string, _ []byte) error { return os.Remove(path) },
				"a link":   func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Symlink(elsewhere, path)) },
				"a folder": func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
				"the copy": func(path string, b []byte) error {
					return errors.Join(os.Rename(path, path+".x"), os.Symlink(path+".x", path))
				},
				"a flipped": func(path string, b []byte) error { b[len(b)/3] ^= 4; return os.WriteFile(path, b, 0o666) },
			} {
				journal := strings.HasPrefix(name, journals.prefix)
				switch { // what a run may have left so itself, or shows elsewhere
				case name == runFile && how == "missing", name == manifestFile && how == "missing",
					journal && (how == "longer" || how == "emptied"),
					base == unfinished && strings.HasPrefix(name, texts.prefix),
					name != journals.name(3) && base == unfinished && how == "missing" && journal:
					continue
				}
				t.Run(filepath.Base(base)+" "+name+" "+how, func(t *testing.T) {
					dir := copyDir(t, base)
					b, err := os.ReadFile(in(dir, name))
					if err == nil {
						err = spoil(in(dir, name), b)
					}
					if err != nil {
						t.Fatal(err)
					}
					r, err := OpenReader(dir)
					if err == nil {
						for e, bad := range r.Entries(Everything) {
							if err = bad; err == nil && e.HasTranscript() {
								_, err = r.Transcript(e.Trial.ID)
							}
							if err != nil {
								break
							}
						}
						r.Close()
						if err == nil && base == finished {
							err = verify(dir)
						}
					}
					for who, err := range map[string]error{"a reader": err, "a run that goes on": resumed(dir)} {
						if err == nil || errors.Is(err, ErrFinished) && strings.HasPrefix(name, texts.prefix) {
							if err != nil {
								continue // it reads no transcript
							}
							t.Fatalf("%s has no fault to find", who)
						}
						if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrFinished) ||
							!strings.Contains(err.Error(), filepath.FromSlash(name)) {
							t.Errorf("%s: %v", who, err)
						}
					}
					if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "what is read here may not be\n" {
						t.Errorf("the file elsewhere was written to: %q, %v", b, err)
					}
				})
			}
		}
	}
}

func resumed(dir string) error {
	j, err := Resume(dir, Options{PartRows: 10})
	if err == nil {
		err = j.Close()
	}
	return err
}

// filesIn lists the files of a directory, with slashes.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// What the run wrote into is its own: links that wait under the names of files to come
// are not written through, and what has no end is not waited for.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j := mustCreate(t, dir, Options{PartRows: 10}, 25)
	appendTrials(t, j, upTo(5))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{trialsFile, decisionsFile, manifestFile, indexFile, trialParts.name(1), decisionParts.name(1),
		manifestParts.name(1), indexParts.name(1)} {
		if err := os.Symlink(victim, in(dir, name+tmpSuffix)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{texts.name(2), texts.name(3)} {
		if err := os.Symlink(victim, in(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Resume(dir, Options{}); err == nil || !strings.Contains(err.Error(), journals.name(2)) {
		t.Errorf("transcripts of a journal that is not there: %v", err)
	}
	os.Remove(in(dir, texts.name(2)))
	os.Remove(in(dir, texts.name(3)))
	if err := os.Symlink(victim, in(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(dir, Options{}); err == nil || !strings.Contains(err.Error(), lockFile) {
		t.Errorf("a lock that is a link: %v", err)
	}
	os.Remove(in(dir, lockFile))
	j = mustResume(t, dir, Options{PartRows: 10})
	if err := os.Symlink(victim, in(dir, texts.name(2))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, in(dir, manifestFile+tmpSuffix)); err != nil {
		t.Fatal(err)
	}
	appendTrials(t, j, upTo(25))
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	checkRun(t, dir, upTo(25))
	if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
		t.Errorf("the file was written to: %q, %v", b, err)
	}
	os.Rename(in(dir, transcriptsDir), filepath.Join(t.TempDir(), "t"))
	if err := os.Symlink(filepath.Dir(victim), in(dir, transcriptsDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(dir); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a folder that is a link: %v", err)
	}
}

// What waits on a coordinator's own server lies in the run directory too.
func TestAFolderWithALinkInItIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := CheckFolder(dir, "queue.tmp"); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	deep := filepath.Join(dir, "queue.tmp", "jetstream", "x")
	if err := errors.Join(os.MkdirAll(deep, 0o777), os.WriteFile(filepath.Join(deep, "1.blk"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(dir, "queue.tmp"); err != nil {
		t.Errorf("a folder with files: %v", err)
	}
	if err := os.Symlink(dir, filepath.Join(deep, "2.blk")); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(dir, "queue.tmp"); err == nil || !strings.Contains(err.Error(), "2.blk: it is a symbolic link") {
		t.Errorf("a link in it: %v", err)
	}
	if err := errors.Join(os.Rename(filepath.Join(dir, "queue.tmp"), filepath.Join(dir, "moved")),
		os.Symlink("moved", filepath.Join(dir, "queue.tmp"))); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(dir, "queue.tmp"); err == nil ||
		!strings.Contains(err.Error(), "queue.tmp: it is a symbolic link") {
		t.Errorf("a folder that is a link: %v", err)
	}
}

// A finished run has a row of every trial that it plans, whatever its manifest says:
// in any format, for whoever reads it and for whoever goes on with it.
func TestAFinishedRunHasEveryTrialOfItsPlan(t *testing.T) {
	for format := 1; format <= RunFormat; format++ {
		for _, planned := range []int64{-6, 0, 5, 6, 7, 1 << 40} {
			dir := t.TempDir()
			j := mustCreate(t, dir, Options{}, 6)
			appendTrials(t, j, upTo(6))
			if _, err := j.Finish(nil); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(in(dir, runFile))
			if err != nil {
				t.Fatal(err)
			}
			b = bytes.Replace(b, []byte(`"planned": 6`), fmt.Appendf(nil, `"planned": %d`, planned), 1)
			if err := os.WriteFile(in(dir, runFile), b, 0o666); err != nil {
				t.Fatal(err)
			}
			asFormat(t, dir, format)
			r, err := OpenReader(dir)
			if err == nil {
				r.Close()
			}
			resumes := resumed(dir)
			if planned == 6 {
				if err != nil || !errors.Is(resumes, ErrFinished) {
					t.Errorf("format %d, as it was: %v, %v", format, err, resumes)
				}
				continue
			}
			for _, err := range []error{err, resumes} {
				if err == nil || errors.Is(err, ErrFinished) || !strings.Contains(err.Error(), runFile) ||
					!strings.Contains(err.Error(), dir) {
					t.Errorf("format %d, %d planned: %v", format, planned, err)
				}
			}
		}
	}
}

// verify compares every file of a finished run with its manifest, the whole of its
// transcripts too.
func verify(dir string) error {
	r, err := OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	m, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	for i := range m.Transcripts {
		if err := m.Transcripts[i].Check(dir); err != nil {
			return err
		}
	}
	return nil
}
