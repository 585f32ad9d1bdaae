// Package door lets the person at this machine, and nobody else, into pages that a command
// serves. It reaches out to nothing.
package door

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"html"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Policy is what the browser may do with a page of ours: run and show our own files,
// ask our own server, nothing else. Texts cannot become scripts even by a mistake of ours.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Door lets only the person into the pages of a server on this machine who has its token.
type Door struct {
	Name  string // of the command, as in "memtox view"
	Token string
	Start string // where the pages begin, "./" or more
	// Decides lets requests through that change something: those of its own pages, and
	// those that show the token in a header (Authorization: Bearer …).
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
func (d *Door) URL(addr net.Addr) string { return "http://" + addr.String() + "/?token=" + d.Token }

// is compares a token without telling how much of it was right.
func (d *Door) is(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(d.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Guard puts the door before a handler of requests to an address. The Host header must be
// this server's, else a page of another site could make its name resolve to this machine
// and read along.
func (d *Door) Guard(addr net.Addr, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr.String())
	hosts := []string{addr.String(), net.JoinHostPort("localhost", port)}
	// Cookies do not know ports: another server on this machine has another name.
	cookie := strings.ReplaceAll(d.Name, " ", "_") + "_" + port
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		bearer, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, d.Name+" answers at its own address only.", http.StatusMisdirectedRequest)
		case !reads && !d.Decides:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, d.Name+" only shows.", http.StatusMethodNotAllowed)
		case r.URL.Path == "/" && r.URL.Query().Has("token"):
			if !d.is(r.URL.Query().Get("token")) {
				http.Error(w, "That token is not the one. Open the address that "+d.Name+" gave.", http.StatusForbidden)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: d.Token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			// The token leaves the address bar. It is this page that asks for the next: the
			// browser would keep the cookie back from a redirection that a file began.
			h.Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!DOCTYPE html><title>%s</title><link rel=\"icon\" href=\"favicon.svg\">"+
				"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", d.Name, html.EscapeString(d.Start))
		case shown && d.Decides && r.Header.Get("Origin") == "" && d.is(bearer):
			next.ServeHTTP(w, r)
		case !reads && r.Header.Get("Origin") != "http://"+r.Host: // a browser says which page asks
			http.Error(w, "Another page may not decide.", http.StatusForbidden)
		default:
			if c, err := r.Cookie(cookie); err != nil || !d.is(c.Value) {
				http.Error(w, "Open the address that "+d.Name+" gave: it holds the token.", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		}
	})
}
