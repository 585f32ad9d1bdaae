package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/memtox/memtox/internal/remote"
)

// fake answers a request without a network, so that time can be made up.
type fake func(r *http.Request) (status int, header map[string]string, body string, err error)

func (f fake) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body, err := f(r)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	for k, v := range header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: r}, nil
}

func get(ctx context.Context, rt http.RoundTripper, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{}`))
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

const somewhere = "http://model.example/v1/chat/completions"

// Every way to fail has its kind, and only those that may pass are tried again.
func TestKinds(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		err    error
		kind   remote.Kind
		tries  int
		says   string
	}{
		{"wrong key", 401, `{"error":{"message":"bad key"}}`, nil, remote.Fatal, 1, "API key"},
		{"no such model", 404, `{"error":"model 'x' not found"}`, nil, remote.Fatal, 1, "model 'x' not found"},
		{"bad request", 400, `{"error":{"message":"too long"}}`, nil, remote.Fatal, 1, "too long"},
		{"throttled", 429, `{}`, nil, remote.RateLimited, 4, "lower the requests"},
		{"no quota", 429, `{"error":{"message":"x","code":"insufficient_quota"}}`, nil, remote.Fatal, 1, "quota is used up"},
		{"overloaded", 529, `{}`, nil, remote.RateLimited, 4, ""},
		{"server error", 500, `oops`, nil, remote.Transient, 4, "after 4 attempts"},
		{"unavailable", 503, ``, nil, remote.Transient, 4, ""},
		{"bad gateway", 502, `<html>`, nil, remote.Transient, 4, ""},
		{"redirect", 307, ``, nil, remote.Fatal, 1, "redirects are not followed"},
		{"not JSON", 200, `{"choices":`, nil, remote.Transient, 4, "cut"},
		{"refused", 0, ``, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, remote.Transient, 4, "is a server listening"},
		{"reset", 0, ``, syscall.ECONNRESET, remote.Transient, 4, ""},
		{"no such host", 0, ``, &net.DNSError{Err: "no such host", Name: "model.example", IsNotFound: true}, remote.Fatal, 1,
			"no such host"},
		{"escape codes", 400, "\x1b[2J\u202eevil", nil, remote.Fatal, 1, `\x1b[2J\u202eevil`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				c := remote.New(remote.Options{Attempts: 4, Transport: fake(func(*http.Request) (int, map[string]string, string,
					error) {
					tries++
					return test.status, nil, test.body, test.err
				})})
				_, err := get(t.Context(), c, somewhere)
				e, ok := errors.AsType[*remote.Error](err)
				if !ok {
					t.Fatalf("error %v (%T), want a *remote.Error", err, err)
				}
				if e.Kind != test.kind || tries != test.tries || e.Attempts != test.tries {
					t.Errorf("kind %s after %d attempts (%d said), want %s after %d", e.Kind, tries, e.Attempts, test.kind, test.tries)
				}
				msg := err.Error()
				if !strings.Contains(msg, test.says) || !strings.Contains(msg, "POST http://model.example/v1/chat/completions") {
					t.Errorf("error %q does not say %q and where", msg, test.says)
				}
				for _, r := range msg {
					if r < ' ' || r == '\u202e' {
						t.Errorf("error %q holds the control character %U", msg, r)
					}
				}
			})
		})
	}
}

// A server that says that key or name is wrong is given up within ten answers. One that
// refuses some requests is not, though several arms ask the same in a row; one that refuses
// all is, in the end. An answer in between begins anew.
func TestServersAreGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		answers     []int // in turn, the last again and again
		least, most int   // requests until the server is given up; 0 is never
	}{
		"wrong key":        {[]int{401}, 2, 10},
		"forbidden":        {[]int{403}, 2, 10},
		"no such model":    {[]int{404}, 2, 10},
		"refuses some":     {append(slices.Repeat([]int{400}, 12), 200), 0, 0},
		"refuses all":      {[]int{400}, 13, 40},
		"keys are changed": {[]int{401, 200, 401, 200, 401, 200, 401, 200, 401, 200, 401, 200}, 0, 0},
	} {
		n := 0
		c := remote.New(remote.Options{Attempts: 1, Transport: fake(func(*http.Request) (int, map[string]string, string, error) {
			n++
			return test.answers[min(n, len(test.answers))-1], nil, `{}`, nil
		})})
		given := 0
		for given == 0 && n < 100 {
			_, err := get(t.Context(), c, somewhere)
			if kind, _ := remote.KindOf(err); kind == remote.GivenUp {
				given = n
			}
		}
		if given < test.least || given > test.most {
			t.Errorf("%s: given up after %d requests, want %d to %d", name, given, test.least, test.most)
		}
	}
}

// A server's Retry-After is waited for, by this call and by all others.
func TestRetryAfterIsHonoured(t *testing.T) {
	for name, value := range map[string]func(now time.Time) (string, string){
		"seconds":  func(time.Time) (string, string) { return "Retry-After", "7" },
		"fraction": func(time.Time) (string, string) { return "Retry-After", "7.0" },
		"date": func(now time.Time) (string, string) {
			return "Retry-After", now.Add(7 * time.Second).UTC().Format(http.TimeFormat)
		},
		"milliseconds": func(time.Time) (string, string) { return "Retry-After-Ms", "7000" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				first := true
				var arrived []time.Duration
				var mu sync.Mutex // both calls go out at the same moment
				c := remote.New(remote.Options{InFlight: 4, Backoff: time.Millisecond,
					Transport: fake(func(*http.Request) (int, map[string]string, string, error) {
						mu.Lock()
						defer mu.Unlock()
						if first {
							first = false
							k, v := value(time.Now())
							return 429, map[string]string{k: v}, `{}`, nil
						}
						arrived = append(arrived, time.Since(start))
						return 200, nil, `{}`, nil
					})})
				call := &remote.Call{}
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := get(remote.WithCall(t.Context(), call), c, somewhere); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Second)
				wg.Go(func() {
					if _, err := get(t.Context(), c, somewhere); err != nil {
						t.Error(err)
					}
				})
				wg.Wait()
				for _, a := range arrived {
					if a < 7*time.Second || a > 8*time.Second {
						t.Errorf("a request arrived after %v, want 7 s", a)
					}
				}
				if len(arrived) != 2 || call.Attempts != 2 || call.Waited < 7*time.Second {
					t.Errorf("arrived %v; %d attempts, waited %v", arrived, call.Attempts, call.Waited)
				}
			})
		})
	}
}

// Nonsense in Retry-After is ignored; a wait beyond the budget is not begun, and
// does not hold up other calls.
func TestRetryAfterHostile(t *testing.T) {
	for value, wantTries := range map[string]int{"-5": 3, "soon": 3, "NaN": 3, "99999999999999999999": 1, "Inf": 1,
		"3600": 1, "": 3} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := remote.New(remote.Options{Attempts: 3, RetryBudget: time.Minute,
				Transport: fake(func(*http.Request) (int, map[string]string, string, error) {
					tries++
					return 429, map[string]string{"Retry-After": value}, `{}`, nil
				})})
			began := time.Now()
			if _, err := get(t.Context(), c, somewhere); err == nil {
				t.Error("no error")
			}
			if _, err := get(t.Context(), c, somewhere); err == nil {
				t.Error("no error of another call")
			}
			if tries != 2*wantTries || time.Since(began) > 2*time.Minute {
				t.Errorf("Retry-After %q: %d attempts of two calls in %v, want %d each", value, tries, time.Since(began), wantTries)
			}
		})
	}
}

// Throttling halves the requests in flight, once for those that were under way
// together; answers let them grow again, by one a window.
func TestAdditiveIncreaseMultiplicativeDecrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flying, most, capacity atomic.Int64
		capacity.Store(10)
		c := remote.New(remote.Options{InFlight: 64, Attempts: 100, RetryBudget: time.Hour, Backoff: 50 * time.Millisecond,
			Transport: fake(func(*http.Request) (int, map[string]string, string, error) {
				n := flying.Add(1)
				defer flying.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(100 * time.Millisecond)
				if n > capacity.Load() {
					return 429, nil, `{}`, nil
				}
				return 200, nil, `{}`, nil
			})})
		var wg sync.WaitGroup
		failed := atomic.Int64{}
		for range 64 {
			wg.Go(func() {
				for range 30 {
					if _, err := get(t.Context(), c, somewhere); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		time.Sleep(150 * time.Millisecond)
		if _, _, l := c.State(); l != 32 {
			t.Errorf("after the first wave the limit is %d, want half of 64", l)
		}
		time.Sleep(10 * time.Second)
		var limits []int // one alone may be a larger one on trial
		for range 21 {
			_, _, l := c.State()
			limits = append(limits, l)
			time.Sleep(130 * time.Millisecond)
		}
		slices.Sort(limits)
		if l := limits[len(limits)/2]; l < 4 || l > 16 {
			t.Errorf("the limit settled at %d for a server that bears 10", l)
		}
		capacity.Store(1000)
		wg.Wait()
		if _, _, l := c.State(); l <= 16 {
			t.Errorf("the limit stays at %d though the server bears more", l)
		}
		if failed.Load() > 0 || most.Load() != 64 {
			t.Errorf("%d calls failed, at most %d were in flight", failed.Load(), most.Load())
		}
		if flying, waiting, _ := c.State(); flying != 0 || waiting != 0 {
			t.Errorf("%d in flight and %d waiting after all are done", flying, waiting)
		}
	})
}

// The limit holds whatever is cancelled while it waits.
func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flying, most atomic.Int64
		c := remote.New(remote.Options{InFlight: 3, Transport: fake(func(r *http.Request) (int, map[string]string, string,
			error) {
			most.Store(max(most.Load(), flying.Add(1)))
			defer flying.Add(-1)
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return 0, nil, "", r.Context().Err()
			}
			return 200, nil, `{}`, nil
		})})
		gone := errors.New("gone")
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if i%2 == 0 {
					time.AfterFunc(time.Duration(i)*200*time.Millisecond, func() { cancel(gone) })
				}
				if _, err := get(ctx, c, somewhere); err != nil && !errors.Is(err, gone) {
					t.Errorf("request %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if flying, waiting, _ := c.State(); flying != 0 || waiting != 0 || most.Load() > 3 {
			t.Errorf("%d in flight and %d waiting after all are done, at most %d in flight", flying, waiting, most.Load())
		}
		if len(c.Pending(0)) != 0 {
			t.Errorf("still listed: %+v", c.Pending(0))
		}
	})
}

// Limits on requests and on tokens a minute hold over any minute, and are used
// up. Each call takes 100 tokens, of which only half are foreseen.
func TestRatesHold(t *testing.T) {
	for _, test := range []struct {
		o       remote.Options
		workers int // one at a time, where a call says only afterwards what it took
		most    int // calls in any minute: the limit and what may come at once
	}{
		{remote.Options{RequestsPerMinute: 120}, 50, 121},
		{remote.Options{RequestsPerMinute: 6000}, 50, 6010},
		{remote.Options{TokensPerMinute: 12000}, 1, 120 + 21},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var sent []time.Time
			o := test.o
			o.InFlight = 50
			o.Transport = fake(func(*http.Request) (int, map[string]string, string, error) {
				mu.Lock()
				sent = append(sent, time.Now())
				mu.Unlock()
				return 200, nil, `{}`, nil
			})
			c := remote.New(o)
			calls := 3 * test.most
			var wg sync.WaitGroup
			for range test.workers {
				wg.Go(func() {
					for range calls / test.workers {
						call := &remote.Call{Prompt: 40, Reply: 10}
						if _, err := get(remote.WithCall(t.Context(), call), c, somewhere); err != nil {
							t.Error(err)
						}
						call.Settle(80, 20)
					}
				})
			}
			wg.Wait()
			worst, last := 0, 0
			for i := range sent {
				for last < len(sent) && sent[last].Sub(sent[i]) < time.Minute {
					last++
				}
				worst = max(worst, last-i)
			}
			if worst > test.most {
				t.Errorf("%+v: %d requests in a minute, want at most %d", test.o, worst, test.most)
			}
			if took := sent[len(sent)-1].Sub(sent[0]); took > 4*time.Minute {
				t.Errorf("%+v: took %v, slower than the limit asks", test.o, took)
			}
		})
	}
}

// A cap stops what would exceed it, with an error that says so and stops the
// run; nothing is sent after it.
func TestCaps(t *testing.T) {
	for _, test := range []struct {
		caps remote.Caps
		want int // calls of 100 tokens and $0.001 each
	}{
		{remote.Caps{Calls: 5}, 5},
		{remote.Caps{Tokens: 750}, 7},
		{remote.Caps{Cost: 0.0031}, 3},
	} {
		sent := 0
		c := remote.New(remote.Options{Caps: test.caps, Transport: fake(func(*http.Request) (int, map[string]string, string,
			error) {
			sent++
			return 200, nil, `{}`, nil
		})})
		var err error
		for range 20 {
			call := &remote.Call{Prompt: 80, Reply: 20, Price: remote.Price{Prompt: 10, Completion: 10}}
			if _, err = get(remote.WithCall(t.Context(), call), c, somewhere); err != nil {
				break
			}
			call.Settle(80, 20)
		}
		if !remote.StopsRun(err) || sent != test.want {
			t.Errorf("%+v: %d requests were sent, want %d; then %v", test.caps, sent, test.want, err)
		}
		if err != nil && !strings.Contains(err.Error(), "raise the cap and resume") {
			t.Errorf("error %q does not say what to do", err)
		}
	}
}

// slowServer answers by a function of the path over a real network.
func slowServer(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// Answers that never end, never begin, fall silent, break or are too long end
// in a typed error, and leave no goroutine behind.
func TestBadAnswersEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("all", func(t *testing.T) {
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		url := slowServer(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			flush := func() { _ = http.NewResponseController(w).Flush() }
			wait := func(d time.Duration) bool {
				select {
				case <-time.After(d):
					return true
				case <-r.Context().Done():
				case <-stop:
				}
				return false
			}
			w.Header().Set("Content-Type", "text/event-stream")
			switch r.URL.Path {
			case "/endless":
				for wait(time.Millisecond) {
					fmt.Fprint(w, "data: {}\n\n")
					flush()
				}
			case "/hang":
				wait(time.Hour)
			case "/silent":
				fmt.Fprint(w, "data: {}\n\n")
				flush()
				wait(time.Hour)
			case "/flood":
				for {
					if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
						return
					}
				}
			case "/claims":
				w.Header().Set("Content-Length", "99999999999")
				flush()
				wait(time.Hour)
			case "/cut":
				w.Header().Set("Content-Length", "1000")
				fmt.Fprint(w, "data: {}\n\n")
				flush()
				c, _, _ := http.NewResponseController(w).Hijack()
				_ = c.Close()
			case "/unfinished":
				fmt.Fprint(w, "data: {\"choices\":[{\"finish_reason\":null}]}\n\n")
			case "/finished":
				fmt.Fprint(w, "data: {\"choices\":[{\"finish_reason\": \"stop\"}]}\n\n")
			}
		})
		for path, want := range map[string]string{
			"/endless": "no whole answer within the time", "/hang": "no whole answer within the time", "/silent": "fell silent",
			"/flood": "longer than allowed", "/claims": "longer than allowed", "/cut": "cut before its end",
			"/unfinished": "cut before its end", "/finished": "",
		} {
			o := remote.Options{Attempts: 2, Backoff: time.Millisecond, Timeout: 300 * time.Millisecond,
				Silence: 100 * time.Millisecond, MaxBody: 1 << 20}
			if path == "/flood" {
				o.Timeout = 30 * time.Second
			}
			c := remote.New(o)
			_, err := get(t.Context(), c, url+path)
			c.Close()
			if want == "" {
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				continue
			}
			e, ok := errors.AsType[*remote.Error](err)
			if !ok || e.Kind != remote.Transient || e.Attempts != 2 || !strings.Contains(e.Error(), want) {
				t.Errorf("%s: error %v, want one that says %q after 2 attempts", path, err, want)
			}
		}
	})
}

// A request that is stuck is listed with what it waits for.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := remote.New(remote.Options{InFlight: 1, Transport: fake(func(r *http.Request) (int, map[string]string, string,
			error) {
			time.Sleep(time.Minute)
			return 200, nil, `{}`, nil
		})})
		var wg sync.WaitGroup
		for i := range 2 {
			ctx := remote.WithCall(remote.WithTrial(t.Context(), fmt.Sprintf("trial-%d", i)), &remote.Call{Model: "openai:m"})
			wg.Go(func() { _, _ = get(ctx, c, somewhere) })
			time.Sleep(time.Second)
		}
		time.Sleep(28 * time.Second)
		got := c.Pending(0)
		if len(got) != 2 || got[0].Trial != "trial-0" || got[0].Phase != remote.Waiting || got[0].For != 30*time.Second ||
			got[0].Attempt != 1 ||
			got[0].Host != "model.example" || got[0].Model != "openai:m" || got[1].Trial != "trial-1" ||
			got[1].Phase != remote.Queued || got[1].Attempt != 0 {
			t.Errorf("pending %+v", got)
		}
		if got := c.Pending(30 * time.Second); len(got) != 1 {
			t.Errorf("under way for 30 s: %+v", got)
		}
		wg.Wait()
		if got := c.Pending(0); len(got) != 0 {
			t.Errorf("after all were answered: %+v", got)
		}
	})
}

// A redirect is not followed: it would carry the key to another host.
func TestNoRedirect(t *testing.T) {
	var reached atomic.Bool
	other := slowServer(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	url := slowServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/x", http.StatusTemporaryRedirect)
	})
	c := remote.New(remote.Options{})
	defer c.Close()
	resp, err := remote.HTTP(remote.Authorized(c, remote.NewSecret("sk-0123456789abcdef"))).Post(url, "application/json",
		strings.NewReader(`{}`))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || reached.Load() {
		t.Errorf("error %v; the other host was asked: %v", err, reached.Load())
	}
}
