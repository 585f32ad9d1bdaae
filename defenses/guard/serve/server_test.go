package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/external"

	"github.com/memtox/memtox/defenses/guard/serve"
)

// closing is a gate that counts how often it was closed.
type closing struct {
	memory.Open
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

func openServer(closed *int) *serve.Server {
	return &serve.Server{Open: func(context.Context, memory.View) (memory.Gate, error) {
		return closing{closed: closed},
			nil
	}}
}

// tell asks and returns the answer's error.
func tell(s *serve.Server, trial uint64, op, value string) string {
	q := &external.Request{ID: 1, Op: op, Trial: trial}
	if op == external.Committed {
		q.Change, q.Record = "add", external.RecordOf(&memory.Record{ID: "r1", Text: value, Origin: memory.Origin{Class: memory.User}})
	}
	return s.Answer(context.Background(), q).Error
}

func wantError(t *testing.T, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("error %q, want one with %q", got, want)
	}
}

func TestTrialsThatNobodyClosesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		s := openServer(&closed)
		s.Idle = time.Hour
		wantError(t, tell(s, 1, external.Open, ""), "")
		time.Sleep(40 * time.Minute)
		wantError(t, tell(s, 2, external.Open, ""), "")
		wantError(t, tell(s, 1, external.Committed, "tea"), "") // it was used: its hour begins anew
		time.Sleep(59 * time.Minute)
		wantError(t, tell(s, 1, external.Committed, "tea"), "")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		// Without any question: what nobody asks about takes no memory.
		if open, _, expired := s.Load(); open != 1 || expired != 1 || closed != 1 {
			t.Errorf("%d trials open, %d expired, %d gates closed", open, expired, closed)
		}
		wantError(t, tell(s, 2, external.Committed, "tea"),
			"trial 2 has expired: nothing was asked for 1h0m0s; open it again")
		wantError(t, tell(s, 3, external.Committed, "tea"), "trial 3 is not open")
		wantError(t, tell(s, 2, external.Open, ""), "")
		wantError(t, tell(s, 2, external.Committed, "tea"), "")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if open, bytes, expired := s.Load(); open != 0 || bytes != 0 || expired != 3 {
			t.Errorf("%d trials open with %d bytes, %d expired", open, bytes, expired)
		}
	})
}

// A year of clients that never close, one a minute.
func TestMemoryStaysBoundedOverALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		s := openServer(&closed)
		s.Trials, s.Memory = 100, 1<<20
		text := strings.Repeat("x", 32<<10)
		year := 365 * 24 * 60
		if testing.Short() { // with the race detector: a week
			year = 7 * 24 * 60
		}
		for n := range uint64(year) {
			if tell(s, n, external.Open, "") != "" || n%10 == 0 && tell(s, n, external.Committed, text) != "" {
				t.Fatalf("trial %d is refused", n)
			}
			if open, bytes, _ := s.Load(); open > s.Trials || bytes > s.Memory {
				t.Fatalf("%d trials open with %d bytes", open, bytes)
			}
			time.Sleep(time.Minute)
		}
		open, _, expired := s.Load()
		if int(expired) != closed || open+closed != year {
			t.Errorf("%d trials open, %d expired, %d gates closed", open, expired, closed)
		}
		wantError(t, tell(s, uint64(year-101), external.Committed, ""), "100 trials were open and it was idle longest")
		time.Sleep(25 * time.Hour)
	})
}

func TestATrialBeyondTheMemoryOfAllExpires(t *testing.T) {
	closed := 0
	s := openServer(&closed)
	s.Memory = 64 << 10
	for n := range uint64(3) {
		wantError(t, tell(s, n, external.Open, ""), "")
		wantError(t, tell(s, n, external.Committed, strings.Repeat("x", 30<<10)), "")
	}
	wantError(t, tell(s, 0, external.Committed, ""), "more than 65536 bytes")
	wantError(t, tell(s, 2, external.Committed, ""), "")
	wantError(t, tell(s, 1, external.Close, ""), "")
	if open, bytes, _ := s.Load(); open != 1 || bytes > 2000 {
		t.Errorf("%d trials open with %d bytes", open, bytes)
	}
}

// Whatever field of a record is long, and whatever way it comes, it counts.
func TestEveryFieldOfARecordCountsAgainstTheMemory(t *testing.T) {
	closed := 0
	s := openServer(&closed)
	long := strings.Repeat("x", 1<<20)
	link := memory.Link{Record: "r", Origin: memory.Origin{Class: memory.User, Source: "s", Medium: memory.Medium(long)}}
	var records []external.Record
	for _, r := range []memory.Record{{Text: long}, {Key: long}, {Store: long}, {Parent: long}, {ID: long}, {SignedBy: long},
		{Signature: []byte(long)}, {Intents: []string{"pay", long}}, {Lineage: memory.Lineage{link}}, {Origin: link.Origin},
		{Intents: make([]string, 1<<16)}} {
		records = append(records, *external.RecordOf(&r))
	}
	for n, q := range []external.Request{{Principal: long}, {Pass: long}} {
		q.Op, q.Trial = external.Open, uint64(100+n)
		wantError(t, s.Answer(context.Background(), &q).Error, "")
		if _, bytes, _ := s.Load(); bytes < (n+1)<<20 {
			t.Errorf("opened with %d bytes", bytes)
		}
	}
	trial := uint64(0)
	for _, op := range []string{external.Committed, external.Seed} {
		for i := range records {
			trial++
			wantError(t, tell(s, trial, external.Open, ""), "")
			q := &external.Request{Op: op, Trial: trial, Change: "add"}
			if q.Record = &records[i]; op == external.Seed {
				q.Records, q.Record = records[i:i+1], nil
			}
			_, before, _ := s.Load()
			wantError(t, s.Answer(context.Background(), q).Error, "")
			if _, after, _ := s.Load(); after-before < 1<<20 {
				t.Errorf("%s %d: %d bytes", op, i, after-before)
			}
		}
	}
}

