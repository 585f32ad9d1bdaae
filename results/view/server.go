package view

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/memtox/memtox/internal/door"
	"github.com/memtox/memtox/results/render"
)

//go:embed assets
var assets embed.FS

// Server shows runs to the person at this machine.
type Server struct {
	// Trial is the id of the one at which the page opens, of a server of one run.
	Trial string
	list  *Runs
	token string
}

// NewServer returns a server with a token of its own.
func NewServer(runs *Runs) *Server {
	return &Server{list: runs, token: door.NewToken()}
}

// Listen listens on the loopback interface; port 0 takes a free one.
func Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening for the page: %w", err)
	}
	return l, nil
}

// URL is the address to open, with the token in it. It lets anybody in who can
// reach this machine's loopback interface and knows it.
func (s *Server) URL(addr net.Addr) string { return s.door().URL(addr) }

// door lets only the person in who has the token.
func (s *Server) door() *door.Door {
	d := &door.Door{Name: "memtox view", Token: s.token}
	if s.Trial != "" {
		d.Start = "/trial?" + url.Values{"run": {"."}, "id": {s.Trial}}.Encode()
	}
	return d
}

// Serve answers until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	srv := &http.Server{Handler: s.Handler(l.Addr()), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10}
	err := srv.Serve(l)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the page: %w", err)
}

// Handler answers requests that came to an address.
func (s *Server) Handler(addr net.Addr) http.Handler {
	mux, asked := http.NewServeMux(), http.NewServeMux()
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for path, name := range map[string]string{"/{$}": "index.html", "/app.js": "app.js", "/style.css": "style.css",
		"/favicon.svg": "favicon.svg"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	mux.HandleFunc("/heat.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		io.WriteString(w, render.HeatStyle)
	})
	for name, ask := range map[string]func(url.Values) (any, error){"runs": s.runs, "figures": s.figures,
		"table": s.table, "trial": s.trial} {
		asked.HandleFunc("/api/"+name, api(ask))
	}
	return s.door().Guard(addr, mux, asked)
}

// api answers with what is asked for as JSON, or with what went wrong.
func api(ask func(url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code := http.StatusOK
		v, err := ask(r.URL.Query())
		if err != nil {
			v, code = map[string]string{"error": err.Error()}, http.StatusInternalServerError
			if errors.Is(err, errNoRun) || errors.Is(err, errNoTrial) || errors.Is(err, fs.ErrNotExist) {
				code = http.StatusNotFound
			}
		}
		b, err := json.Marshal(v) // <, > and & are escaped
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(code)
		w.Write(b)
	}
}

// runs answers the list of runs.
func (s *Server) runs(url.Values) (any, error) {
	list, err := s.list.List()
	return map[string]any{"runs": list}, err
}

// run finds the run that a request asks for.
func (s *Server) run(v url.Values) (*snapshot, error) {
	o, err := s.list.open(v.Get("run"))
	if err != nil {
		return nil, err
	}
	return o.now()
}

// figures answers what a run comes to. Parameters: run.
func (s *Server) figures(v url.Values) (any, error) {
	o, err := s.list.open(v.Get("run"))
	if err != nil {
		return nil, err
	}
	return o.figures()
}

// table answers a run's trials, or that they are those of the version that is known.
// Parameters: run, version.
func (s *Server) table(v url.Values) (any, error) {
	run, err := s.run(v)
	if err != nil {
		return nil, err
	}
	if v.Get("version") == strconv.Itoa(run.version) {
		return map[string]any{"version": run.version}, nil
	}
	return run.table.sent(v.Get("run"), run.version), nil
}

// trial answers everything about one trial. Parameters: run, id.
func (s *Server) trial(v url.Values) (any, error) {
	for range 3 { // the run may grow between two steps
		run, err := s.run(v)
		if err != nil {
			return nil, err
		}
		p, err := run.page(v.Get("id"))
		if !errors.Is(err, errSuperseded) {
			return p, err
		}
	}
	return nil, errSuperseded
}
