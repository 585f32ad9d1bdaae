// Package door lets the person at this machine, and nobody else, into pages that a command
// serves. It reaches out to nothing.
package door

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Policy is what the browser may do with a page of ours: run and show our own files,
// ask our own server, nothing else. Texts cannot become scripts even by a mistake of ours.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed door.js
var script []byte

// Door lets only the person into the pages of a server on this machine who has its token.
//
// The address has the token in its fragment, which no browser sends. The script /door.js,
// which each page loads before its own, keeps it in the storage of the page's origin and
// shows it with each request of the API. A cookie would go to every server at this
// machine's address: cookies do not know ports.
type Door struct {
	Name  string // of the command, as in "memtox view"
	Token string
	Start string // the fragment at which the pages begin, without its #
	// Decides lets requests through that change something.
	Decides bool
}

// NewToken draws a token at random.
func NewToken() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// URL is the address to open, with the token in it. It lets anybody in who can reach this
// machine's loopback interface and knows it.
func (d *Door) URL(addr net.Addr) string {
	return "http://" + addr.String() + "/#token=" + d.Token + d.Start
}

// is compares a token without telling how much of it was right.
func (d *Door) is(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(d.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Guard puts the door before the requests to an address. Only what is under /api/ needs the
// token (Authorization: Bearer …): pages, which hold nothing secret, are everybody's. The
// Host header must be this server's, else a page of another site could make its name
// resolve to this machine and read along.
func (d *Door) Guard(addr net.Addr, pages, api http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr.String())
	hosts := []string{addr.String(), net.JoinHostPort("localhost", port)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		asks := strings.HasPrefix(r.URL.Path, "/api/")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		bearer, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		from := r.Header.Get("Origin") // a browser says which page asks
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, d.Name+" answers at its own address only.", http.StatusMisdirectedRequest)
		case !reads && !(asks && d.Decides):
			h.Set("Allow", "GET, HEAD")
			http.Error(w, d.Name+" only shows.", http.StatusMethodNotAllowed)
		case from != "" && from != "http://"+r.Host:
			http.Error(w, "Another page may not ask.", http.StatusForbidden)
		case r.URL.Path == "/door.js":
			h.Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(script)
		case !asks:
			pages.ServeHTTP(w, r)
		case !shown || !d.is(bearer):
			http.Error(w, "Open the address that "+d.Name+" gave: it holds the token.", http.StatusForbidden)
		default:
			api.ServeHTTP(w, r)
		}
	})
}
