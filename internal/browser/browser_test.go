package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// Each page gives way to the next while an expression waits in it.
func TestWaitsAcrossPagesThatGiveWay(t *testing.T) {
	const last = 10
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%d</title>", n)
		if n < last {
			fmt.Fprintf(w, "<script>setTimeout(() => location.replace('/%d'), 5)</script>", n+1)
		}
	}))
	defer s.Close()
	p := Open(t)
	p.Go(s.URL + "/0")
	p.Wait(fmt.Sprintf("new Promise(done => setTimeout(() => done(document.title === '%d'), 20))", last))
}
