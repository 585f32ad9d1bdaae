package serve

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/defenses/guard"
)

// Metrics counts what a server does and shows it in the text format of Prometheus
// (exposition format 0.0.4). Its labels have few values, and none comes from a
// content.
type Metrics struct {
	mu     sync.Mutex
	values map[string]float64                       // by family and labels, as they are shown
	load   func() (open, bytes int, expired uint64) // of the server's trials; nil for none
}

// families are what is counted: name, kind, meaning.
var families = [...][3]string{
	{"decisions_total", "counter", "Decisions of the guard, by gate and action."},
	{"decision_seconds", "summary", "Time of a decision, by gate."},
	{"findings_total", "counter", "Findings, by check."},
	{"http_requests_total", "counter", "Requests that were answered, by status."},
	{"http_request_seconds", "summary", "Time of a request."},
	{"http_requests_in_flight", "gauge", "Requests that are being answered."},
	{"sealings_total", "counter", "Sealings of the store, by outcome."},
	{"open_trials", "gauge", "Trials that are open."},
	{"trial_bytes", "gauge", "What is kept of the records of open trials, in bytes."},
	{"trials_expired_total", "counter", "Trials that ended because nobody closed them."},
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	return &Metrics{values: map[string]float64{"http_request_seconds_count": 0, "http_request_seconds_sum": 0,
		"http_requests_in_flight": 0, `sealings_total{outcome="done"}`: 0, `sealings_total{outcome="failed"}`: 0}}
}

// Hook counts the decisions of a guard: [guard.Options.Hook].
func (m *Metrics) Hook(_ context.Context, e *guard.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[fmt.Sprintf("decisions_total{gate=%q,action=%q}", e.Gate, e.Action)]++
	m.values[fmt.Sprintf("decision_seconds_count{gate=%q}", e.Gate)]++
	m.values[fmt.Sprintf("decision_seconds_sum{gate=%q}", e.Gate)] += e.Took.Seconds()
	for _, f := range e.Findings {
		m.values[fmt.Sprintf("findings_total{check=%q}", f.On)]++
	}
}

// Sealed counts the sealings of a store: [Sealer.Told].
func (m *Metrics) Sealed(s Sealing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome := "done"
	if s.Err != nil {
		outcome = "failed"
	}
	m.values[fmt.Sprintf("sealings_total{outcome=%q}", outcome)]++
}

// count counts the requests that a handler answers.
func (m *Metrics) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.values["http_requests_in_flight"]++
		m.mu.Unlock()
		began := time.Now()
		status := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.values["http_requests_in_flight"]--
			m.values[fmt.Sprintf("http_requests_total{code=\"%d\"}", status.code)]++
			m.values["http_request_seconds_count"]++
			m.values["http_request_seconds_sum"] += time.Since(began).Seconds()
		}()
		h.ServeHTTP(status, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// ServeHTTP implements [http.Handler].
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(m.String()))
}

// String is the metrics as text.
func (m *Metrics) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.load != nil {
		open, bytes, expired := m.load()
		m.values["open_trials"], m.values["trial_bytes"] = float64(open), float64(bytes)
		m.values["trials_expired_total"] = float64(expired)
	}
	var b strings.Builder
	names := slices.Sorted(maps.Keys(m.values))
	for _, f := range families {
		fmt.Fprintf(&b, "# HELP memtox_guard_%s %s\n# TYPE memtox_guard_%s %s\n", f[0], f[2], f[0], f[1])
		for _, name := range names {
			if strings.HasPrefix(name, f[0]) { // no family's name begins with another's
				fmt.Fprintf(&b, "memtox_guard_%s %s\n", name, strconv.FormatFloat(m.values[name], 'f', -1, 64))
			}
		}
	}
	return b.String()
}
