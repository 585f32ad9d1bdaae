package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var (
	//go:embed page.html
	pageText string
	//go:embed style.css
	styleText string
	//go:embed search.js
	searchText string
)

// repository is where files that are no pages are read.
const repository = "https://github.com/memtox/memtox"

// index is the page that names all others.
const index = "docs/README.md"

// also are the pages outside docs that the site must have.
var also = []string{"README.md", "CONTRIBUTING.md", "results/SCHEMA.md", "datasets/*.md", "datasets/sets/*/*.md"}

type page struct {
	source, output string
	title          string
	Label          string // what the index calls it
	tree           ast.Node
	text           []byte
	anchors        map[string]bool
	contents       []entry // its headings of the second level
}

// LinkTo is the way to another page.
func (p *page) LinkTo(to *page) string { return relative(p.output, to.output) }

type entry struct{ Title, Link string }

// group is a heading of the index and the pages under it.
type group struct {
	Title string
	Pages []*page
}

type site struct {
	files  fs.FS
	md     goldmark.Markdown
	pages  map[string]*page // by source
	groups []group
	broken []error
}

// build renders the repository in files; the keys of the result are the site's paths.
func build(files fs.FS) (map[string][]byte, error) {
	s := &site{files: files, pages: map[string]*page{}, md: goldmark.New(goldmark.WithExtensions(
		// An alignment as a style would need a policy that allows styles in attributes.
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough))}
	if err := s.read(); err != nil {
		return nil, err
	}
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		s.mend(s.pages[source])
	}
	if len(s.broken) > 0 {
		return nil, errors.Join(s.broken...)
	}
	out := map[string][]byte{}
	for _, p := range s.pages {
		data, err := s.render(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
		out[p.output] = data
	}
	var err error
	out["search.html"], err = s.search()
	return out, err
}

// read parses the index and all that it links to.
func (s *site) read() error {
	first, err := s.parse(index)
	if err != nil {
		return err
	}
	first.output, first.Label = "index.html", "All pages"
	s.pages[index] = first
	for n := first.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			s.groups = append(s.groups, group{Title: plain(h, first.text)})
		}
		for n := range nodes(n) {
			l, ok := n.(*ast.Link)
			if !ok {
				continue
			}
			target, _, local := resolve(index, string(l.Destination))
			if !local || path.Ext(target) != ".md" || s.pages[target] != nil {
				continue
			}
			p, err := s.parse(target)
			if err != nil {
				return fmt.Errorf("%s: %w", first.place(n), err)
			}
			p.Label = plain(l, first.text)
			s.pages[target] = p
			if len(s.groups) == 0 {
				return fmt.Errorf("%s: the link stands before the first heading of the second level, which would be its group",
					first.place(n))
			}
			g := &s.groups[len(s.groups)-1]
			g.Pages = append(g.Pages, p)
		}
	}
	for _, pattern := range append([]string{"docs/*.md"}, also...) {
		sources, err := fs.Glob(s.files, pattern)
		if err != nil {
			return err
		}
		for _, source := range sources {
			if s.pages[source] == nil {
				s.broken = append(s.broken, fmt.Errorf("%s names no link to %s: add one, so that the page is found", index, source))
			}
		}
	}
	return nil
}

func (s *site) parse(source string) (*page, error) {
	data, err := fs.ReadFile(s.files, source)
	if err != nil {
		return nil, err
	}
	p := &page{source: source, output: strings.TrimSuffix(source, ".md") + ".html", text: data, anchors: map[string]bool{}}
	p.tree = s.md.Parser().Parse(text.NewReader(data))
	taken := map[string]int{}
	for n := range nodes(p.tree) {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		title := plain(h, data)
		id := slug(title)
		if taken[id]++; taken[id] > 1 {
			id += "-" + strconv.Itoa(taken[id]-1)
		}
		h.SetAttributeString("id", []byte(id))
		p.anchors[id] = true
		switch {
		case h.Level == 1 && p.title == "":
			p.title = title
		case h.Level == 2:
			p.contents = append(p.contents, entry{title, "#" + id})
		}
	}
	if p.title == "" {
		return nil, fmt.Errorf("%s has no heading of the first level, which would be its title", source)
	}
	return p, nil
}

// nodes are a node and all below it, in the order of the text.
func nodes(root ast.Node) iter.Seq[ast.Node] {
	return func(yield func(ast.Node) bool) {
		_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
			if entering && !yield(n) {
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
	}
}

// slug is the anchor that GitHub gives a heading.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plain is the text of a node without its marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for n := range nodes(n) {
		switch t := n.(type) {
		case *ast.Text:
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(t.Value)
		}
	}
	return b.String()
}

