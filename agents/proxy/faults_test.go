package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/remote"
)

// With 5% of each fault, every call ends in the right reply or in a typed error;
// the errors are those that no retry mends, exactly as many as were injected.
func TestFaultsEndInReplyOrTypedError(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("all", func(t *testing.T) {
		asked := requests(t, "rag")[:120]
		for name := range clients(t, "http://127.0.0.1:1", "reference", remote.Options{}, model.Settings{}) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := proxy.Faults{proxy.Cut: .05, proxy.Truncated: .05, proxy.TooMany: .05, proxy.ServerError: .05,
					proxy.Endless: .05, proxy.Hang: .05, proxy.BadRequest: .05}
				st, out := underFaults(t, name, f, asked)
				if out.refused != st.Faults[proxy.BadRequest] || out.malformed > 0 {
					t.Errorf("%+v, and injected were %+v", out, st)
				}
				for k, share := range f {
					if share > 0 && st.Faults[k] == 0 {
						t.Errorf("fault %s never came: too little is tried", proxy.Fault(k))
					}
				}
				// A malformed call is not sent again but corrected, and the model
				// answers the correction: the reply may be another.
				st, out = underFaults(t, name, proxy.Faults{proxy.MalformedCall: .3}, asked)
				if out.corrected+2*out.malformed != st.Faults[proxy.MalformedCall] || out.malformed == 0 || out.corrected == 0 ||
					out.refused > 0 {
					t.Errorf("%+v, and injected were %+v", out, st)
				}
			})
		}
	})
}

// endings count how calls ended.
type endings struct{ good, corrected, refused, malformed int64 }