// Of a name that stands twice some readers take the first and others the last, and
// ours does not mind its case: the guard would judge another message than its client
// means.
func TestAQuestionThatIsReadInTwoWaysIsRefused(t *testing.T) {
	const open = `{"id":1,"op":"open","trial":1,"principal":"u"}`
	for _, line := range []string{
		`{"id":7,"op":"write","op":"close","trial":1}`,
		`{"id":7,"OP":"write","trial":1}`,
		`{"id":7,"op":"write","trial":1,"change":"add","value":"tea","Value":"coffee","source_class":"USER"}`,
		`{"id":7,"op":"write","trial":1,"change":"add","value":"tea","sourc\u0065_class":"USER","source_class":"SYSTEM"}`,
		`{"id":7,"op":"read","trial":1,"candidates":[{"value":"a","value":"b","relevance":1}]}`,
		`{"id":7,"op":"read","trial":1,"candidates":[{"value":"a","origin":{"class":"USER","Class":"SYSTEM"}}]}`,
		`{"id":7,"op":"act","trial":1,"args":[{"name":"to","value":"x","ROLE":"text"}]}`,
		`{"id":7,"op":"input","trial":1,"value":"a","own":1,"own":2}`,
	} {
		closed := 0
		var out bytes.Buffer
		if err := openServer(&closed).Serve(context.Background(),
			strings.NewReader(open+"\n"+line+"\n"+`{"id":8,"op":"close","trial":1}`), &out); err != nil {
			t.Error(err)
		}
		if got := out.String(); strings.Count(got, `"error":`) != 1 || !strings.Contains(got, `{"id":7,"error":"the field`) ||
			!strings.Contains(got, `{"id":8`) || closed != 1 {
			t.Errorf("%s\n%s", line, got)
		}
		s := openServer(&closed)
		for n, body := range []string{open, line} {
			w := httptest.NewRecorder()
			serve.Handler(s, serve.HandlerOptions{}).ServeHTTP(w,
				httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body)))
			if want := []int{200, 400}[n]; w.Code != want || n == 1 && !strings.Contains(w.Body.String(), "the field") {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
	}
	// What nobody knows is still nobody's affair.
	closed := 0
	s := openServer(&closed)
	for _, body := range []string{open, `{"id":7,"op":"input","trial":1,"value":"a","own":{"a":1}}`} {
		w := httptest.NewRecorder()
		serve.Handler(s, serve.HandlerOptions{}).ServeHTTP(w,
			httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body)))
		if w.Code != 200 || strings.Contains(fmt.Sprint(w.Body), "error") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// What was read and not yet answered is bounded in bytes, not only in questions.
func TestLongQuestionsTakeMorePlaces(t *testing.T) {
	defer serve.PerPlace(1 << 10)()
	var opened atomic.Int32
	release := make(chan struct{})
	s := &serve.Server{Open: func(context.Context, memory.View) (memory.Gate, error) {
		opened.Add(1)
		<-release
		return memory.Open{}, nil
	}}
	in, out := io.Pipe()
	var asking, serving sync.WaitGroup
	asking.Go(func() {
		defer out.Close()
		for i := range 100 {
			fmt.Fprintf(out, `{"id":%d,"op":"open","trial":%d,"pass":%q}`+"\n", i+1, i, strings.Repeat("x", 4<<10))
		}
	})
	serving.Go(func() {
		if err := s.Serve(context.Background(), in, io.Discard); err != nil {
			t.Error(err)
		}
	})
	const fit = 256 / 5
	for opened.Load() < fit {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // others would come now
	if n := opened.Load(); n > fit {
		t.Errorf("%d wait at once, of which %d have room", n, fit)
	}
	close(release)
	serving.Wait()
	asking.Wait()
	if n := opened.Load(); n != 100 {
		t.Errorf("%d were answered", n)
	}
}

// A panic of the gate is the operator's to read, and no client's.
func TestAPanicTellsAClientNothing(t *testing.T) {
	var told string
	s := &serve.Server{
		Open:     func(context.Context, memory.View) (memory.Gate, error) { panic("a secret of the guard") },
		Panicked: func(p any, stack []byte) { told = fmt.Sprint(p, string(stack)) },
	}
	a := s.Answer(context.Background(), &external.Request{Op: external.Open, Trial: 1})
	if a.Error == "" || strings.Contains(a.Error, "secret") || strings.Contains(a.Error, ".go:") {
		t.Errorf("the client is told %q", a.Error)
	}
	if !strings.Contains(told, "a secret of the guard") || !strings.Contains(told, "server_test.go") {
		t.Errorf("the operator is told %q", told)
	}
}

// A flood of entries that wait does not make all refusals forgotten at once.
func TestRefusalsAreNotForgottenAtOnce(t *testing.T) {
	if n := serve.Known(1<<16 + 1); n != 1<<16 {
		t.Errorf("%d are known", n)
	}
}
