package remote_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memtox/memtox/internal/remote"
)

// bearing is a server that bears requests in some manner, and counts them.
type bearing struct {
	takes func(inFlight int) time.Duration // an answer of 100 tokens, by how many are under way as it comes in
	works int                              // so many are answered at once, the others wait; 0 is no bound
	most  int                              // more than these get 429; 0 is no bound

	places chan struct{}

	now, greatest, refused, answered atomic.Int64
}

func (b *bearing) serve(tokens int) (status int) {
	n := b.now.Add(1)
	defer b.now.Add(-1)
	for g := b.greatest.Load(); n > g && !b.greatest.CompareAndSwap(g, n); g = b.greatest.Load() {
	}
	if b.most > 0 && int(n) > b.most {
		b.refused.Add(1)
		return http.StatusTooManyRequests
	}
	if b.works > 0 {
		b.places <- struct{}{}
		defer func() { <-b.places }()
	}
	time.Sleep(b.takes(int(n)) * time.Duration(tokens) / 100)
	b.answered.Add(1)
	return http.StatusOK
}

// askAll has trials of one call each ask for answers of 50 to 400 tokens, as fast as the
// client lets them begin.
func askAll(t *testing.T, c *remote.Client, address string, trials int) {
	t.Helper()
	drawn := rand.New(rand.NewPCG(1, 2))
	var group sync.WaitGroup
	for range trials {
		tokens := 50 + drawn.IntN(350)
		if !c.Begin(t.Context(), nil) {
			t.Fatal("the trials were stopped")
		}
		group.Go(func() {
			defer c.End()
			call := &remote.Call{}
			r, _ := http.NewRequestWithContext(remote.WithCall(t.Context(), call), http.MethodPost, address,
				strings.NewReader(strings.Repeat("x", tokens)))
			resp, err := c.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			call.Settle(500, tokens)
		})
	}
	group.Wait()
}

// The requests at once end where more of them bring little: at the number that a server
// works on, below the number that it refuses, and nowhere where it bears all. Nothing is
// lost on the way.
func TestThePaceIsThatOfTheServer(t *testing.T) {
	always := func(int) time.Duration { return time.Second }
	for name, test := range map[string]struct {
		server      *bearing
		least, most int
	}{
		"bears all":        {&bearing{takes: always}, 128, 128},
		"differs":          {&bearing{takes: func(int) time.Duration { return time.Duration(5e8 + 5e8*rand.ExpFloat64()) }}, 64, 128},
		"works on 4":       {&bearing{takes: always, works: 4}, 2, 12},
		"works on 20":      {&bearing{takes: always, works: 20}, 10, 40},
		"refuses above 20": {&bearing{takes: always, most: 20}, 10, 30},
		"slows smoothly": {&bearing{takes: func(n int) time.Duration { return time.Second * time.Duration(10+n) / 10 }},
			4, 40}, // the number is nowhere sharp there
	} {
		synctest.Test(t, func(t *testing.T) {
			b := test.server
			b.places = make(chan struct{}, b.works) // of this bubble
			c := remote.New(remote.Options{Transport: remote.RoundTripper(func(r *http.Request) (*http.Response, error) {
				asked, _ := io.ReadAll(r.Body)
				return &http.Response{StatusCode: b.serve(len(asked)), Header: http.Header{"Retry-After": {"1"}},
					Body: io.NopCloser(strings.NewReader("{}"))}, nil
			})})
			askAll(t, c, somewhere, 3000)
			p := c.Pace()
			if p.Limit < test.least || p.Limit > test.most || b.answered.Load() != 3000 || p.Refused != int(b.refused.Load()) {
				t.Errorf("%s: %+v; the server answered %d and refused %d", name, p, b.answered.Load(), b.refused.Load())
			}
		})
	}
}

// The same over a real server: one that refuses is asked again and loses nothing, one that
// works on few at a time does not get all that could be sent, and a limit that the user
// has named is kept.
func TestARealServerIsNotOverrun(t *testing.T) {
	for name, test := range map[string]struct {
		server   *bearing
		inFlight int
	}{
		"refuses above 20": {server: &bearing{most: 20}},
		"works on 4":       {server: &bearing{works: 4}},
		"named":            {server: &bearing{works: 4}, inFlight: 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := test.server
			b.places = make(chan struct{}, b.works)
			b.takes = func(int) time.Duration { return 10 * time.Millisecond }
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, _ := io.ReadAll(r.Body)
				w.Header().Set("Retry-After-Ms", "20")
				w.WriteHeader(b.serve(len(asked)))
			}))
			defer srv.Close()
			c := remote.New(remote.Options{InFlight: test.inFlight, Backoff: time.Millisecond, Attempts: 100})
			defer c.Close()
			askAll(t, c, srv.URL, 400)
			switch p := c.Pace(); {
			case b.answered.Load() != 400:
				t.Errorf("%d of 400 were answered", b.answered.Load())
			case test.inFlight > 0 && (p.Limit != test.inFlight || b.greatest.Load() > int64(test.inFlight)):
				t.Errorf("%+v, and the server saw %d at once", p, b.greatest.Load())
			case p.Limit > 64 || b.greatest.Load() > 128:
				t.Errorf("%+v, and the server saw %d at once", p, b.greatest.Load())
			}
		})
	}
}
