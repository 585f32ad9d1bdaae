package cassette_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/cassette"
	"github.com/memtox/memtox/agents/model/ollama"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/internal/remote"
)

func TestMain(m *testing.M) {
	if os.Getenv("MEMTOX_TEST_RECORDER") != "" {
		recordForEver()
		return
	}
	goleak.VerifyTestMain(m)
}

// counter is a server that answers each request with its number.
func counter(t testing.TB) (*httptest.Server, *atomic.Int64) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"answer":%d}`, n.Add(1))
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func newClient(t testing.TB, o remote.Options) *remote.Client {
	c := remote.New(o)
	t.Cleanup(c.Close)
	return c
}

// ask sends a body and returns the answer.
func ask(ctx context.Context, rt http.RoundTripper, url, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func mustAsk(t testing.TB, ctx context.Context, rt http.RoundTripper, url, body string) string {
	t.Helper()
	a, err := ask(ctx, rt, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func record(t testing.TB, path string, c *remote.Client) *cassette.Cassette {
	t.Helper()
	k, err := cassette.Record(path, c.Redactor)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func replay(t testing.TB, path string) *cassette.Cassette {
	t.Helper()
	k, err := cassette.Replay(path, cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func closed(t testing.TB, k *cassette.Cassette) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// Identical requests of trials that run at the same time, and repeats within a
// trial, each get their own answer again, in whatever order they are replayed.
func TestIdenticalRequestsAreToldApart(t *testing.T) {
	s, sent := counter(t)
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{InFlight: 8})
	k := record(t, path, c)
	rt := k.Wrap("", c)
	const trials, repeats = 20, 3
	var got [trials][repeats]string
	var wg sync.WaitGroup
	for i := range trials {
		wg.Go(func() {
			ctx := remote.WithTrial(context.Background(), fmt.Sprintf("trial-%d", i))
			for j := range repeats {
				got[i][j], _ = ask(ctx, rt, s.URL+"/v1/x", `{"same":true}`)
			}
		})
	}
	wg.Wait()
	closed(t, k)
	if sent.Load() != trials*repeats {
		t.Fatalf("%d requests were sent, want %d", sent.Load(), trials*repeats)
	}
	s.Close()

	k = replay(t, path)
	rt = k.Wrap("", nil)
	for i := trials - 1; i >= 0; i-- {
		ctx := remote.WithTrial(context.Background(), fmt.Sprintf("trial-%d", i))
		for j := range repeats {
			// White space and the order of members do not matter.
			if a := mustAsk(t, ctx, rt, s.URL+"/v1/x", `{ "same" : true }`); a != got[i][j] {
				t.Errorf("trial %d, time %d: replayed %s, recorded %s", i, j, a, got[i][j])
			}
		}
	}
	if n, _ := k.Held(); n != trials*repeats {
		t.Errorf("it holds %d exchanges", n)
	}
	// The same trial started again is served the same again.
	ctx := remote.WithTrial(context.Background(), "trial-7")
	if a := mustAsk(t, ctx, rt, s.URL+"/v1/x", `{"same":true}`); a != got[7][0] {
		t.Errorf("a trial that starts again gets %s, want %s", a, got[7][0])
	}
}

// What is not on the cassette is an error that names the first difference, and
// nothing is sent.
func TestMissNamesTheFirstDifference(t *testing.T) {
	s, sent := counter(t)
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{})
	k := record(t, path, c)
	trial := func(id string) context.Context { return remote.WithTrial(context.Background(), id) }
	ctx := trial("t1")
	mustAsk(t, ctx, k.Wrap("", c), s.URL+"/v1/chat", `{"model":"m","seed":1,"messages":[{"role":"user","content":"Hello there, how are you?"}]}`)
	mustAsk(t, ctx, k.Wrap("", c), s.URL+"/v1/chat", `{"model":"m","seed":1,"messages":[{"role":"user","content":"Something else"},{"role":"user"}]}`)
	closed(t, k)
	before := sent.Load()
	live := remote.RoundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("a replay sent something")
		return nil, errors.New("sent")
	})
	for _, test := range []struct {
		trial, path, body string
		want              []string
	}{
		{"t1", "/v1/chat", `{"model":"m","seed":1,"messages":[{"role":"user","content":"Hello there, who are you?"}]}`,
			[]string{"trial t1", "/messages/0/content from byte 13 on", `lo there, how are you?`, `lo there, who are you?`}},
		{"t1", "/v1/chat", `{"model":"m","seed":2,"messages":[{"role":"user","content":"Hello there, how are you?"}]}`,
			[]string{"at /seed: recorded 1, asked 2"}},
		{"t1", "/v1/chat", `{"model":"m","messages":[{"role":"user","content":"Hello there, how are you?"}]}`,
			[]string{"at /seed: recorded 1, asked nothing"}},
		{"t1", "/v1/chat", `{"model":"m","seed":1,"messages":[{"role":"user","content":"Hello there, how are you?"},{"role":"tool"}]}`, []string{`at /messages/1: recorded nothing, asked {"role":"tool"}`}},
		{"t2", "/v1/chat", `{"model":"m","seed":1,"messages":[{"role":"user","content":"Hello there, how are you?"}]}`,
			[]string{"trial t2", "only for other trials"}},
		{"t1", "/v1/other", `{}`, []string{"no request to POST /v1/other"}},
	} {
		k := replay(t, path)
		_, err := ask(trial(test.trial), k.Wrap("", live), s.URL+test.path, test.body)
		if kind, _ := remote.KindOf(err); kind != remote.NotRecorded {
			t.Errorf("%s: error %v, want one of kind not recorded", test.body, err)
			continue
		}
		for _, w := range test.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s:\n%v\ndoes not say %q", test.body, err, w)
			}
		}
	}
	// More often than recorded.
	k = replay(t, path)
	ctx = trial("t1")
	body := `{"model":"m","seed":1,"messages":[{"role":"user","content":"Hello there, how are you?"}]}`
	mustAsk(t, ctx, k.Wrap("", live), s.URL+"/v1/chat", body)
	if _, err := ask(ctx, k.Wrap("", live), s.URL+"/v1/chat", body); err == nil ||
		!strings.Contains(err.Error(), "made it 1 times, this is time 2") {
		t.Errorf("error %v does not say that the request was made too often", err)
	}
	if sent.Load() != before {
		t.Errorf("%d requests were sent while replaying", sent.Load()-before)
	}
}

// A file that is cut anywhere loses at most the exchange at its end, and a
// recording goes on from what is left.
func TestTornEndIsDropped(t *testing.T) {
	s, sent := counter(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "c.cassette")
	c := newClient(t, remote.Options{})
	k := record(t, path, c)
	ctx := remote.WithTrial(context.Background(), "t")
	const n = 12
	var ends [n + 1]int64 // of the file, after each exchange
	size := func() int64 {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	ends[0] = size()
	var answers [n]string
	for i := range n {
		answers[i] = mustAsk(t, ctx, k.Wrap("", c), s.URL+"/x", fmt.Sprintf(`{"n":%d}`, i))
		ends[i+1] = size()
	}
	// The process ends here without closing.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.cassette")
	for length := range len(whole) + 1 {
		if err := os.WriteFile(cut, whole[:length], 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := cassette.Replay(cut, cassette.Options{})
		if err != nil {
			t.Fatalf("cut to %d of %d bytes: %v", length, len(whole), err)
		}
		have, _ := k.Held()
		complete := 0
		for complete < n && int64(length) >= ends[complete+1] {
			complete++
		}
		if have != complete {
			t.Fatalf("cut to %d of %d bytes, %d exchanges are left of %d that were whole", length, len(whole), have, complete)
		}
		if length%97 != 0 {
			continue
		}
		// Going on: what is there is not asked again, what is missing is.
		before := sent.Load()
		r, err := cassette.Resume(cut, c.Redactor)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", length, err)
		}
		ctx := remote.WithTrial(context.Background(), "t")
		for i := range n {
			a := mustAsk(t, ctx, r.Wrap("", c), s.URL+"/x", fmt.Sprintf(`{"n":%d}`, i))
			if i < complete && a != answers[i] {
				t.Errorf("exchange %d was asked again", i)
			}
		}
		if got := sent.Load() - before; got != int64(n-complete) {
			t.Errorf("cut to %d bytes, going on sent %d requests, want %d", length, got, n-complete)
		}
		closed(t, r)
		if have, torn := replay(t, cut).Held(); have != n || torn {
			t.Errorf("cut to %d bytes and recorded on, it holds %d", length, have)
		}
		// And once more, behind a file that ended well.
		if r, err = cassette.Resume(cut, c.Redactor); err != nil {
			t.Fatal(err)
		}
		mustAsk(t, ctx, r.Wrap("", c), s.URL+"/x", `{"more":1}`)
		closed(t, r)
		if have, torn := replay(t, cut).Held(); have != n+1 || torn {
			t.Errorf("appended to a whole file, it holds %d", have)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	closed(t, k)
}

// Going on with a recording asks again what had failed; a replay repeats the
// failure. The newest answer counts.
func TestFailuresAreAskedAgain(t *testing.T) {
	var up atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, `{"error":"down"}`)
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{Attempts: 2, Backoff: time.Millisecond})
	fails := func(k *cassette.Cassette) error {
		_, err := ask(remote.WithTrial(context.Background(), "t"), k.Wrap("", c), s.URL+"/x", `{}`)
		return err
	}
	k := record(t, path, c)
	want := fails(k)
	closed(t, k)
	if got := fails(replay(t, path)); want == nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("replayed error %v, recorded %v", got, want)
	}
	up.Store(true)
	k, err := cassette.Resume(path, c.Redactor)
	if err != nil {
		t.Fatal(err)
	}
	if err := fails(k); err != nil {
		t.Errorf("going on repeats %v", err)
	}
	closed(t, k)
	if err := fails(replay(t, path)); err != nil {
		t.Errorf("the newer answer is not replayed: %v", err)
	}
	// What a caller gives up says nothing about the model.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if k, err = cassette.Resume(path, c.Redactor); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(ctx, k.Wrap("", c), s.URL+"/y", `{}`); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	closed(t, k)
	if n, _ := replay(t, path).Held(); n != 1 {
		t.Errorf("a cancelled request was recorded: it holds %d", n)
	}
}

// Damage in the middle is an error, not a shorter cassette; so is another file.
func TestDamageIsAnError(t *testing.T) {
	s, _ := counter(t)
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{})
	k := record(t, path, c)
	question := func(i int) string {
		return fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat(fmt.Sprint(i*7919), 30))
	}
	var answers []string
	for i := range 40 {
		answers = append(answers, fmt.Sprint(mustAsk(t, context.Background(), k.Wrap("", c), s.URL+"/x", question(i))))
	}
	closed(t, k)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(whole) / 4; i < len(whole)*3/4; i += 13 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x5a
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := cassette.Replay(path, cassette.Options{})
		if err != nil {
			continue
		}
		if _, torn := k.Held(); torn {
			continue
		}
		// Some bits of a compressed frame mean nothing: a window that is larger than
		// it need be. Then every answer has to be what was recorded.
		for n, want := range answers {
			if got := fmt.Sprint(mustAsk(t, context.Background(), k.Wrap("", c), s.URL+"/x", question(n))); got != want {
				t.Errorf("byte %d of %d changed, nobody noticed, and the answer to %d is another", i, len(whole), n)
			}
		}
	}
	for _, other := range []string{"hello", "{\"a\":1}\n", "\x28\xb5\x2f\xfd"} {
		if err := os.WriteFile(path, []byte(other), 0o644); err != nil {
			t.Fatal(err)
		}
		if k, err := cassette.Replay(path, cassette.Options{}); err == nil {
			if n, _ := k.Held(); n > 0 {
				t.Errorf("%q is read as a cassette", other)
			}
		}
	}
	if _, err := cassette.Record(path, nil); err == nil {
		t.Error("a file that exists is recorded over")
	}
	if _, err := cassette.Replay(filepath.Join(t.TempDir(), "none"), cassette.Options{}); err == nil {
		t.Error("a file that does not exist is replayed")
	}
}

// Both clients, whole and in pieces, answers and errors: what is replayed is
// what was recorded, to the byte and to the microsecond.
func TestReplayThroughTheClients(t *testing.T) {
	sv, err := proxy.New(proxy.Options{Faults: proxy.Faults{proxy.MalformedCall: 0.2, proxy.BadRequest: 0.1,
		proxy.ServerError: 0.2}, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(sv.Handler())
	defer s.Close()
	tools := []model.Tool{{Name: "add_memory", Description: "Store a memory.",
		Params: []model.Param{{Name: "content", Required: true}}}}
	for _, protocol := range []string{"openai", "ollama"} {
		for _, stream := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "c.cassette")
			play := func(k *cassette.Cassette, replayed bool) (out []string, took time.Duration) {
				c := remote.New(remote.Options{Attempts: 3, Backoff: time.Millisecond, Timeout: 20 * time.Second})
				defer c.Close()
				var m model.Model
				if protocol == "openai" {
					m, err = openai.New(model.ServerOptions{Model: "reference:naive", Address: s.URL + "/v1", Stream: stream,
						Client: c, Cassette: k.Wrap, Replayed: replayed})
				} else {
					m, err = ollama.New(model.ServerOptions{Model: "reference:naive", Address: s.URL, Stream: stream, Client: c,
						Cassette: k.Wrap, Replayed: replayed})
				}
				if err != nil {
					t.Fatal(err)
				}
				for i := range 40 {
					ctx := remote.WithTrial(context.Background(), fmt.Sprint(i/2))
					r, err := m.Next(ctx, model.Request{Tools: tools,
						Messages: []model.Message{{Role: model.User,
							Content: fmt.Sprintf("Remember that item %d costs %d euros.", i, i*i)}}})
					if wall := r.Usage.Took; !replayed && wall <= 0 {
						t.Errorf("call %d took %v", i, wall)
					}
					b, _ := json.Marshal(r)
					out = append(out, fmt.Sprintf("%s %v", b, err))
				}
				return out, took
			}
			c := newClient(t, remote.Options{})
			k := record(t, path, c)
			want, _ := play(k, false)
			closed(t, k)
			failed := 0
			for _, w := range want {
				if !strings.HasSuffix(w, "<nil>") {
					failed++
				}
			}
			if failed == 0 || failed == len(want) {
				t.Errorf("%s stream=%v: %d of %d calls failed: too little is tried", protocol, stream, failed, len(want))
			}
			got, _ := play(replay(t, path), true)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s stream=%v: replayed otherwise (-recorded +replayed):\n%s", protocol, stream, diff)
			}
			if stream && !strings.Contains(plain(t, path), `"chunks":[[`) {
				t.Errorf("%s: the pieces of the streams are not on the cassette", protocol)
			}
		}
	}
}

func plain(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A stream is replayed at the pace at which it came, if that is asked for.
func TestPace(t *testing.T) {
	const pause = 30 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			fmt.Fprint(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{})
	k := record(t, path, c)
	want := mustAsk(t, context.Background(), k.Wrap("", c), s.URL+"/x", `{}`)
	closed(t, k)
	k, err := cassette.Replay(path, cassette.Options{Pace: true})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := mustAsk(t, context.Background(), k.Wrap("", nil), s.URL+"/x", `{}`); got != want {
		t.Errorf("replayed %q, recorded %q", got, want)
	}
	// It cannot be faster than the server was; how much slower is the machine's.
	if took := time.Since(began); took < 3*pause {
		t.Errorf("the stream came within %v, and took at least %v when it was recorded", took, 3*pause)
	}
}

// A key reaches no cassette, even if the server sends it back.
func TestNoSecretOnTheCassette(t *testing.T) {
	const key = "sk-planted-9f3b7c1d5e"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
		if bytes.Contains(b, []byte("refuse")) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"the key %s is wrong","type":"x"}}`, r.Header.Get("Authorization"))
			return
		}
		said, _ := json.Marshal("you sent " + r.Header.Get("Authorization"))
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s}}]}`, said)
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "c.cassette")
	c := newClient(t, remote.Options{})
	k := record(t, path, c)
	m, err := openai.New(model.ServerOptions{Model: "m", Address: s.URL, Key: remote.NewSecret(key), Client: c,
		Cassette: k.Wrap})
	if err != nil {
		t.Fatal(err)
	}
	say := func(what string) (model.Reply, error) {
		return m.Next(context.Background(), model.Request{Messages: []model.Message{{Role: model.User, Content: what}}})
	}
	r, err := say("Here is a key: " + key)
	if err != nil || r.Text != "you sent Bearer [redacted]" {
		t.Errorf("reply %q, error %v", r.Text, err)
	}
	_, err = say("refuse")
	if err == nil {
		t.Fatal("the refused request was answered")
	}
	closed(t, k)
	for what, text := range map[string]string{"error": fmt.Sprintf("%v %+v %#v", err, err, err),
		"cassette": plain(t, path), "reply": fmt.Sprintf("%#v", r)} {
		if strings.Contains(text, "planted") {
			t.Errorf("the %s holds the key: %s", what, text)
		}
	}
}

// recordForEver records until it is killed.
func recordForEver() {
	c := remote.New(remote.Options{InFlight: 8})
	k, err := cassette.Resume(os.Getenv("MEMTOX_TEST_RECORDER"), c.Redactor)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	rt := k.Wrap("", c)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			ctx := remote.WithTrial(context.Background(), fmt.Sprint("trial", w))
			for i := 0; ; i++ {
				a, err := ask(ctx, rt, os.Getenv("MEMTOX_TEST_URL"), fmt.Sprintf(`{"trial":%d,"i":%d}`, w, i))
				if err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				fmt.Printf("%d %d %s\n", w, i, a)
			}
		})
	}
	wg.Wait()
}

// Killed at any moment, the cassette holds every answer that the process had
// seen, and no request whose answer was recorded is sent again.
func TestKilledWhileRecording(t *testing.T) {
	s, _ := counter(t)
	path := filepath.Join(t.TempDir(), "c.cassette")
	seen := map[string]string{} // request → answer
	for round := range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MEMTOX_TEST_RECORDER="+path, "MEMTOX_TEST_URL="+s.URL+"/x")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+53*round) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		lines := strings.SplitAfter(out.String(), "\n")
		for _, l := range lines {
			f := strings.Fields(l)
			if !strings.HasSuffix(l, "\n") || len(f) != 3 {
				if strings.HasSuffix(l, "\n") {
					t.Fatalf("round %d: %s", round, l)
				}
				continue
			}
			id := f[0] + " " + f[1]
			if before, ok := seen[id]; ok && before != f[2] {
				t.Fatalf("round %d: request %s was answered %s, and %s before the kill", round, id, f[2], before)
			}
			seen[id] = f[2]
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d requests were recorded: too little is tried", len(seen))
	}
	k := replay(t, path)
	rt := k.Wrap("", nil)
	for id, want := range seen {
		var w, i int
		if _, err := fmt.Sscan(id, &w, &i); err != nil {
			t.Fatal(err)
		}
		got, err := ask(remote.WithTrial(context.Background(), fmt.Sprint("trial", w)), rt, s.URL+"/x",
			fmt.Sprintf(`{"trial":%d,"i":%d}`, w, i))
		if err != nil || got != want {
			t.Errorf("request %s is replayed as %q (%v), the process saw %q", id, got, err, want)
		}
	}
}

// BenchmarkRecord measures recording one turn of a conversation of 20 kB.
func BenchmarkRecord(b *testing.B) {
	c := remote.New(remote.Options{})
	k := record(b, filepath.Join(b.TempDir(), "c.cassette"), c)
	answer := []byte(`{"choices":[{"message":{"role":"assistant","content":"Noted."}}]}`)
	rt := k.Wrap("/v1", remote.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(answer))}, nil
	}))
	var words strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&words, "word%d ", i*i%9973)
	}
	b.SetBytes(int64(words.Len()))
	for i := 0; b.Loop(); i++ {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q},{"role":"user","content":"%d"}]}`,
			words.String(), i)
		mustAsk(b, remote.WithTrial(context.Background(), fmt.Sprint(i%64)), rt, "http://x/v1/chat/completions", body)
	}
	closed(b, k)
}
