package installed

import (
	"regexp"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
)

// gates tells the relay what it must know of the product to judge its calls.
func (p *Product) gates(o *external.Options) {
	o.Own, o.File, o.Prefix = p.Own(), p.memoryFile(), p.MCPPrefix
	o.Purpose = func(content string) memory.Route {
		switch _, is := p.User(content); is {
		case "review", "job":
			return memory.RouteReview
		case "flush":
			return memory.RouteFlush
		}
		return memory.RouteNone
	}
	if p.Stamp.Regexp != nil {
		o.Stamps = append(o.Stamps, p.Stamp.Regexp)
	}
	if p.Tail.Regexp != nil {
		o.Stamps = append(o.Stamps, regexp.MustCompile("(?:"+p.Tail.String()+`)\s*$`))
	}
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
		add(s.Name, s.File)
	}
	for _, w := range p.Watched {
		add("memory", w)
	}
	return func(path string) string {
		path = strings.ReplaceAll(path, `\`, "/")
		if i := slices.IndexFunc(files, func(f file) bool { return f.path.MatchString(path) }); i >= 0 {
			return files[i].store
		}
		return ""
	}
}
