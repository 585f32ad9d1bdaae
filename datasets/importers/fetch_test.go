package importers

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var content = bytes.Repeat([]byte("{\"id\":\"ADV_1\"}\n"), 40_000)

func source(data []byte) Source {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return Source{Name: "mine", Repository: "owner/name", Commit: "abc",
		Files: []File{{"x.jsonl", "data/x.jsonl", int64(len(data)), hex.EncodeToString(h.Sum(nil))}}}
}

// breaking serves the content but ends the first answers after so many bytes.
func breaking(t *testing.T, ranges bool, breaks ...int) (base string, asked *[]string) {
	t.Helper()
	var n atomic.Int32
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		*asked = append(*asked, r.URL.Path+" "+r.Header.Get("Range"))
		if !ranges {
			r.Header.Del("Range")
		}
		if i < len(breaks) {
			from := 0
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
				w.WriteHeader(http.StatusPartialContent)
			} else {
				w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			}
			_, _ = w.Write(content[from : from+breaks[i]])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "x.jsonl", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func fetched(t *testing.T, dir string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "x.jsonl"))
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%v: %d bytes of %d", err, len(got), len(content))
	}
	if _, err := os.Stat(filepath.Join(dir, "x.jsonl.part")); err == nil {
		t.Error("a part is left")
	}
}

func TestABrokenDownloadGoesOnWhereItEnded(t *testing.T) {
	base, asked := breaking(t, true, 100_000, 50_000)
	dir := t.TempDir()
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: base, Pause: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	fetched(t, dir)
	if want := "[/owner/name/abc/data/x.jsonl  /owner/name/abc/data/x.jsonl bytes=100000- /owner/name/abc/data/x.jsonl " +
		"bytes=150000-]"; fmt.Sprint(*asked) != want {
		t.Errorf("asked %v", *asked)
	}
	// A second time nothing is asked.
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: base}); err != nil || len(*asked) != 3 {
		t.Errorf("%v, asked %d times", err, len(*asked))
	}
}

func TestTheNextRunGoesOnToo(t *testing.T) {
	base, asked := breaking(t, true, 100_000)
	dir := t.TempDir()
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: base, Attempts: 1}); err == nil ||
		!strings.Contains(err.Error(), "broke off at byte 100000") {
		t.Fatalf("got %v", err)
	}
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: base}); err != nil {
		t.Fatal(err)
	}
	fetched(t, dir)
	if (*asked)[1] != "/owner/name/abc/data/x.jsonl bytes=100000-" {
		t.Errorf("asked %v", *asked)
	}
}

func TestAServerWithoutRangesStartsOver(t *testing.T) {
	base, _ := breaking(t, false, 100_000)
	dir := t.TempDir()
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: base, Pause: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	fetched(t, dir)
}

func TestWhatIsNotThePublishedFileIsNotKept(t *testing.T) {
	for name, served := range map[string][]byte{"changed": append([]byte("#"), content[1:]...),
		"longer": append(bytes.Clone(content), 'x')} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(served) }))
		dir := t.TempDir()
		_, err := Fetch(t.Context(), source(content), dir, Options{Base: s.URL, Attempts: 1})
		s.Close()
		var m *MismatchError
		if !errors.As(err, &m) {
			t.Errorf("%s: got %v", name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
	// Neither is somebody's own file overwritten.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), source(content), dir, Options{Base: "http://localhost:1"}); err == nil ||
		!strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderServesWithoutANetwork(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "x.jsonl"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	s := source(content)
	s.Offline = "it is nowhere"
	if _, err := Fetch(t.Context(), s, dir, Options{From: from}); err != nil {
		t.Fatal(err)
	}
	fetched(t, dir)
	if _, err := Fetch(t.Context(), s, t.TempDir(), Options{}); err == nil ||
		!strings.Contains(err.Error(), "it is nowhere; with the file in a folder: --from DIR") {
		t.Errorf("got %v", err)
	}
	if _, err := Fetch(t.Context(), s, t.TempDir(), Options{From: dir + "/none"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAMissingFileIsNotAskedForAgain(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		n++
		http.Error(w, "no", http.StatusNotFound)
	}))
	defer s.Close()
	if _, err := Fetch(t.Context(), source(content), t.TempDir(), Options{Base: s.URL}); err == nil || n != 1 ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("%v after %d requests", err, n)
	}
}

func TestSourcesArePinned(t *testing.T) {
	for _, s := range Sources() {
		for _, f := range s.Files {
			if len(f.Blob) != 40 || f.Size == 0 || s.Offline == "" && (f.Path == "" || len(s.Commit) != 40) {
				t.Errorf("%s: %+v", s.Name, f)
			}
		}
	}
	if dir := os.Getenv("MEMTOX_SHARED_DATA"); dir != "" {
		for _, name := range []string{"amg", "notinject"} {
			s, _ := Find(name)
			if _, err := Fetch(t.Context(), s, t.TempDir(), Options{From: dir}); err != nil {
				t.Error(err)
			}
		}
	}
}
