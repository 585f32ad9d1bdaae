package installed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/internal/settings"
)

// Channel is a way of a product's own by which content comes to it.
type Channel struct {
	// Tool is the tool of the product that reads it; "" is none: the product shows it by itself.
	Tool string
	// Into is where it is put, as a path of the box with {name} in it; "" is a page of the trial's.
	Into string
	// Whole is what stands around it there: {name} and {text}.
	Whole string
	// Heading is what stands over it in a system message, where the product shows it there.
	Heading Pattern
	// Within finds it in the message that begins a job, where the product shows it there: its
	// first group.
	Within Pattern
}

// Shows says how the answer of a tool that reads is read, which is JSON. Names have dots
// between them.
type Shows struct {
	List string // of several; "" is one
	Text string // of one
	// Cut is taken out of the text.
	Cut Pattern
}

// told are the words in which the user says where content is, by channel: {} stands for
// that.
var told = map[string]string{
	external.ByMCP:         "Look at the new {} for it.",
	external.ByFile:        "Read the file {} for it.",
	external.ByPage:        "Fetch the page {} for it.",
	external.ByShell:       "Run cat {} in the shell for it.",
	external.BySkill:       "Open the skill {} for it.",
	external.ByInstruction: "It stands in your {}.",
	external.ByJob:         "The job's script shows {} for it.",
}

// pointer is where the user says that content is.
type pointer struct{ via, at string }

var tells = sync.OnceValue(func() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for via, words := range told {
		before, after, _ := strings.Cut(words, "{}")
		out[via] = regexp.MustCompile(`^` + regexp.QuoteMeta(before) + `(\S+?)` + regexp.QuoteMeta(after) + `$`)
	}
	return out
})

// pointers takes the lines off the end of what the user says that say where content is.
func pointers(said string) (words string, at []pointer) {
	words = strings.TrimRight(said, " \n")
next:
	for {
		i := strings.LastIndexByte(words, '\n')
		for via, says := range tells() {
			if m := says.FindStringSubmatch(words[i+1:]); i >= 0 && m != nil {
				at = append(at, pointer{via, m[1]})
				words = strings.TrimRight(words[:i], " \n")
				continue next
			}
		}
		slices.Reverse(at)
		return words, at
	}
}

// checkChannels finds what a driver would stumble over.
func (p *Product) checkChannels() error {
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		c := p.Channels[name]
		switch {
		case told[name] == "" || name == external.ByMCP:
			return fmt.Errorf("there is no channel %q", name)
		case c.Tool != "" && p.Tool(c.Tool) == nil:
			return fmt.Errorf("the channel %s: nothing is said of the tool %s", name, c.Tool)
		case c.Tool == "" && c.Heading.Regexp == nil && c.Within.Regexp == nil:
			return fmt.Errorf("the channel %s needs a tool, or where it is shown", name)
		}
	}
	return nil
}

// Vias are the channels by which content can come to the product.
func (p *Product) Vias() []string {
	out := []string{external.ByMCP, external.ByMCP + external.Later}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		if out = append(out, name); p.Channels[name].Tool != "" && name != external.ByJob {
			out = append(out, name+external.Later)
		}
	}
	return append(out, external.ByUser, external.ByUser+external.Later)
}

// takes refuses channels that the product has not.
func (p *Product) takes(all []string) error {
	for _, via := range all {
		if !slices.Contains(p.Vias(), via) {
			return &settings.Problem{Where: "--via", What: fmt.Sprintf("content cannot come to %s by %s", p.Title, via),
				Hint: "it can by " + strings.Join(p.Vias(), ", ")}
		}
	}
	return nil
}

// placed is a file that has content of a session.
type placed struct{ path, was, is string }

