package view

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/results"
	"github.com/memtox/memtox/results/internal/runtest"
)

// site is a server without a network.
type site struct {
	t testing.TB
	s *Server
	h http.Handler
}

var siteAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4321}

func newSite(t testing.TB, dir string) *site {
	t.Helper()
	runs, err := NewRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runs.Close)
	x := &site{t: t, s: NewServer(runs)}
	x.h = x.s.Handler(siteAddr)
	return x
}

func (x *site) do(method, target, host string, known bool) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	if known {
		r.Header.Set("Authorization", "Bearer "+x.s.token)
	}
	w := httptest.NewRecorder()
	x.h.ServeHTTP(w, r)
	return w.Result()
}

// get asks an API and reads the answer.
func (x *site) get(path string, params url.Values, into any) {
	x.t.Helper()
	r := x.do("GET", path+"?"+params.Encode(), "127.0.0.1:4321", true)
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		x.t.Fatalf("%s %v: status %d, %v, %s", path, params, r.StatusCode, err, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		x.t.Fatal(err)
	}
}

type tableAnswer struct {
	Version  int  `json:"version"`
	Finished bool `json:"finished"`
	Total    int  `json:"total"`
}

func TestOnlyThePersonWithTheTokenGetsIn(t *testing.T) {
	dir := t.TempDir()
	runtest.Write(t, dir, runtest.Spec{Trials: 12})
	x := newSite(t, dir)
	for _, c := range []struct {
		name, method, target, host string
		known                      bool
		want                       int
	}{
		{"page", "GET", "/", "127.0.0.1:4321", true, 200},
		{"page by the other name", "GET", "/", "localhost:4321", true, 200},
		{"script", "GET", "/app.js", "127.0.0.1:4321", true, 200},
		{"page without the token: it holds nothing", "GET", "/", "127.0.0.1:4321", false, 200},
		{"rows without the token", "GET", "/api/runs", "127.0.0.1:4321", false, 403},
		{"rows with the token in the address", "GET", "/api/runs?token=" + x.s.token, "127.0.0.1:4321", false, 403},
		{"rows with the token", "GET", "/api/runs", "127.0.0.1:4321", true, 200},
		{"a name that resolves here", "GET", "/", "evil.example:4321", true, 421},
		{"its token too", "GET", "/api/runs", "evil.example", true, 421},
		{"another port", "GET", "/", "127.0.0.1:80", true, 421},
		{"no port", "GET", "/", "127.0.0.1", true, 421},
		{"no host", "GET", "/", "", true, 421},
		{"writing", "POST", "/api/runs", "127.0.0.1:4321", true, 405},
		{"asking first", "OPTIONS", "/api/runs", "127.0.0.1:4321", true, 405},
		{"no such file", "GET", "/assets/app.js", "127.0.0.1:4321", true, 404},
		{"a path upwards", "GET", "/../server.go", "127.0.0.1:4321", true, 307},
		{"no such run", "GET", "/api/table?run=../..", "127.0.0.1:4321", true, 404},
		{"no such trial", "GET", "/api/trial?run=.&id=0123456789abcdef", "127.0.0.1:4321", true, 404},
		{"an id that is none", "GET", "/api/trial?run=.&id=%00", "127.0.0.1:4321", true, 404},
	} {
		r := x.do(c.method, c.target, c.host, c.known)
		if r.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.name, r.StatusCode, c.want)
		}
		if len(r.Cookies()) > 0 {
			t.Errorf("%s: a cookie, which every server at this address would be sent", c.name)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") ||
			strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", c.name, p)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", c.name, r.Header)
		}
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), x.s.token) {
			t.Errorf("%s: the answer holds the token", c.name)
		}
	}
}

func TestListenerIsOnTheLoopbackInterface(t *testing.T) {
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		t.Errorf("it listens on %v", ip)
	}
}

func TestTokensDiffer(t *testing.T) {
	if a, b := NewServer(nil).token, NewServer(nil).token; a == b || len(a) != 64 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

// Rows come out of the packed store as a reader gives them.
func TestPackedRowsAreTheRows(t *testing.T) {
	for name, s := range map[string]runtest.Spec{
		"finished": {Trials: 200, NotScored: 0.1, Hostile: hostileText},
		"killed":   {Trials: 200, NotScored: 0.1, Unfinished: true},
	} {
		dir := t.TempDir()
		runtest.Write(t, dir, s)
		b := &openRun{dir: dir}
		e, err := b.now()
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		r, err := results.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		n := 0
		for want, err := range r.Entries(results.Everything) {
			if err != nil {
				t.Fatal(err)
			}
			row, _ := e.table.row(want.Trial.ID)
			got, err := e.entry(row)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Trial, got.Trial); d != "" {
				t.Fatalf("%s (-want +got):\n%s", name, d)
			}
			if len(got.Decisions) != len(want.Decisions) || len(got.Decisions) > 0 && !cmp.Equal(want.Decisions, got.Decisions) {
				t.Fatalf("%s (-want +got):\n%s", name, cmp.Diff(want.Decisions, got.Decisions))
			}
			n++
		}
		if n != 200 {
			t.Errorf("%s: %d trials", name, n)
		}
	}
}

