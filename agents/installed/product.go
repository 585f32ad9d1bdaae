package installed

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/proxy/gate"
	"github.com/memtox/memtox/internal/settings"
)

// Product is what memtox knows of a product: products/NAME.yaml. Paths are those of a
// [Box], with slashes: home/…, work/… and tmp/….
type Product struct {
	Name   string         `yaml:"-"`
	digest string         // of the file
	over   map[string]any // that [Product.With] lays over its files
	Title  string         // as its makers write it
	About  string         // one line for lists
	// Tried are the versions that were tried, oldest first. The last is what is installed.
	Tried []string
	// Skills says that it turns experience into skills.
	Skills bool

	// Programs are where the program may be, from the folder of an installation. Its last
	// element is what is looked for on PATH.
	Programs []string
	// Version says how to ask the program which version it is.
	Version Question
	// Needs are other programs that an installation or a run needs.
	Needs []Need
	// Install are the commands that install it, one a line: {dir} is the folder and
	// {version} the last that was tried. No shell reads them.
	Install []string

	// Files are written before a start, by path: templates of package text/template over
	// a [Setup], in which {{json .X}} quotes for YAML and JSON.
	Files map[string]string
	// Env is the environment of its processes, beside HOME, TMPDIR and PATH: templates too.
	Env map[string]string
	// Run is the command that starts it: templates too. {{.Program}} is the program.
	Run []string

	// Own are the arms of its own defenses; Files look at {{.Own}}.
	Own map[string]agents.Switch
	// Reach says which parts of its memory later sessions see, and how.
	Reach []Reach

	// Stores hold its memory, Watched are files beside them that reach later sessions:
	// instructions, skills, jobs. Each is a glob of paths, in which ** is any depth.
	Stores  []Store
	Watched []string

	// Channels are those of its own by which content comes to it, by name.
	Channels map[string]*Channel

	// Tools are those of its tools whose effect is known. One of memtox's own, which it
	// is offered by MCP, it calls by MCPPrefix and the tool's name.
	Tools     []Tool
	MCPPrefix string `yaml:"mcp_prefix"`
	// MCPResult is the member that holds the result where that is put into a JSON object.
	MCPResult string `yaml:"mcp_result"`
	// Wraps recognises what is marked as coming from outside: its source and what it says.
	Wraps Pattern
	// Prompt says what stands where in a system message.
	Prompt Prompt
	// Messages says which user messages of a prompt are not the user's.
	Messages []Message
	// Stamp is what the product puts in front of what the user said, Tail what behind it.
	Stamp, Tail Pattern
}

// Prompt says what stands where in a product's system message.
type Prompt struct {
	Today  Pattern // its first group is the day
	Layout string  // in which the day is written, as package time does
	Ends   Pattern // of what a store shows
}

// Reach says how a part of a product's memory comes into a later session.
type Reach struct {
	What string
	// How is injected, named (in an index alone), search or never.
	How   string
	About string
}

// Question asks a program something: Args, and where its answer holds what is asked.
type Question struct {
	Args    []string
	Pattern Pattern // its first group
}

// Need is a program that must be there, at least in a version.
type Need struct {
	Program  string
	Question `yaml:",inline"`
	Least    string
	For      string // what needs it
}

// Store is a part of a product's memory that is a file.
type Store struct {
	Name      string
	File      string // "" where it is in no file that can be read
	Separator string // between entries; "" makes the whole file one
	Mark      string // in front of an entry
	Limit     int    // characters; 0 is none
	User      bool   // holds what it knows of its user, beside its first, which holds all else
	// Heading is what stands over the block in which a prompt shows it; none is shown by no
	// prompt.
	Heading Pattern
}

// Tool is a tool of a product: what the gates know of it, and how its answers are read.
type Tool struct {
	gate.Tool `yaml:",inline"`
	// Hits says how the answer of a search is read; nil reads it as text.
	Hits *Hits
	// Shows says how the answer of a tool that reads is read; nil reads it as text.
	Shows *Shows
	// Missing recognises the answer that there is no such file.
	Missing Pattern
	// Whole is what a stored procedure has around its text: {name} and {text}.
	Whole string
}

// Hits says how the answer of a search is read, which is JSON. Names have dots between
// them: provenance.originClass.
type Hits struct {
	List string // of the hits
	Text string // of a hit
	// Cut is taken out of the text.
	Cut Pattern
	// Origin is the label of a hit, and Foreign are those labels that say that it comes from
	// outside.
	Origin  string
	Foreign []string
	Millis  string // when it was noted, in milliseconds of Unix time
}