// place is file and line of a node: of its block, for those within a line.
func (p *page) place(n ast.Node) string {
	for ; n != nil; n = n.Parent() {
		if n.Type() != ast.TypeInline && n.Lines() != nil && n.Lines().Len() > 0 {
			return fmt.Sprintf("%s:%d", p.source, 1+bytes.Count(p.text[:n.Lines().At(0).Start], []byte("\n")))
		}
	}
	return p.source
}

// resolve says which file of the repository a link of a page means, and which
// heading. local is false for links that lead elsewhere.
func resolve(source, link string) (target, anchor string, local bool) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return "", "", false
	}
	if u.Path == "" {
		return source, u.Fragment, true
	}
	return path.Join(path.Dir(source), u.Path), u.Fragment, true
}

// mend rewrites the links of a page and notes what is wrong with it.
func (s *site) mend(p *page) {
	complain := func(n ast.Node, format string, a ...any) {
		s.broken = append(s.broken, fmt.Errorf("%s: "+format, append([]any{p.place(n)}, a...)...))
	}
	var comments []ast.Node
	for n := range nodes(p.tree) {
		switch n := n.(type) {
		case *ast.Link:
			link, err := s.link(p, string(n.Destination))
			if err != nil {
				complain(n, "the link %q %v", n.Destination, err)
			}
			n.Destination = []byte(link)
		case *ast.AutoLink:
			if _, err := s.link(p, string(n.URL(p.text))); err != nil {
				complain(n, "the link %q %v", n.URL(p.text), err)
			}
		case *ast.Image:
			data, err := s.picture(p, string(n.Destination))
			if err != nil {
				complain(n, "the picture %q %v", n.Destination, err)
			}
			n.Destination = data
		case *ast.HTMLBlock:
			if raw := n.Lines().Value(p.text); !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("<!--")) {
				complain(n, "%.40q is raw HTML: write it as Markdown", raw)
			}
			comments = append(comments, n)
		case *ast.RawHTML:
			if raw := n.Segments.Value(p.text); !bytes.HasPrefix(raw, []byte("<!--")) {
				complain(n, "%.40q is raw HTML: write it as Markdown", raw)
			}
			comments = append(comments, n)
		}
	}
	for _, n := range comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
}

// link is where a link of a page leads in the site.
func (s *site) link(p *page, link string) (string, error) {
	target, anchor, local := resolve(p.source, link)
	if !local {
		u, err := url.Parse(link)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return link, errors.New("is neither a file of the repository nor an http address")
		}
		return link, nil
	}
	if to := s.pages[target]; to != nil {
		out := ""
		if to != p {
			out = relative(p.output, to.output)
		}
		if anchor != "" {
			if !to.anchors[anchor] {
				return link, fmt.Errorf("names a heading that %s does not have", target)
			}
			out += "#" + anchor
		}
		return out, nil
	}
	info, err := fs.Stat(s.files, target)
	switch {
	case err != nil:
		return link, fmt.Errorf("leads to %s, which is not in the repository", target)
	case info.IsDir():
		return repository + "/tree/main/" + target, nil
	case anchor != "":
		return link, fmt.Errorf("names a heading of %s, which is no page of the site: name it in %s", target, index)
	}
	return repository + "/blob/main/" + target, nil
}

// picture is a PNG file of the repository as an address that holds all of it, so
// that a page loads nothing.
func (s *site) picture(p *page, link string) ([]byte, error) {
	target, _, local := resolve(p.source, link)
	if !local || path.Ext(target) != ".png" {
		return nil, errors.New("is no PNG file of the repository")
	}
	data, err := fs.ReadFile(s.files, target)
	if err != nil {
		return nil, fmt.Errorf("leads to %s, which is not in the repository", target)
	}
	return []byte("data:image/png;base64," + base64.StdEncoding.EncodeToString(data)), nil
}

// relative is the way from one file of the site to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// inCode is code within a line; a name in it may be broken behind these characters.
var (
	inCode = regexp.MustCompile(`<code>[^<]*</code>`)
	breaks = strings.NewReplacer("|", "|<wbr>", "_", "_<wbr>", ",", ",<wbr>", "=", "=<wbr>", "/", "/<wbr>", ":", ":<wbr>",
		".", ".<wbr>", "</", "</")
)

