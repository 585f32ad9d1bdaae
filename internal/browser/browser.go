// Package browser drives a headless Chromium for tests of pages. A test that
// asks for one is skipped where there is none; MEMTOX_BROWSER names the program
// and then it must be there. With MEMTOX_SCREENSHOTS set to a directory, tests
// leave pictures there for a person to look at.
package browser

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is one tab. It records what its page complained about and what it asked
// the network for.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	requests []string
}

// Find returns the path of a browser, or skips the test.
func Find(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("MEMTOX_BROWSER"); p != "" {
		path, err := exec.LookPath(p)
		if err != nil {
			t.Fatalf("MEMTOX_BROWSER: %v", err)
		}
		return path
	}
	for _, p := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	t.Skip("no chromium on PATH; install one, or name it in MEMTOX_BROWSER, to test pages in a real browser")
	return ""
}

// Open starts a browser with one empty tab. It ends with the test.
func Open(t testing.TB) *Page {
	t.Helper()
	path := Find(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("force-device-scale-factor", "1"))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	// The protocol is newer in some browsers than in the driver: what it cannot
	// read concerns no test.
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, p.heard)
	p.Run(network.Enable(), log.Enable(), runtime.Enable())
	return p
}

func (p *Page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text := "console " + e.Type.String() + ":"
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			p.problems = append(p.problems, text)
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			p.problems = append(p.problems, fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *page.EventJavascriptDialogOpening:
		p.problems = append(p.problems, "a dialog opened: "+e.Message)
	}
}

// Run runs actions and fails the test where one fails.
func (p *Page) Run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Go loads a page.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.Run(chromedp.Navigate(url))
}

// Size sets the size of the window in CSS pixels and the colours that the user
// prefers: light or dark.
func (p *Page) Size(width, height int64, colours string) {
	p.t.Helper()
	p.Run(chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}))
}

// Eval evaluates an expression of JavaScript into a Go value.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	p.Run(evaluate(expression, into))
}

func evaluate(expression string, into any) chromedp.Action {
	return chromedp.Evaluate(expression, into, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) })
}

// leaves tells whether an expression was lost because its page gave way to another.
func leaves(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"Inspected target navigated", "Execution context was destroyed",
		"Cannot find context", "Promise was collected"}, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// Wait waits until an expression, or what it promises, is true, on this page or the one
// that follows it.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	until := time.Now().Add(15 * time.Second)
	for {
		var ok bool
		if err := chromedp.Run(p.ctx, evaluate("Promise.resolve("+expression+").then(Boolean)", &ok)); err != nil && !leaves(err) {
			p.t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(until) {
			p.Shot("timeout")
			p.t.Fatalf("waited in vain for %s; the page complained: %q", expression, p.Problems())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Keys types keys into what has the focus.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	p.Run(chromedp.KeyEvent(keys))
}

// Shot writes a picture of the whole page for a person to look at, if asked to.
func (p *Page) Shot(name string) {
	p.t.Helper()
	p.shoot(name, func(png *[]byte) chromedp.Action { return chromedp.FullScreenshot(png, 100) })
}

// ShotOf writes a picture of one element.
func (p *Page) ShotOf(name, selector string) {
	p.t.Helper()
	p.shoot(name, func(png *[]byte) chromedp.Action { return chromedp.Screenshot(selector, png, chromedp.ByQuery) })
}

func (p *Page) shoot(name string, take func(*[]byte) chromedp.Action) {
	p.t.Helper()
	dir := os.Getenv("MEMTOX_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	p.Run(take(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Problems are the errors and warnings of the console so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

// Requests are the addresses that were asked for so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Quiet fails the test if the console complained, or a request went anywhere but
// to addresses that begin with one of those given.
func (p *Page) Quiet(within ...string) {
	p.t.Helper()
	for _, s := range p.Problems() {
		p.t.Errorf("the page complained: %s", s)
	}
	for _, url := range p.Requests() {
		if !slices.ContainsFunc(within, func(w string) bool { return strings.HasPrefix(url, w) }) {
			p.t.Errorf("the page asked for %s", url)
		}
	}
}

// Contrast returns the texts on the page whose contrast with what is behind them
// is under WCAG's level AA: 4.5, or 3 for large texts. Backgrounds are the
// nearest opaque ones of the elements around; for texts in SVG, that of the
// shape drawn last under the text's middle.
func (p *Page) Contrast() []string {
	p.t.Helper()
	var bad []string
	p.Eval(contrastScript, &bad)
	return bad
}

//go:embed contrast.js
var contrastScript string

// Clipped returns what cannot be seen whole without scrolling sideways: boxes outside the
// window, boxes whose content is cut or scrolls, parts of drawings over their edge. What
// is within an element of the selectors may scroll.
func (p *Page) Clipped(allowed ...string) []string {
	p.t.Helper()
	var bad []string
	p.Eval("("+clippedScript+")("+strconv.Quote(strings.Join(allowed, ", "))+")", &bad)
	return bad
}

//go:embed clipped.js
var clippedScript string

// View is a window to look at a page through.
type View struct {
	Name          string
	Width, Height int64
	Colours       string // that the user prefers: light or dark
}

// Views are a phone, a tablet and a desk, in light and dark.
var Views = []View{{"390", 390, 844, "light"}, {"768-dark", 768, 1024, "dark"}, {"1400", 1400, 900, "light"},
	{"1400-dark", 1400, 900, "dark"}}

// Everywhere looks at the page through all [Views] and fails the test for what is clipped
// or hard to read in one. It leaves a picture of each.
func (p *Page) Everywhere(name string, allowed ...string) {
	p.t.Helper()
	for _, v := range Views {
		p.Size(v.Width, v.Height, v.Colours)
		for _, bad := range p.Clipped(allowed...) {
			p.t.Errorf("%s at %s: %s", name, v.Name, bad)
		}
		for _, bad := range p.Contrast() {
			p.t.Errorf("%s at %s: contrast %s", name, v.Name, bad)
		}
		p.Shot(name + "-" + v.Name)
	}
}