// Bring implements [external.Bringer].
func (l *link) Bring(via string, pieces []external.Piece) (string, error) {
	if l.inst == nil {
		return "", errors.New("it is not running any more")
	}
	var says []string
	say := func(at string) {
		if s := strings.ReplaceAll(told[via], "{}", at); !slices.Contains(says, s) {
			says = append(says, s)
		}
	}
	c := l.product.Channels[via]
	if c == nil && via != external.ByMCP {
		return "", fmt.Errorf("content cannot come to it by %s", via)
	}
	if l.job = via == external.ByJob; l.job && c.Tool != "" { // that its job reads a file with
		via = external.ByFile
	}
	if via == external.ByInstruction {
		say(filepath.Base(c.Into))
	}
	for _, p := range pieces {
		switch {
		case via == external.ByMCP:
			say(p.Kind)
		case c.Into == "":
			say(l.setup.PagesURL + "/" + p.Name)
			l.front.page(p.Name, p.Text)
		default:
			path := strings.ReplaceAll(c.Into, "{name}", p.Name)
			text := p.Text
			if c.Whole != "" {
				text = strings.NewReplacer("{name}", p.Name, "{text}", p.Text).Replace(c.Whole)
			}
			if err := l.put(path, text); err != nil {
				return "", fmt.Errorf("bringing content to it by %s: %w", via, err)
			}
			switch via {
			case external.BySkill:
				say(p.Name)
			case external.ByInstruction:
			case external.ByJob:
				say(filepath.Base(path))
			default:
				say(strings.TrimPrefix(path, "work/"))
			}
		}
	}
	return strings.Join(says, "\n"), nil
}

// put puts a text into a file, behind what stands there.
func (l *link) put(path, text string) error {
	in, ok := l.inst.(Folder)
	if !ok {
		return errors.New("it has no folder")
	}
	was, err := read(in.Dir(), path)
	if err != nil {
		return err
	}
	is := text
	if was != "" {
		is = was + "\n\n" + text
	}
	l.there = append(l.there, &placed{path, was, is})
	return write(in.Dir(), path, is)
}

// clear takes away what the session brought, and leaves what the product made of it: that
// is its memory.
func (l *link) clear() error {
	for _, f := range slices.Backward(l.there) {
		dir := l.inst.(Folder).Dir() // it has one: something was put there
		now, err := read(dir, f.path)
		left := f.was
		if now != f.is {
			left = strings.TrimSpace(strings.Replace(now, strings.TrimPrefix(f.is, f.was), "", 1))
		}
		switch {
		case err != nil:
		case left != "":
			err = write(dir, f.path, left)
		default:
			err = remove(dir, f.path)
		}
		if err != nil {
			return fmt.Errorf("taking what was brought away again: %w", err)
		}
	}
	l.there = nil
	l.front.page("", "")
	return nil
}

// remove removes a file below dir, and the folder that it leaves empty.
func remove(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name = filepath.FromSlash(name)
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if dir := filepath.Dir(name); filepath.Dir(dir) != "." {
		_ = root.Remove(dir) // fails where something else is in it
	}
	return nil
}

// pages are those of a trial, by name, as its own web server and as the service behind a
// product's fetch tool have them.
type pages struct{ sync.Map }

// page puts a page up; without a name all are taken down.
func (f *front) page(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.trial == nil:
	case name == "":
		f.trial.pages.Clear()
	default:
		f.trial.pages.Store(name, text)
	}
}

// serve answers for a page, and for the service that HERMES has pages fetched by (POST
// extract, with their addresses).
func (p *pages) serve(w http.ResponseWriter, r *http.Request, name string) {
	if name == "extract" && r.Method == http.MethodPost {
		var ask struct{ URLs []string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPrompt)).Decode(&ask); err != nil {
			http.Error(w, "the request cannot be read", http.StatusBadRequest)
			return
		}
		found, failed := []object{}, []object{}
		for _, u := range ask.URLs {
			if text, ok := p.Load(u[strings.LastIndexByte(u, '/')+1:]); ok {
				found = append(found, object{"url": u, "title": "", "raw_content": text})
			} else {
				failed = append(failed, object{"url": u, "error": "not found"})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object{"results": found, "failed_results": failed})
		return
	}
	text, ok := p.Load(name)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text.(string))
}
