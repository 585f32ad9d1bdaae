package serve

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/door"
	"github.com/memtox/memtox/internal/remote"
)

//go:embed page
var pageFiles embed.FS

// Page is where a person decides, in a browser or by HTTP. It is a server of its own with
// a token of its own: nothing that a client of the guard has opens it.
type Page struct {
	List *pending.List
	By   string // in whose name is decided
	Door door.Door
}

// NewPage returns the page of a list, with a fresh token.
func NewPage(l *pending.List, by string) *Page {
	return &Page{l, by, door.Door{Name: "memtox guard", Token: door.NewToken(), Decides: true}}
}

// maxDecision bounds what a person sends, in bytes, and maxShown how many of the calls that
// wait they are sent at once, and how many of what would be remembered: the oldest of each.
const (
	maxDecision = 16 << 10
	maxShown    = 100
)

// Handler answers requests that came to an address: the page, GET /api/pending, and POST
// /api/decide with id, decision (approve, source or reject) and why. A list that has the
// version which is asked for (?version=N) is not sent again.
func (p *Page) Handler(addr net.Addr) http.Handler {
	mux, asked := http.NewServeMux(), http.NewServeMux()
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for path, name := range map[string]string{"/{$}": "index.html", "/app.js": "app.js", "/style.css": "style.css",
		"/favicon.svg": "favicon.svg"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	asked.HandleFunc("GET /api/pending", func(w http.ResponseWriter, r *http.Request) {
		version, err := p.List.Version(r.Context())
		out := map[string]any{"version": version}
		if err == nil && r.URL.Query().Get("version") != strconv.FormatUint(version, 10) {
			var waits, stands []pending.Entry
			waits, stands, err = p.List.Entries(r.Context())
			out["waiting"], out["pending"], out["standing"] = len(waits), oldest(waits), stands
		}
		if err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		send(w, http.StatusOK, out)
	})
	asked.HandleFunc("POST /api/decide", func(w http.ResponseWriter, r *http.Request) {
		var d decision
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDecision))
		if err == nil {
			err = d.read(b)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, "the decision is not right: "+err.Error())
			return
		}
		e, err := p.decide(r.Context(), &d)
		switch {
		case errors.Is(err, memory.ErrNotFound):
			refuse(w, http.StatusNotFound, err.Error())
		case errors.Is(err, store.ErrDecided), errors.Is(err, memory.ErrMovedOn), errors.Is(err, pending.ErrNoSource):
			refuse(w, http.StatusConflict, err.Error())
		case err != nil:
			refuse(w, http.StatusInternalServerError, err.Error())
		default:
			send(w, http.StatusOK, e)
		}
	})
	return p.Door.Guard(addr, mux, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if whole, ok := r.Context().Value(wholeKey{}).(func()); ok {
			whole() // the person's connections give way to nobody's who has no token
		}
		asked.ServeHTTP(w, r)
	}))
}

// oldest are the entries that are shown: many of one kind hide none of the other.
func oldest(waits []pending.Entry) []pending.Entry {
	shown, n := []pending.Entry{}, map[bool]int{}
	for _, e := range waits {
		if call := e.Kind == "call"; n[call] < maxShown {
			n[call]++
			shown = append(shown, e)
		}
	}
	return shown
}

// decision is what a person sends.
type decision struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	Why      string `json:"why"`
}

func (d *decision) read(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		return err
	}
	if err := remote.Exact(b, remote.Fields(reflect.TypeFor[decision]())); err != nil {
		return err
	}
	switch d.Decision {
	case "approve", "source", "reject":
		return nil
	}
	return fmt.Errorf("decision %q: one of approve, source, reject", d.Decision)
}

func (p *Page) decide(ctx context.Context, d *decision) (pending.Entry, error) {
	why := cmp.Or(strings.TrimSpace(d.Why), "decided on the page, without a reason")
	of := pending.Decision{By: p.By, Why: why, Source: d.Decision == "source"}
	if d.Decision == "reject" {
		return p.List.Reject(ctx, d.ID, of)
	}
	return p.List.Approve(ctx, d.ID, of)
}

// AddressFile is where the address of the page of a store stands while it is served. It
// holds the token.
func AddressFile(store string) string { return store + ".page" }

// WriteAddress writes the address of a page for the owner of the file alone.
func WriteAddress(store, url string) error {
	name := AddressFile(store)
	f, err := os.CreateTemp(filepath.Dir(name), ".memtox-*.tmp") // of mode 0600
	if err != nil {
		return fmt.Errorf("writing the address of the page: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(url + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing the address of the page: %w", err)
	}
	return nil
}

// ReadAddress is the address of the page that a store is decided on, "" where none is
// served. That of a server that was killed is still there.
func ReadAddress(store string) string {
	b, err := os.ReadFile(AddressFile(store))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
