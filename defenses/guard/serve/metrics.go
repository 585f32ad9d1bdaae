package serve

import (
	"context"
	"fmt"
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
	mu        sync.Mutex
	decisions map[[2]string]uint64 // gate, action
	findings  map[string]uint64    // check
	seconds   map[string]float64   // gate
	requests  map[string]uint64    // status code
	spent     time.Duration
	inFlight  int
	sealings  [2]uint64                                // done and failed
	load      func() (open, bytes int, expired uint64) // of the server's trials; nil for none
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	return &Metrics{decisions: make(map[[2]string]uint64), findings: make(map[string]uint64), seconds: make(map[string]float64), requests: make(map[string]uint64)}
}

// Hook counts the decisions of a guard: [guard.Options.Hook].
func (m *Metrics) Hook(_ context.Context, e *guard.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decisions[[2]string{e.Gate.String(), e.Action.String()}]++
	m.seconds[e.Gate.String()] += e.Took.Seconds()
	for _, f := range e.Findings {
		m.findings[string(f.On)]++
	}
}

// Sealed counts the sealings of a store: [Sealer.Told].
func (m *Metrics) Sealed(s Sealing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.Err != nil {
		m.sealings[1]++
	} else {
		m.sealings[0]++
	}
}

// count counts the requests that a handler answers.
func (m *Metrics) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.inFlight++
		m.mu.Unlock()
		began := time.Now()
		status := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.inFlight--
			m.requests[strconv.Itoa(status.code)]++
			m.spent += time.Since(began)
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
	var b strings.Builder
	head := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	head("memtox_guard_decisions_total", "counter", "Decisions of the guard, by gate and action.")
	var lines []string
	gates := make(map[string]uint64)
	for k, n := range m.decisions {
		lines = append(lines, fmt.Sprintf("memtox_guard_decisions_total{gate=%q,action=%q} %d\n", k[0], k[1], n))
		gates[k[0]] += n
	}
	sorted := func() {
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
		lines = lines[:0]
	}
	sorted()
	head("memtox_guard_decision_seconds", "summary", "Time of a decision, by gate.")
	for gate, n := range gates {
		lines = append(lines, fmt.Sprintf("memtox_guard_decision_seconds_count{gate=%q} %d\nmemtox_guard_decision_seconds_sum{gate=%q} %g\n", gate, n, gate, m.seconds[gate]))
	}
	sorted()
	head("memtox_guard_findings_total", "counter", "Findings, by check.")
	for check, n := range m.findings {
		lines = append(lines, fmt.Sprintf("memtox_guard_findings_total{check=%q} %d\n", check, n))
	}
	sorted()
	head("memtox_guard_http_requests_total", "counter", "Requests that were answered, by status.")
	var all uint64
	for code, n := range m.requests {
		lines = append(lines, fmt.Sprintf("memtox_guard_http_requests_total{code=%q} %d\n", code, n))
		all += n
	}
	sorted()
	head("memtox_guard_http_request_seconds", "summary", "Time of a request.")
	fmt.Fprintf(&b, "memtox_guard_http_request_seconds_count %d\nmemtox_guard_http_request_seconds_sum %g\n", all, m.spent.Seconds())
	head("memtox_guard_http_requests_in_flight", "gauge", "Requests that are being answered.")
	fmt.Fprintf(&b, "memtox_guard_http_requests_in_flight %d\n", m.inFlight)
	head("memtox_guard_sealings_total", "counter", "Sealings of the store, by outcome.")
	fmt.Fprintf(&b,
		"memtox_guard_sealings_total{outcome=\"done\"} %d\nmemtox_guard_sealings_total{outcome=\"failed\"} %d\n", m.sealings[0], m.sealings[1])
	if m.load != nil {
		open, bytes, expired := m.load()
		head("memtox_guard_open_trials", "gauge", "Trials that are open.")
		fmt.Fprintf(&b, "memtox_guard_open_trials %d\n", open)
		head("memtox_guard_trial_bytes", "gauge", "What is kept of the records of open trials, in bytes.")
		fmt.Fprintf(&b, "memtox_guard_trial_bytes %d\n", bytes)
		head("memtox_guard_trials_expired_total", "counter", "Trials that ended because nobody closed them.")
		fmt.Fprintf(&b, "memtox_guard_trials_expired_total %d\n", expired)
	}
	return b.String()
}
