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
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// policy is what the browser may do with the page: run and show our own files,
// ask our own server, nothing else. Texts cannot become scripts even by a
// mistake of ours.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Server shows a shelf to the person at this machine.
type Server struct {
	shelf *Shelf
	token string
}

// NewServer returns a server with a token of its own.
func NewServer(shelf *Shelf) *Server {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return &Server{shelf: shelf, token: hex.EncodeToString(b)}
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
	srv := &http.Server{Handler: s.Handler(l.Addr()), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
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
	for path, name := range map[string]string{"/{$}": "index.html", "/app.js": "app.js", "/style.css": "style.css", "/favicon.svg": "favicon.svg"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	mux.HandleFunc("/api/runs", s.runs)
	mux.HandleFunc("/api/trials", s.trials)
	mux.HandleFunc("/api/trial", s.trial)
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
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther) // the token leaves the address bar
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

func (s *Server) runs(w http.ResponseWriter, _ *http.Request) {
	list, err := s.shelf.List()
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, map[string]any{"runs": list})
}

// edition finds the run that a request asks for.
func (s *Server) edition(r *http.Request) (*edition, error) {
	b, err := s.shelf.Book(r.URL.Query().Get("run"))
	if err != nil {
		return nil, err
	}
	return b.now()
}

// maxPage is how many trials an answer holds at most.
const maxPage = 500

// trials answers one page of the trials that a query wants. Parameters: run;
// is.COLUMN=VALUE, repeated for any of several; flag.COLUMN=yes|no|none; search;
// sort=COLUMN or -COLUMN; from; n; columns=A,B,…
func (s *Server) trials(w http.ResponseWriter, r *http.Request) {
	e, err := s.edition(r)
	if err != nil {
		fail(w, err)
		return
	}
	v := r.URL.Query()
	rows := e.table.find(queryOf(v))
	from := min(max(number(v.Get("from"), 0), 0), len(rows))
	n := min(max(number(v.Get("n"), 100), 1), maxPage)
	columns := append([]string{"trial"}, strings.Split(v.Get("columns"), ",")...)
	page := [][]any{}
	for _, row := range rows[from:min(from+n, len(rows))] {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = e.table.value(int(row), c)
		}
		page = append(page, cells)
	}
	out := map[string]any{
		"version": e.version, "finished": e.table.finished, "total": e.table.len(), "planned": e.table.run.Planned,
		"matching": len(rows), "from": from, "columns": columns, "rows": page,
	}
	if v.Has("facets") {
		out["facets"], out["run"] = e.table.facets(), infoOf(v.Get("run"), e.table.run)
		out["sortable"] = slices.Concat(textColumns, flagColumns, numberColumns)
		out["flags"] = flagColumns
	}
	answer(w, out)
}

func queryOf(v url.Values) query {
	q := query{is: map[string][]string{}, flags: map[string]byte{}, search: v.Get("search")}
	for key, values := range v {
		if c, ok := strings.CutPrefix(key, "is."); ok && slices.Contains(textColumns, c) {
			q.is[c] = values
		}
		if c, ok := strings.CutPrefix(key, "flag."); ok && slices.Contains(flagColumns, c) {
			if f, ok := map[string]byte{"yes": yes, "no": no, "none": null}[values[0]]; ok {
				q.flags[c] = f
			}
		}
	}
	q.sort, q.down = strings.CutPrefix(v.Get("sort"), "-")
	return q
}

func number(s string, otherwise int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return otherwise
	}
	return n
}

// trial answers everything about one trial. Parameters: run, id.
func (s *Server) trial(w http.ResponseWriter, r *http.Request) {
	for range 3 { // the run may grow between two steps
		e, err := s.edition(r)
		var p *Page
		if err == nil {
			p, err = e.page(r.URL.Query().Get("id"))
		}
		switch {
		case err == nil:
			answer(w, p)
			return
		case !errors.Is(err, errSuperseded):
			fail(w, err)
			return
		}
	}
	fail(w, errSuperseded)
}

func answer(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v) // <, > and & are escaped
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Write(b)
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, errNoRun) || errors.Is(err, errNoTrial) || errors.Is(err, fs.ErrNotExist) {
		code = http.StatusNotFound
	}
	b, _ := json.Marshal(map[string]string{"error": err.Error()})
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	w.Write(b)
}