// Message recognises a message in the user's role that is the product's own: by how it
// begins, or by both ends of it.
type Message struct {
	Begins string
	Ends   string
	// Is says what it is: review, flush, compaction, nudge, context, job or extraction, which
	// asks for the facts of a conversation.
	Is string
	// Said is where that conversation stands in it, or what the user wrote into the job:
	// Speaker is how each that speaks is named there, and Knows a list of memories in JSON.
	Said, Speaker, Knows Pattern
	// Into is the only file that the model may write to then; {today} is the day.
	Into string
}

// Pattern is a regular expression.
type Pattern struct{ *regexp.Regexp }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Pattern) UnmarshalText(b []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(b))
	return err
}

// in is what the first group finds in a text, "" where it finds nothing.
func (p Pattern) in(s string) string {
	if p.Regexp != nil {
		if found := p.FindStringSubmatch(s); found != nil {
			return found[1]
		}
	}
	return ""
}

// User returns what the user said in a message of the user's role, and "" with what the
// message is where it is the product's own.
func (p *Product) User(content string) (said, is string) {
	said = content
	if p.Stamp.Regexp != nil {
		if at := p.Stamp.FindStringIndex(said); at != nil && at[0] == 0 {
			said = said[at[1]:]
		}
	}
	if p.Tail.Regexp != nil {
		if at := p.Tail.FindStringIndex(said); at != nil && at[1] == len(said) {
			said = said[:at[0]]
		}
	}
	for _, m := range p.Messages {
		if strings.HasPrefix(said, m.Begins) && strings.HasSuffix(strings.TrimRight(said, " \n"), m.Ends) {
			return "", m.Is
		}
	}
	return said, ""
}

// Tool is the tool of a name; nil is none whose effect is known.
func (p *Product) Tool(name string) *Tool {
	i := slices.IndexFunc(p.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Tools[i]
}

// stores is the tool by which it stores the reply to a message of its own; nil is none.
func (p *Product) stores(is string) *Tool {
	if t := p.Tool(is); t != nil && t.Answers != "" {
		return t
	}
	return nil
}

// newest is the version that is installed.
func (p *Product) newest() string { return p.Tried[len(p.Tried)-1] }

//go:embed products/*.yaml
var productFiles embed.FS

var products = sync.OnceValue(func() []*Product {
	files, err := fs.Glob(productFiles, "products/*.yaml")
	var out []*Product
	for _, file := range files {
		p := &Product{Name: strings.TrimSuffix(path.Base(file), ".yaml")}
		data, e := productFiles.ReadFile(file)
		p.digest = fmt.Sprintf("%.4x", sha256.Sum256(data))
		err = errors.Join(err, e, settings.Decode("agents/installed/"+file, data, p))
		if e := p.check(); e != nil {
			err = errors.Join(err, fmt.Errorf("agents/installed/%s: %w", file, e))
		}
		out = append(out, p)
	}
	if err != nil {
		panic(err) // a fault of this program
	}
	return out
})

// Read reads what a file says of an agent's tools, memory files and messages, in the form
// of a product's file.
func Read(name string, data []byte) (*Product, error) {
	p := &Product{Name: name}
	if err := settings.Decode(name, data, p); err != nil {
		return nil, err
	}
	for _, t := range p.Tools {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return p, nil
}

// Products returns all products in the order of their names.
func Products() []*Product { return products() }

// Find is the product of a name; nil is none.
func Find(name string) *Product {
	i := slices.IndexFunc(products(), func(p *Product) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return products()[i]
}

// Names are the names of all products.
func Names() (names []string) {
	for _, p := range products() {
		names = append(names, p.Name)
	}
	return names
}

// check finds what a driver would stumble over.
func (p *Product) check() error {
	switch {
	case p.Title == "" || p.About == "" || len(p.Tried) == 0 || len(p.Programs) == 0 || len(p.Install) == 0:
		return errors.New("it needs a title, a line about it, versions that were tried, programs and install commands")
	case p.Version.Pattern.Regexp == nil || p.Version.Pattern.NumSubexp() == 0:
		return errors.New("version needs args and a pattern with a group")
	}
	for _, t := range p.Tools {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return errors.Join(agents.CheckOwn(p.Own), p.checkChannels())
}
