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
	return &Metrics{decisions: make(map[[2]string]uint64), findings: make(map[string]uint64),
		seconds: make(map[string]float64), requests: make(map[string]uint64)}
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
	family := func(name, kind, help string, lines ...string) {
		slices.Sort(lines)
		fmt.Fprintf(&b, "# HELP memtox_guard_%s %s\n# TYPE memtox_guard_%s %s\n", name, help, name, kind)
		for _, line := range lines {
			fmt.Fprintf(&b, "memtox_guard_%s%s\n", name, line)
		}
	}
	var decisions, times, findings, requests []string
	gates := make(map[string]uint64)
	for k, n := range m.decisions {
		decisions = append(decisions, fmt.Sprintf("{gate=%q,action=%q} %d", k[0], k[1], n))
		gates[k[0]] += n
	}
	for gate, n := range gates {
		times = append(times, fmt.Sprintf("_count{gate=%q} %d\nmemtox_guard_decision_seconds_sum{gate=%q} %g", gate, n, gate,
			m.seconds[gate]))
	}
	for check, n := range m.findings {
		findings = append(findings, fmt.Sprintf("{check=%q} %d", check, n))
	}
	var all uint64
	for code, n := range m.requests {
		requests = append(requests, fmt.Sprintf("{code=%q} %d", code, n))
		all += n
	}
	family("decisions_total", "counter", "Decisions of the guard, by gate and action.", decisions...)
	family("decision_seconds", "summary", "Time of a decision, by gate.", times...)
	family("findings_total", "counter", "Findings, by check.", findings...)
	family("http_requests_total", "counter", "Requests that were answered, by status.", requests...)
	family("http_request_seconds", "summary", "Time of a request.", fmt.Sprint("_count ", all),
		fmt.Sprintf("_sum %g", m.spent.Seconds()))
	family("http_requests_in_flight", "gauge", "Requests that are being answered.", fmt.Sprint(" ", m.inFlight))
	family("sealings_total", "counter", "Sealings of the store, by outcome.",
		fmt.Sprintf("{outcome=\"done\"} %d", m.sealings[0]), fmt.Sprintf("{outcome=\"failed\"} %d", m.sealings[1]))
	if m.load != nil {
		open, bytes, expired := m.load()
		family("open_trials", "gauge", "Trials that are open.", fmt.Sprint(" ", open))
		family("trial_bytes", "gauge", "What is kept of the records of open trials, in bytes.", fmt.Sprint(" ", bytes))
		family("trials_expired_total", "counter", "Trials that ended because nobody closed them.", fmt.Sprint(" ", expired))
	}
	return b.String()
}