// breakable lets code fit a narrow column; what is longer than longest may be broken anywhere.
func breakable(code string) string {
	words := strings.FieldsFunc(code[len("<code>"):len(code)-len("</code>")], between)
	code = breaks.Replace(code)
	if slices.ContainsFunc(words, func(w string) bool { return len(w) > longest }) {
		code = `<code class="long">` + code[len("<code>"):]
	}
	return code
}

// longest is how many characters of a word a column makes room for.
const longest = 22

func between(r rune) bool { return strings.ContainsRune(" |_,=/:.", r) }

// cards has every cell of a table say what stands over it, for where the rows are cards:
// on a phone, and of a wide table on a tablet.
func cards(p *page) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		t, ok := n.(*extast.Table)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		var heads []string
		room := make([]int, len(t.Alignments))
		for row := t.FirstChild(); row != nil; row = row.NextSibling() {
			i := 0
			for cell := row.FirstChild(); cell != nil && i < len(room); cell, i = cell.NextSibling(), i+1 {
				said := plain(cell, p.text)
				for _, word := range strings.Fields(said) {
					room[i] = max(room[i], min(len([]rune(word)), longest))
				}
				if row == t.FirstChild() {
					heads = append(heads, said)
				} else if i < len(heads) {
					cell.SetAttributeString("data-h", []byte(heads[i]))
				}
			}
		}
		width := 0
		for _, n := range room {
			width += 8*n + 20
		}
		switch {
		case width > 600:
			t.SetAttributeString("class", []byte("wide"))
		case width > 240:
			t.SetAttributeString("class", []byte("mid"))
		}
		return ast.WalkContinue, nil
	})
}

var pageTemplate = template.Must(template.New("page").Parse(pageText))

func (s *site) render(p *page) ([]byte, error) {
	cards(p)
	var body bytes.Buffer
	if err := s.md.Renderer().Render(&body, p.text, p.tree); err != nil {
		return nil, err
	}
	// A "<" of a text is escaped, so these are the tags that were rendered.
	html := strings.NewReplacer("<table", `<div class="scroll" role="region" aria-label="Table" tabindex="0"><table`,
		"</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`).Replace(body.String())
	html = inCode.ReplaceAllStringFunc(html, breakable)
	order := []*page{s.pages[index]}
	for _, g := range s.groups {
		order = append(order, g.Pages...)
	}
	var before, after *page
	at := slices.Index(order, p)
	if at > 0 {
		before = order[at-1]
	}
	if at+1 < len(order) {
		after = order[at+1]
	}
	contents := p.contents
	if len(contents) < 3 {
		contents = nil
	}
	return s.fill(p, map[string]any{"Source": repository + "/blob/main/" + p.source,
		"Body":     template.HTML(html), // rendered without raw HTML
		"Contents": contents, "Before": before, "After": after})
}

// section is what stands under one heading, for the search.
type section struct{ Page, Title, Link, Text string }

// search is the page that finds words in all others. It holds their texts, for a
// page that is opened from a disk may load nothing.
func (s *site) search() ([]byte, error) {
	var all []section
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		p := s.pages[source]
		for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
			if h, ok := n.(*ast.Heading); ok {
				id, _ := h.AttributeString("id")
				all = append(all, section{Page: p.title, Title: plain(h, p.text), Link: fmt.Sprintf("%s#%s", p.output, id)})
			} else if len(all) > 0 {
				all[len(all)-1].Text += words(n, p.text) + "\n"
			}
		}
	}
	return s.fill(&page{output: "search.html", title: "Search"}, map[string]any{"Source": repository,
		"Index": all, "Script": template.JS(searchText)}) // a file of this package
}

// words is all that a reader sees of a block.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	for n := range nodes(n) {
		switch t := n.(type) {
		case *ast.Text:
			value := t.Segment.Value(source)
			if t.Parent().Kind() != ast.KindCodeSpan {
				value = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(value)))
			}
			b.Write(value)
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
			continue
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(n.Lines().Value(source))
		}
		if n.Type() == ast.TypeBlock && b.Len() > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// fill puts a page into the frame that all have.
func (s *site) fill(p *page, values map[string]any) ([]byte, error) {
	style, script := "\n"+styleText, ""
	if values["Script"] != nil {
		script = "script-src " + hashOf(searchText) + "; "
	}
	maps.Copy(values, map[string]any{
		"Policy": "default-src 'none'; style-src " + hashOf(style) + "; " + script + "img-src data:; base-uri 'none'",
		"Style":  template.CSS(style), // a file of this package
		"Title":  p.title, "Home": relative(p.output, "index.html"), "Search": relative(p.output, "search.html"),
		"Page": p, "Menu": s.groups,
	})
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, values)
	return out.Bytes(), err
}
