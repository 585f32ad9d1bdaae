package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/view"
)

// One flipped bit in any file of a run directory: whoever reads it says what it said
// before, or ends with exit code 3 and the name of the file. MEMTOX_LONG=1 flips 200
// bits of a finished run and 200 of one that is not.
func TestAFlippedBitIsNeverSilent(t *testing.T) {
	t.Parallel()
	flips := times(200, 10)
	c := newConsole(t)
	c.must(strings.Fields("run --dataset memtox-smoke --agent hermes --defense none,guard --limit 16 --out finished")...)
	run, err := results.ReadRun(filepath.Join(c.dir, "finished"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := results.Create(filepath.Join(c.dir, "unfinished"), run, results.Options{PartRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.OpenReader(filepath.Join(c.dir, "finished"))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Entries(results.Everything) {
		if err == nil && j.Len() < 20 {
			var text []byte
			if text, err = r.Transcript(e.Trial.ID); err == nil {
				err = j.Append(&e.Trial, e.Decisions, text)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	readers := [][]string{
		{"report", "x", "--format", "markdown"}, {"compare", "x", "--metric", "end_to_end,utility", "--show", "changed"},
		{"gate", "x", "--require", "guard.end_to_end <= 0.6"}, {"gate", "y", "--baseline", "x", "--exact"},
		{"export", "x", "--format", "jsonl"}, {"export", "x", "--format", "jsonl", "--table", "decisions"},
		{"merge", "x", "-o", "merged", "--format", "json"}, {"view"}, {"run", "--resume", "--out", "x", "--format", "json"},
	}
	for _, of := range []string{"finished", "unfinished"} {
		base := filepath.Join(c.dir, of)
		var files []string
		if err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path[len(base)+1:])
			}
			return err
		}); err != nil || len(files) < 6 {
			t.Fatal(files, err)
		}
		ask := func(file string, at int, bit byte) (said [][2]string) {
			d := newConsole(t)
			for name, from := range map[string]string{"x": base, "y": filepath.Join(c.dir, "finished")} {
				if err := os.CopyFS(filepath.Join(d.dir, name), os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
			}
			if file != "" {
				b, err := os.ReadFile(filepath.Join(d.dir, "x", file))
				if err != nil {
					t.Fatal(err)
				}
				b[at%len(b)] ^= bit
				if err := os.WriteFile(filepath.Join(d.dir, "x", file), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range readers {
				if args[0] == "view" {
					status, text := viewed(t, filepath.Join(d.dir, "x"), run)
					said = append(said, [2]string{status, strings.ReplaceAll(text, d.dir, "")})
					continue
				}
				code := d.run(args...)
				out := d.out.String()
				if strings.Contains(out, `"digest"`) && args[0] != "export" { // of the figures, what no clock changes
					var m merged
					if err := json.Unmarshal([]byte(out), &m); err == nil {
						out = fmt.Sprint(m.Digest, m.Planned, m.Trials)
					}
				}
				said = append(said, [2]string{fmt.Sprint(code), out + d.err.String()})
			}
			return said
		}
		sound, rng := ask("", 0, 0), rand.New(rand.NewPCG(1, uint64(len(of))))
		same, loud := 0, 0
		for i := range flips {
			file, at, bit := files[i%len(files)], rng.IntN(1<<30), byte(1)<<rng.IntN(8)
			for q, now := range ask(file, at, bit) {
				switch {
				case now == sound[q]:
					same++
				case (now[0] == fmt.Sprint(Failed) || now[0] == "500") && strings.Contains(now[1], filepath.Base(file)):
					loud++
				default:
					t.Errorf("%s, byte %d of %s, bit %08b: %v says %.300q, and said %.300q", of, at, file, bit, readers[q], now,
						sound[q])
				}
			}
		}
		t.Logf("%s: %d flips over %d files: %d readings as before, %d refused with the file's name", of, flips, len(files),
			same, loud)
	}
}

// viewed is what the page of a run shows: the list, the trials and one trial.
func viewed(t *testing.T, dir string, run *results.Run) (status, text string) {
	t.Helper()
	runs, err := view.NewRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	s := view.NewServer(runs)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config.Handler = s.Handler(srv.Listener.Addr())
	srv.Start()
	defer srv.Close()
	_, token, _ := strings.Cut(s.URL(srv.Listener.Addr()), "#token=")
	get := func(url string) (int, string) {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(b)
	}
	code, text := get(srv.URL + "/api/trials?run=.&n=100&columns=case,influenced,detected")
	if code == http.StatusOK {
		var page struct{ Rows [][]any }
		if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Rows) == 0 {
			return "200", text
		}
		var one string
		code, one = get(fmt.Sprintf("%s/api/trial?run=.&id=%s", srv.URL, page.Rows[0][0]))
		text += one
	}
	if strings.Contains(text, `"problem":"reading the transcript`) {
		code = http.StatusInternalServerError // the page shows the rest of the trial and says it there
	}
	return fmt.Sprint(code), text
}
