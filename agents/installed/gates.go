package installed

import (
	pathpkg "path"
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// Gates is what must be known of the product to judge its calls.
func (p *Product) Gates() gate.Agent {
	a := gate.Agent{File: p.memoryFile(), Prefix: p.MCPPrefix}
	for _, t := range p.Tools {
		a.Own = append(a.Own, t.Tool)
	}
	a.User = func(content string) (said string, own bool, route memory.Route) {
		said, is := p.User(content)
		switch is {
		case "review", "job", "extraction":
			route = memory.RouteReview
		case "flush":
			route = memory.RouteFlush
		}
		return said, is != "", route
	}
	a.Answers = func(content string) *gate.Tool {
		_, is := p.User(content)
		if t := p.stores(is); t != nil {
			return &t.Tool
		}
		return nil
	}
	if p.Stamp.Regexp != nil {
		a.Stamps = append(a.Stamps, p.Stamp.Regexp)
	}
	if p.Tail.Regexp != nil {
		a.Stamps = append(a.Stamps, regexp.MustCompile("(?:"+p.Tail.String()+`)\s*$`))
	}
	return a
}

// memoryFile finds the store of a path as a model writes it: absolute, or from whatever
// folder the product works in. A file that reaches later sessions is memory too.
func (p *Product) memoryFile() func(path string) string {
	type file struct {
		store string
		path  *regexp.Regexp
	}
	var files []file
	add := func(store, glob string) {
		_, glob, _ = strings.Cut(glob, "/") // what the folder is called is the box's
		glob = strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(glob))
		files = append(files, file{store, regexp.MustCompile(`(?i)(^|/)` + glob + `$`)})
	}
	for _, s := range p.Stores {
		if s.File != "" {
			add(s.Name, s.File)
		}
	}
	for _, w := range p.Watched {
		add("memory", w)
	}
	return func(path string) string {
		path = pathpkg.Clean(strings.ReplaceAll(strings.TrimSpace(path), `\`, "/"))
		if i := slices.IndexFunc(files, func(f file) bool { return f.path.MatchString(path) }); i >= 0 {
			return files[i].store
		}
		return ""
	}
}
