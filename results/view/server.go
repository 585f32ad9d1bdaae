package view

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/memtox/memtox/results/render"
)

//go:embed assets
var assets embed.FS

// policy is what the browser may do with the page: run and show our own files,
// ask our own server, nothing else. Texts cannot become scripts even by a
// mistake of ours.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Server shows runs to the person at this machine.
type Server struct {
	// Trial is the id of the one at which the page opens, of a server of one run.
	Trial string
	list  *Runs
	token string
}

// NewServer returns a server with a token of its own.
func NewServer(runs *Runs) *Server {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return &Server{list: runs, token: hex.EncodeToString(b)}
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
func (s *Server) URL(addr net.Addr) string { return "http://" + addr.String() + "/?token=" + s.token }

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
	mux := http.NewServeMux()
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
		mux.HandleFunc("/api/"+name, api(ask))
	}
	return s.guarded(addr, mux)
}

// guarded lets only the person in who has the token. The Host header must be
// this server's, else a page of another site could make its name resolve to this
// machine and read along.
func (s *Server) guarded(addr net.Addr, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr.String())
	hosts := []string{addr.String(), net.JoinHostPort("localhost", port)}
	// Cookies do not know ports: another view on this machine has another name.
	cookie := "memtox_view_" + port
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "memtox view answers at its own address only.", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "memtox view only shows.", http.StatusMethodNotAllowed)
		case r.URL.Path == "/" && r.URL.Query().Has("token"):
			if !s.is(r.URL.Query().Get("token")) {
				http.Error(w, "That token is not this view's. Open the address that memtox view printed.", http.StatusForbidden)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			// The token leaves the address bar. It is this page that asks for the next: the
			// browser would keep the cookie back from a redirection that a file began.
			start := "./"
			if s.Trial != "" {
				start += "#/trial?" + url.Values{"run": {"."}, "id": {s.Trial}}.Encode()
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!DOCTYPE html><title>memtox view</title><link rel=\"icon\" href=\"favicon.svg\">"+
				"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
				html.EscapeString(start))
		default:
			if c, err := r.Cookie(cookie); err != nil || !s.is(c.Value) {
				http.Error(w, "Open the address that memtox view printed: it holds the token.", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		}
	})
}

// is compares a token without telling how much of it was right.
func (s *Server) is(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
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