func underFaults(t *testing.T, client string, f proxy.Faults, asked []model.Request) (proxy.Stats, endings) {
	s, base := start(t, proxy.Options{Faults: f, Seed: 11, RetryAfter: -1})
	patience := time.Minute // what a busy machine answers late must not count as a fault
	if f[proxy.Hang] > 0 {
		patience = 2 * time.Second
	}
	m := clients(t, base, "reference", remote.Options{InFlight: 32, Attempts: 12, Backoff: time.Millisecond,
		Timeout: patience}, model.Settings{})[client]
	inProcess := reference.New(reference.Cautious, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var out endings
	const workers = 16
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(asked); i += workers {
				want, err := inProcess.Next(context.Background(), asked[i])
				if err != nil {
					t.Error(err)
				}
				got, err := m.Next(context.Background(), asked[i])
				e, typed := errors.AsType[*remote.Error](err)
				mu.Lock()
				switch {
				case err == nil && f[proxy.MalformedCall] > 0 && got.Usage.Calls == 2:
					out.corrected++
				case err == nil:
					out.good++
					want.Usage, got.Usage = model.Usage{}, model.Usage{}
					for j := range got.Calls {
						got.Calls[j].ID = ""
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameButExchanges); diff != "" {
						t.Errorf("request %d: %s", i, diff)
					}
				case typed && e.Status == 400 && e.Kind == remote.Fatal:
					out.refused++
				case typed && e.Kind == remote.Malformed && e.Text != "":
					out.malformed++
				default:
					t.Errorf("request %d: %v (%T)", i, err, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return s.Stats(), out
}

// requests are the requests of real sessions.
func requests(t testing.TB, profile string) []model.Request {
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	tape := &tape{next: reference.New(reference.Cautious, nil)}
	p := builtIn(profile)
	for i := range set.Cases {
		outcome(t, p, tape, &set.Cases[i])
	}
	return tape.asked
}

// Sessions under faults that retries mend come out as without faults.
func TestSessionsUnderFaults(t *testing.T) {
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		t.Fatal(err)
	}
	p := builtIn("hermes")
	inProcess := reference.New(reference.Naive, nil)
	_, base := start(t, proxy.Options{Faults: proxy.Faults{proxy.Cut: .05, proxy.Truncated: .05, proxy.TooMany: .05,
		proxy.ServerError: .05}, Seed: 3, RetryAfter: -1})
	w := remote.Options{Attempts: 20, Backoff: time.Millisecond}
	for name, m := range clients(t, base, "reference:naive", w, model.Settings{}) {
		for i := range set.Cases[:8] {
			c := &set.Cases[i]
			want := outcome(t, p, inProcess, c)
			if diff := cmp.Diff(want, outcome(t, p, forgiving{m}, c), cmpopts.EquateEmpty(), sameButExchanges); diff != "" {
				t.Errorf("case %s through %s:\n%s", c.ID, name, diff)
			}
		}
	}
}

// forgiving hides retries from the usage, which outcome compares with the calls.
type forgiving struct{ model.Model }

func (f forgiving) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	r, err := f.Model.Next(ctx, req)
	r.Usage.Calls = min(r.Usage.Calls, 1)
	return r, err
}

// The same seed draws the same faults, another seed others; each comes about as
// often as asked for.
func TestFaultsAreDrawnFromTheSeed(t *testing.T) {
	draw := func(seed uint64) string {
		s, err := proxy.New(proxy.Options{Faults: proxy.Faults{proxy.ServerError: 0.2, proxy.BadRequest: 0.1}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i := range 2000 {
			body := fmt.Sprintf(`{"model":"reference","stream":false,"messages":[{"role":"user","content":"%d"}]}`, i/2)
			w := &recorder{header: http.Header{}}
			r, err := http.NewRequest(http.MethodPost, "/api/chat", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			s.Handler().ServeHTTP(w, r)
			fmt.Fprintf(&b, "%d ", w.status)
		}
		return b.String()
	}
	one := draw(1)
	if draw(1) != one {
		t.Error("the same seed draws other faults")
	}
	if draw(2) == one {
		t.Error("another seed draws the same faults")
	}
	// Six standard deviations of the binomial at 2,000 draws.
	if n := strings.Count(one, "500"); n < 290 || n > 510 {
		t.Errorf("%d of 2000 answers are 500, want about 400", n)
	}
	if n := strings.Count(one, "400"); n < 120 || n > 280 {
		t.Errorf("%d of 2000 answers are 400, want about 200", n)
	}
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = 200
	}
	return r.body.Write(b)
}

func TestParseFaults(t *testing.T) {
	for in, want := range map[string]string{
		"": "[0 0 0 0 0 0 0 0 0]", "cut=0.5, 429=0.25": "[0 0.5 0 0 0.25 0 0 0 0]",
		"all=0.05": "[0 0.05 0.05 0.05 0.05 0.05 0.05 0.05 0]",
		"cut":      "", "cut=x": "", "fire=0.1": "", "none=0.1": "", "cut=1.5": "", "cut=-1": "", "cut=NaN": "",
		"cut=0.6,500=0.6": "",
	} {
		f, err := proxy.ParseFaults(in)
		if got := fmt.Sprint([9]float64(f)); (want == "") != (err != nil) || err == nil && got != want {
			t.Errorf("%q: %s, error %v", in, got, err)
		}
	}
}

// More requests than the limit allows are told to wait, and how long.
func TestRateLimit(t *testing.T) {
	s, base := start(t, proxy.Options{RateLimit: 5, RetryAfter: 1500 * time.Millisecond})
	codes := map[int]int{}
	for range 20 {
		resp, err := http.Post(base+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"reference","messages":[{"role":"user","content":"Hello."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		codes[resp.StatusCode]++
		if resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q, want 2: 1.5 s rounded up", resp.Header.Get("Retry-After"))
		}
	}
	if codes[200] < 5 || codes[429] == 0 || s.Stats().Limited != int64(codes[429]) {
		t.Errorf("answers %v, %d counted as limited", codes, s.Stats().Limited)
	}
}

// Hostile and mistaken requests get an error of the protocol, not a panic.
func TestMistakenRequests(t *testing.T) {
	_, base := start(t, proxy.Options{MaxBody: 1 << 20})
	for _, test := range []struct {
		path, body, says string
		status           int
	}{
		{"/v1/chat/completions", `{`, "reading the request", 400},
		{"/v1/chat/completions", `{"model":"reference"}`, "messages is empty", 400},
		{"/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user"}]}`,
			`model \"gpt\" not found; there are reference, reference:naive`, 404},
		{"/v1/chat/completions", `{"model":"reference","messages":[{"role":"wizard"}]}`, `no role \"wizard\"`, 400},
		{"/v1/chat/completions", `{"model":"reference","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
			"only text", 400},
		{"/v1/chat/completions", `{"model":"reference","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":"{"}}]}]}`, "message 0", 400},
		{"/v1/chat/completions", `{"model":"reference","messages":[{"role":"user","content":"x"}],"tools":{}}`,
			"reading the tools", 400},
		{"/v1/chat/completions", strings.Repeat(" ", 2<<20), "bytes", 413},
		{"/v1/chat/completions", strings.Repeat("[", 1<<19), "reading the request", 400},
		{"/v1/embeddings", `{"input":7}`, "a text or a list", 400},
		{"/api/chat", `{"model":"x","messages":[{"role":"user"}]}`, "not found", 404},
		{"/api/chat", `null`, "messages is empty", 400},
		{"/api/show", `{"model":"x"}`, "not found", 404},
		{"/api/embed", `{"input":{}}`, "a text or a list", 400},
	} {
		resp, err := http.Post(base+test.path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || !strings.Contains(string(b), test.says) ||
			!strings.Contains(string(b), `"error"`) {
			t.Errorf("%s %.60s: %d %s, want %d and %q", test.path, test.body, resp.StatusCode, b, test.status, test.says)
		}
	}
}

// What doctor and other clients ask beside chat.
func TestOtherInterfaces(t *testing.T) {
	_, base := start(t, proxy.Options{})
	ctx := context.Background()
	for name, m := range clients(t, base, "reference", remote.Options{}, model.Settings{}) {
		x := m.(interface {
			Models(context.Context) ([]string, error)
			Embed(context.Context, string, []string) ([][]float32, error)
		})
		list, err := x.Models(ctx)
		if err != nil || fmt.Sprint(list) != "[reference reference:naive reference:cautious reference:naive:own reference:refuse reference:ask reference:everything "+
			"reference:look-first reference:source-aware reference:v1-naive reference:v1-cautious]" {
			t.Errorf("%s: models %v, error %v", name, list, err)
		}
		v, err := x.Embed(ctx, "", []string{"a garden", "another garden", "zebra"})
		if err != nil || len(v) != 3 || len(v[0]) == 0 {
			t.Fatalf("%s: vectors %v, error %v", name, v, err)
		}
		dot := func(a, b []float32) (s float32) {
			for i := range a {
				s += a[i] * b[i]
			}
			return s
		}
		if dot(v[0], v[1]) <= dot(v[0], v[2]) {
			t.Errorf("%s: the vectors do not tell gardens from zebras", name)
		}
	}
	resp, err := http.Get(base + "/api/version")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != `{"version":"0.17.4"}` {
		t.Errorf("version %s", b)
	}
}

// builtIn is the built-in profile of a name.
func builtIn(name string) *agents.Profile {
	all := agents.Profiles()
	return all[slices.IndexFunc(all, func(p *agents.Profile) bool { return p.Name == name })]
}
