package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chromedp/chromedp"

	"github.com/memtox/memtox/internal/browser"
)

var (
	ids   = regexp.MustCompile(` id="([^"]*)"`)
	hrefs = regexp.MustCompile(` href="([^"]*)"`)
	loads = regexp.MustCompile(`(?i)<(script|link|iframe|object|embed|img|base|form|svg|image)\b|@import|url\(|<[a-z][^>]*\s(on\w+|style|src|srcset)=`)
)

// ours is what a page may have of that: the way to the search, its texts, and pictures
// that hold themselves.
var ours = regexp.MustCompile(`<form role="search" action="[./]*search.html">|<script type="application/json" id="sections">|` +
	`<img src="data:image/png;base64,[^"]*" alt="[^"]+">`)

// The repository's own pages make a site: every link leads to a file and a
// heading that are there, no page loads or runs anything, and all are in the
// navigation.
func TestTheSiteOfTheRepository(t *testing.T) {
	files, err := build(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"index.html", "README.html", "docs/getting-started.html", "docs/command-line.html",
		"docs/settings.html", "docs/guard.html", "results/SCHEMA.html", "datasets/sets/memtox-bench/README.html",
		"datasets/AUTHORING.html", "CONTRIBUTING.html"} {
		if files[want] == nil {
			t.Errorf("the site has no %s", want)
		}
	}
	anchors := map[string]map[string]bool{}
	for name, data := range files {
		anchors[name] = map[string]bool{}
		for _, m := range ids.FindAllSubmatch(data, -1) {
			if anchors[name][string(m[1])] {
				t.Errorf("%s: the anchor %q is there twice", name, m[1])
			}
			anchors[name][string(m[1])] = true
		}
	}
	for name, data := range files {
		text := string(data)
		if !strings.Contains(text, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
			t.Errorf("%s has no content security policy", name)
		}
		text = ours.ReplaceAllString(text, "")
		if name == "search.html" {
			text = strings.Replace(text, "<script>"+searchText, "", 1)
		}
		if m := loads.FindString(text); m != "" {
			t.Errorf("%s holds %q", name, m)
		}
		if n := strings.Count(text, "<h1"); n != 1 {
			t.Errorf("%s has %d headings of the first level", name, n)
		}
		if name != "index.html" && name != "search.html" && strings.Count(text, `aria-current="page"`) != 1 {
			t.Errorf("%s is not in its own navigation", name)
		}
		for _, m := range hrefs.FindAllStringSubmatch(text, -1) {
			link, anchor, _ := strings.Cut(m[1], "#")
			if strings.HasPrefix(link, "http") {
				continue
			}
			target := name
			if link != "" {
				target = path.Join(path.Dir(name), link)
			}
			if files[target] == nil || anchor != "" && !anchors[target][anchor] {
				t.Errorf("%s: the link %q leads nowhere", name, m[1])
			}
		}
	}
}

// small is a repository of two pages; edit changes a file of it.
func small(edit map[string]string) fs.FS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"docs/README.md": "# Docs\n\n## Start\n\n- [One](one.md)\n- [Two](../README.md#a-b)\n",
		"docs/one.md": "# One\n\nsee [two](../README.md#a-b), [code](../main.go), [folder](..) <!-- note -->\n\n<!-- " +
			"note -->\n\n| a | b |\n|---|--:|\n| `<x>` | 1 |\n",
		"README.md": "# Two\n\n## A *b*!\n\n## A b\n\n[second](#a-b-1) https://memtox.example\n",
		"main.go":   "package main\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range edit {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestLinksAreRewritten(t *testing.T) {
	files, err := build(small(nil))
	if err != nil {
		t.Fatal(err)
	}
	one := string(files["docs/one.html"])
	for _, want := range []string{`<a href="../README.html#a-b">two</a>`,
		`href="https://github.com/memtox/memtox/blob/main/main.go"`, `href="https://github.com/memtox/memtox/tree/main/."`,
		`<code>&lt;x&gt;</code>`, `<td align="right" data-h="b">1</td>`, `<div class="scroll" role="region"`,
		`<a href="../docs/one.html" aria-current="page">One</a>`} {
		if !strings.Contains(one, want) {
			t.Errorf("the page lacks %q:\n%s", want, one)
		}
	}
	if strings.Contains(one, "note") || strings.Contains(one, "omitted") {
		t.Error("a comment is shown")
	}
	if index := string(files["index.html"]); !strings.Contains(index, `<a href="docs/one.html">One</a>`) {
		t.Errorf("the index:\n%s", index)
	}
}

func TestWhatIsBrokenIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"# One\n\ntext\n[x](nothing.md)\n":              `docs/one.md:3: the link "nothing.md" leads to docs/nothing.md, which is not in the repository`,
		"# One\n\n[x](../README.md#c)\n":                `docs/one.md:3: the link "../README.md#c" names a heading that README.md does not have`,
		"# One\n\n[x](#c)\n":                            `docs/one.md:3: the link "#c" names a heading that docs/one.md does not have`,
		"# One\n\n[x](../../etc/passwd)\n":              `docs/one.md:3: the link "../../etc/passwd" leads to ../etc/passwd, which is not in the repository`,
		"# One\n\n[x](javascript:alert(1))\n":           `docs/one.md:3: the link "javascript:alert(1)" is neither a file of the repository nor an http address`,
		"# One\n\n<script>x()</script>\n":               `docs/one.md:3: "<script>x()</script>\n" is raw HTML`,
		"# One\n\na <b onclick=x()>b</b>\n":             `docs/one.md:3: "<b onclick=x()>" is raw HTML`,
		"# One\n\n![p](p.png)\n":                        `docs/one.md:3: the picture "p.png" leads to docs/p.png, which is not in the repository`,
		"# One\n\n![p](https://x.example/p.png)\n":      `docs/one.md:3: the picture "https://x.example/p.png" is no PNG file of the repository`,
		"# One\n\n| a |\n|---|\n| [x](../main.go#L1) |": `names a heading of main.go, which is no page of the site`,
		"no title\n": `docs/one.md has no heading of the first level`,
	} {
		if _, err := build(small(map[string]string{"docs/one.md": text})); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := build(small(map[string]string{"docs/three.md": "# Three\n"})); err == nil ||
		!strings.Contains(err.Error(), "names no link to docs/three.md") {
		t.Errorf("a page that the index does not name: %v", err)
	}
}

// In a real browser, at three widths, light and dark: no complaint, no request, enough
// contrast, and nothing on any page clips; code scrolls.
func TestPagesInABrowser(t *testing.T) {
	p := browser.Open(t)
	files, err := build(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	address := "file://" + filepath.ToSlash(dir) + "/"
	for name := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		p.Go(address + name)
		for _, v := range browser.Views[:3] {
			p.Size(v.Width, v.Height, v.Colours)
			for _, bad := range p.Clipped("pre") {
				t.Errorf("%s at %s: %s", name, v.Name, bad)
			}
		}
	}
	for _, name := range []string{"index", "README", "docs/guard", "docs/features", "docs/command-line"} {
		p.Go(address + name + ".html")
		p.Everywhere("site-"+path.Base(name), "pre")
	}
	p.Quiet(address, "data:image/png")
}

// The search opens from a disk, finds sections by all words, and shows hostile text
// and queries as text.
func TestTheSearchInABrowser(t *testing.T) {
	p := browser.Open(t)
	files, err := build(small(map[string]string{"docs/one.md": "# One\n\n## The gate\n\n" +
		"A zebra `</script><img src=x onerror=alert(1)>` runs &lt;b&gt;here.\n\n```\nmemtox gate --zebra\n```\n"}))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	address := "file://" + filepath.ToSlash(dir) + "/"
	p.Size(390, 844, "light")
	p.Go(address + "docs/one.html")
	p.Run(chromedp.SendKeys("input[type=search]", "ZEBRA gate <img\r", chromedp.ByQuery))
	p.Wait("location.pathname.endsWith('/search.html') && document.querySelector('#found a')")
	var got string
	p.Eval("document.querySelector('#said').textContent + '|' + document.querySelector('#found').innerText.replaceAll('\\n', ' ')", &got)
	if want := "1 place for: ZEBRA gate <img|One: The gate A zebra </script><img src=x onerror=alert(1)> runs <b>here. " +
		"memtox gate --zebra"; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
	for _, bad := range p.Contrast() {
		t.Errorf("contrast %s", bad)
	}
	p.Run(chromedp.Click("#found a", chromedp.ByQuery))
	p.Wait("location.pathname.endsWith('/docs/one.html') && location.hash == '#the-gate'")
	p.Go(address + "search.html?q=zebra+elephant%3Cb%3E")
	p.Eval("document.querySelector('#said').textContent", &got)
	if got != "No page holds all of these words: zebra elephant<b>" {
		t.Errorf("it says %q", got)
	}
	p.Quiet(address)
}
