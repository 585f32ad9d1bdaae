package report

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/memtox/memtox/internal/browser"
	"github.com/memtox/memtox/results/internal/runtest"
)

// file writes a page and returns its address.
func file(t testing.TB, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// In a real browser, at three widths, light and dark, folded and open: no complaint, no
// request, enough contrast, and nothing clips.
func TestPageInABrowser(t *testing.T) {
	words := runtest.Spec{Trials: 960, NotScored: 0.02,
		Defenses: []string{"none", "block-all", "memoryguard", "provenance", "guard", "guard@write"}}
	states := runtest.Spec{Trials: 3600, States: true, Defenses: []string{"none", "no-memory", "origin-only",
		"attribution-only", "keyword", "provenance", "contradiction", "anomaly", "guard"}}
	for name, spec := range map[string]runtest.Spec{"words": words, "states": states} {
		address := file(t, htmlOf(t, read(t, spec)))
		p := browser.Open(t)
		p.Go(address)
		p.Everywhere("report-" + name)
		var tall int
		p.Eval("document.documentElement.scrollHeight", &tall)
		if spec.States && tall >= 6000 {
			t.Errorf("%s: the page is %d pixels tall", name, tall)
		}
		p.Eval("document.querySelectorAll('details').forEach(d => d.open = true), 0", new(int))
		p.Everywhere("report-" + name + "-open")
		var overlap []string
		p.Eval(`[...document.querySelectorAll('svg')].flatMap(s => { const ts = [...s.querySelectorAll('text')].filter(e => !e.getAttribute('transform')).map(e => [e, e.getBoundingClientRect()]);
			return ts.flatMap(([e, a], i) => ts.slice(i + 1).filter(([f, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([f]) => s.querySelector('title').textContent + ': ' + e.textContent + ' / ' + f.textContent)); })`, &overlap)
		for _, o := range overlap {
			t.Errorf("%s: texts overlap: %s", name, o)
		}
		p.Quiet(address)
	}
}

// Text of a case that would be a script, an image or a style is shown and does
// nothing.
func TestHostileTextDoesNothingInABrowser(t *testing.T) {
	hostile := `</title></svg></style><script>document.body.dataset.owned=1;console.error("owned")</script><img src=http://h.invalid/x onerror="document.body.dataset.owned=1"><style>body{display:none}</style>`
	address := file(t, htmlOf(t, read(t, runtest.Spec{Trials: 240, NotScored: 0.1, Hostile: hostile,
		Defenses: []string{"none", "guard" + hostile}})))
	p := browser.Open(t)
	p.Go(address)
	var owned, visible bool
	p.Eval("'owned' in document.body.dataset", &owned)
	p.Eval("getComputedStyle(document.body).display !== 'none' && document.body.innerText.includes('<script>')", &visible)
	if owned || !visible {
		t.Errorf("it ran: %v; it is shown as text: %v", owned, visible)
	}
	p.Shot("report-hostile")
	p.Quiet(address)
}

// Everything that scrolls, and every link, is reached by the keyboard.
func TestKeyboardReachesWhatScrolls(t *testing.T) {
	p := browser.Open(t)
	p.Size(390, 844, "light")
	p.Go(file(t, htmlOf(t, read(t, runtest.Spec{Trials: 240}))))
	var first string
	p.Keys("\t")
	p.Eval("document.activeElement.textContent", &first)
	if first != "Skip to the figures" {
		t.Errorf("the first stop is %q", first)
	}
	var missed int
	p.Eval(`[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0).length`, &missed)
	if missed > 0 {
		t.Errorf("%d parts scroll and take no focus", missed)
	}
}