// A trial's page has what a judge that is a language model answered, as it was said:
// the script makes it inert.
func TestAPageHasTheVerdictsOfAJudge(t *testing.T) {
	dir := t.TempDir()
	spec := runtest.Spec{Trials: 24, Transcript: twoSessions, Judged: true, Hostile: hostileText}
	runtest.Write(t, dir, spec)
	x := newSite(t, dir)
	judged := 0
	for i := range spec.Trials {
		trial, _ := spec.Trial(i)
		var p Page
		x.get("/api/trial", url.Values{"run": {"."}, "id": {trial.ID}}, &p)
		if trial.Judge == "" {
			if len(p.Verdicts) > 0 {
				t.Errorf("trial %d, which was not judged, has verdicts %+v", i, p.Verdicts)
			}
			continue
		}
		judged++
		if len(p.Verdicts) != 3 {
			t.Fatalf("trial %d has verdicts %+v", i, p.Verdicts)
		}
		if d := cmp.Diff(results.Answer{Question: "influenced", About: "ANSWER\nSent." + hostileText,
			Why: "the server answered 500: " + hostileText}, p.Verdicts[2]); d != "" {
			t.Errorf("trial %d (-want +got):\n%s", i, d)
		}
		if v := p.Verdicts[1]; v.Verdict != "yes" || !strings.HasSuffix(v.Quote, hostileText) {
			t.Errorf("trial %d: %+v", i, v)
		}
	}
	if judged == 0 {
		t.Error("no trial was judged")
	}
}

func TestRunsOfADirectoryAreListed(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a", "deep/er/b"} {
		runtest.Write(t, filepath.Join(root, d), runtest.Spec{Trials: 3})
	}
	runtest.Write(t, filepath.Join(root, "c"), runtest.Spec{Trials: 3, Planned: 9, Unfinished: true})
	if err := os.MkdirAll(filepath.Join(root, "broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "broken", "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := newSite(t, root)
	var a struct{ Runs []RunInfo }
	x.get("/api/runs", nil, &a)
	got := map[string]string{}
	for _, r := range a.Runs {
		got[r.Key] = fmt.Sprint(r.Finished, r.Error != "")
	}
	want := map[string]string{"a": "true false", "deep/er/b": "true false", "c": "false false", "broken": "false true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := NewRuns(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run.json") {
		t.Errorf("runs of nothing: %v", err)
	}
	if _, err := NewRuns(filepath.Join(root, "nowhere")); err == nil {
		t.Error("runs of a directory that is not there")
	}
}

// Many requests at once, while the run grows.
func TestRequestsMeetAGrowingRun(t *testing.T) {
	dir := t.TempDir()
	s := runtest.Spec{Trials: 400, Transcript: twoSessions}
	j, err := results.Create(dir, runtest.Run(s), results.Options{PartRows: 60})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Append(t, j, s, 0, 50)
	x := newSite(t, dir)
	first, _ := s.Trial(0)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 20 {
				b, err := x.s.list.open(".")
				if err != nil {
					t.Error(err)
					return
				}
				b.mu.Lock()
				if b.last != nil {
					b.last.read = runtest.Started // long ago: read again
				}
				b.mu.Unlock()
				for _, target := range []string{"/api/table?run=.", "/api/figures?run=.", "/api/trial?run=.&id=" + first.ID} {
					r := x.do("GET", target, "127.0.0.1:4321", true)
					body, _ := io.ReadAll(r.Body)
					if r.StatusCode != 200 && !strings.Contains(string(body), errSuperseded.Error()) {
						t.Errorf("%s: status %d, %s", target, r.StatusCode, body)
					}
				}
			}
		})
	}
	runtest.Append(t, j, s, 50, 400)
	wait.Wait()
	if _, err := j.Finish(nil); err != nil {
		t.Fatal(err)
	}
	b, _ := x.s.list.open(".")
	b.mu.Lock()
	b.last.read = runtest.Started
	b.mu.Unlock()
	var a tableAnswer
	x.get("/api/table", url.Values{"run": {"."}}, &a)
	if a.Total != 400 || !a.Finished {
		t.Errorf("at the end %d trials, finished %v", a.Total, a.Finished)
	}
}

// BenchmarkOpen reads a run of 100,000 trials and 800,000 decisions: the table,
// which the first page waits for, and all rows, which the first trial waits for.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	runtest.Write(b, dir, runtest.Spec{Trials: 100_000})
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			r, err := results.OpenReader(dir)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := readTable(r); err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
	})
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			book := &openRun{dir: dir}
			e, err := book.now()
			if err != nil {
				b.Fatal(err)
			}
			e.pack.Do(e.packRows)
			bytes := 0
			for _, block := range e.blocks {
				bytes += len(block)
			}
			b.ReportMetric(float64(bytes)/100_000, "bytes/trial")
			book.close()
		}
	})
}

// The script makes no markup of texts and asks nobody but its own server.
func TestAssetsHoldNothingThatCouldRunATextOrLeave(t *testing.T) {
	for name, banned := range map[string][]string{
		"assets/app.js": {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
			"setAttribute('style", "://", "localStorage", "import("},
		"assets/style.css":  {"url(", "@import", "://"},
		"assets/index.html": {"<style", "style=", "onclick", "onload", "://", "<script>"},
	} {
		b, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range banned {
			if strings.Contains(string(b), s) {
				t.Errorf("%s holds %q", name, s)
			}
		}
	}
}
