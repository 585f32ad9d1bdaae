package door_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memtox/memtox/internal/browser"
	"github.com/memtox/memtox/internal/door"
)

// house is a door with a page that shows what its API answers, in tabs of its own too.
func house(t *testing.T, tabs string) (open, address, token string, decided func() int) {
	t.Helper()
	d := &door.Door{Name: "memtox test", Token: door.NewToken(), Start: "/place", Decides: true}
	var mu sync.Mutex
	n := 0
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			n++
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"said":"the secret of the house"}`)
	})
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/app.js" {
			w.Header().Set("Content-Type", "text/javascript")
			io.WriteString(w, "door('list').then(a => document.body.textContent = a.said, e => document.body.textContent = e.message)")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><html %s><title>door</title><link rel="icon" href="data:,"><script src="door.js" defer></script>`+
			`<script src="app.js" defer></script><body>`, tabs)
	})
	s := httptest.NewUnstartedServer(nil)
	s.Config.Handler = d.Guard(s.Listener.Addr(), pages, api)
	s.Start()
	t.Cleanup(s.Close)
	return d.URL(s.Listener.Addr()), s.URL + "/", d.Token, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// Another server of this machine, on a port of its own, is sent nothing that lets it read
// or decide, whatever its pages do while the person is signed in.
func TestAnotherPortGetsNothing(t *testing.T) {
	for name, tabs := range map[string]string{"one tab": "", "many tabs": "data-tabs"} {
		t.Run(name, func(t *testing.T) {
			open, address, token, decided := house(t, tabs)
			var mu sync.Mutex
			var heard strings.Builder
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := httputil.DumpRequest(r, true)
				mu.Lock()
				heard.Write(b)
				mu.Unlock()
				w.Header().Set("Content-Type", "text/html")
				io.WriteString(w, `<!DOCTYPE html><title>other</title><link rel="icon" href="data:,"><body>`)
			}))
			defer other.Close()

			p := browser.Open(t)
			lead := filepath.Join(t.TempDir(), "lead.html") // as memtox view --open has it
			if err := os.WriteFile(lead, []byte(`<!DOCTYPE html><title>lead</title><meta http-equiv="refresh" content="0; url=`+
				open+`">`), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Go("file://" + lead)
			p.Wait("document.body?.textContent === 'the secret of the house'")
			var where string
			p.Eval("location.href", &where)
			if where != address+"#/place" {
				t.Errorf("the address bar says %s", where)
			}
			p.Eval("location.reload(), 0", nil)
			p.Wait("document.readyState === 'complete' && document.body?.textContent === 'the secret of the house'")

			p.Go(other.URL)
			var got string
			p.Eval(`(async () => {
				const out = [document.referrer, document.cookie, ...Object.values(sessionStorage), ...Object.values(localStorage)];
				for (const init of [{}, {mode: 'no-cors'}, {method: 'POST', mode: 'no-cors', body: '{}'}, {method: 'POST', headers: {Authorization: 'Bearer x'}}])
					out.push(await fetch('`+address+`api/decide', {credentials: 'include', ...init}).then(r => r.text(), e => e.message));
				await fetch('/heard', {method: 'POST', credentials: 'include', body: out.join('\n')});
				return out.join('\n');
			})()`, &got)
			mu.Lock()
			all := heard.String() + got
			mu.Unlock()
			if strings.Contains(all, token) || strings.Contains(all, "the secret") || decided() > 0 {
				t.Errorf("the other server has it, or decided %d times:\n%s", decided(), all)
			}
			if !strings.Contains(all, "POST /heard") {
				t.Fatalf("the other page did not run:\n%s", all)
			}

			// The person's own tab is still signed in; a tab without the address is where links open in others.
			p.Go(address)
			want := "the secret of the house"
			p.Wait("document.body?.textContent === '" + want + "'")
			p.Eval("sessionStorage.clear(), location.reload(), 0", nil)
			if tabs == "" {
				want = "Open the address that memtox test gave: it holds the token.\\n"
			}
			p.Wait("document.body?.textContent === '" + want + "'")
			p.Go(address + "#token=" + token) // as a restarted server would have it
			p.Wait("document.body?.textContent === 'the secret of the house' && !location.href.includes('token')")
		})
	}
}

// Without the token, at another name, or from another page, nothing of the API is answered.
func TestOnlyTheTokenOpens(t *testing.T) {
	_, address, token, decided := house(t, "")
	for _, x := range []struct {
		name, method, path, host, bearer, origin string
		want                                     int
	}{
		{"the page", "GET", "", "", "", "", 200},
		{"its script", "GET", "door.js", "", "", "", 200},
		{"the token", "GET", "api/list", "", token, "", 200},
		{"no token", "GET", "api/list", "", "", "", 403},
		{"another token", "GET", "api/list", "", token[1:] + "0", "", 403},
		{"the token in the address", "GET", "api/list?token=" + token, "", "", "", 403},
		{"another page", "POST", "api/decide", "", token, "http://evil.example", 403},
		{"a file", "POST", "api/decide", "", token, "null", 403},
		{"a name that resolves here", "GET", "api/list", "evil.example", token, "", 421},
		{"the page, at such a name", "GET", "", "evil.example", "", "", 421},
		{"a page that is written to", "POST", "", "", token, "", 405},
		{"upwards", "GET", "x/../api/list", "", "", "", 403},
	} {
		r, err := http.NewRequest(x.method, address+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + x.bearer, "Origin": x.origin} {
			if strings.TrimSpace(value) != "Bearer" && value != "" {
				r.Header.Set(name, value)
			}
		}
		r.Host = x.host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || strings.Contains(string(b), token) || resp.StatusCode != x.want && x.name != "upwards" ||
			strings.Contains(string(b), "the secret") != (x.name == "the token") {
			t.Errorf("%s: %d %s %v, want %d", x.name, resp.StatusCode, b, err, x.want)
		}
	}
	if decided() > 0 {
		t.Error("somebody decided")
	}
}
