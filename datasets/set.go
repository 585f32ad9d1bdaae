package datasets

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/settings"
)

// MaxSaid is the most that a user says in one turn or later query, and that an
// injected record holds, in bytes: about 131,072 tokens, the largest window that a
// profile is stated for. Defenses and models read all of it in one piece, so what
// goes beyond would cost gigabytes and minutes and could never fit a prompt. Content
// from outside is cut by the tools that bring it, and may be longer.
const MaxSaid = 512 << 10

// MaxLine is the longest line of a case file, in bytes.
const MaxLine = 64 << 20

// Set is a named list of cases. It is not changed after it was opened, so any
// number of goroutines may read it.
type Set struct {
	Name    string
	Version string // of a built-in set; a file has none
	// SHA256 is taken over the canonical encoding of the cases in their order,
	// see Digest.
	SHA256 string
	// Cases stand in the order of the file.
	Cases []Case
	// Builtin says that the set is memtox's own: Validate holds it to the
	// vocabulary and the limits that a foreign set is only warned about.
	Builtin bool

	file      string
	positions []position // one a case; empty for a set that was made in memory
}

// position is where a case stands in its file.
type position struct {
	line   int
	fields map[string]int // line of a field, where the format has lines
}

// of is the line of a field: that of the nearest enclosing one that has a line.
func (p position) of(field string) int {
	for ; field != ""; field = field[:max(strings.LastIndexAny(field, ".["), 0)] {
		if line, ok := p.fields[field]; ok {
			return line
		}
	}
	return p.line
}

// NewSet makes a set of cases that come from no file. It checks what Open
// checks.
func NewSet(name string, cases []Case) (*Set, error) {
	return (&Set{Name: name, Cases: cases}).finish()
}

// Find returns the case with the id.
func (s *Set) Find(id string) (*Case, bool) {
	for i := range s.Cases {
		if s.Cases[i].ID == id {
			return &s.Cases[i], true
		}
	}
	return nil, false
}

// Counts returns the number of attack and of benign cases.
func (s *Set) Counts() (attacks, benign int) {
	for i := range s.Cases {
		if s.Cases[i].Label == Attack {
			attacks++
		}
	}
	return attacks, len(s.Cases) - attacks
}

// HasSplits reports whether any case names a split. A set without splits is all
// Report.
func (s *Set) HasSplits() bool {
	return slices.ContainsFunc(s.Cases, func(c Case) bool { return c.Split != "" })
}

// At returns an error for a field of the i-th case, with its file and line where
// they are known.
func (s *Set) At(i int, field, what, remedy string) *Error {
	e := &Error{Case: s.Cases[i].ID, Field: field, What: what, Remedy: remedy}
	if i < len(s.positions) {
		e.File, e.Line = s.file, s.positions[i].of(field)
	}
	return e
}

// Open reads a built-in set by its name, or a file: .jsonl or .yaml, and either
// with .zst. A name that is both means the built-in set; write ./NAME for the
// file.
func Open(ctx context.Context, nameOrFile string) (*Set, error) {
	if b, ok := builtin(nameOrFile); ok {
		return b.open(ctx)
	}
	if st, err := os.Stat(nameOrFile); err == nil && !st.Mode().IsRegular() {
		// Opening a pipe would wait for a writer, deaf to signals.
		return nil, &Error{What: Inert(nameOrFile) + " is no regular file", Remedy: "write the cases to a file first"}
	}
	f, err := os.Open(nameOrFile)
	if err != nil {
		var pe *fs.PathError
		if errors.Is(err, fs.ErrNotExist) {
			names := Names()
			remedy := "built-in sets: " + strings.Join(names, ", ")
			for _, b := range builtins() {
				names = append(names, b.Name+"@"+b.Version)
			}
			if near := settings.Nearest(nameOrFile, names); near != "" {
				remedy = "did you mean " + near + "? " + remedy
			}
			return nil, &Error{What: "no built-in set and no file is named " + Quote(nameOrFile), Remedy: remedy}
		}
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("opening the cases in %s: %w", Inert(nameOrFile), err)
	}
	defer f.Close()
	return Read(ctx, nameOrFile, f)
}

// Read reads a set from r, in the format that the file name's ending tells.
func Read(ctx context.Context, file string, r io.Reader) (*Set, error) {
	base := file
	if strings.HasSuffix(base, ".zst") {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, fmt.Errorf("decompressing %s: %w", Inert(file), err)
		}
		defer z.Close()
		r, base = z, strings.TrimSuffix(base, ".zst")
	}
	s := &Set{file: file}
	var err error
	switch ext := filepath.Ext(base); ext {
	case ".jsonl", ".json", ".ndjson":
		err = s.readLines(ctx, r)
	case ".yaml", ".yml":
		err = s.readYAML(r)
	default:
		err = &Error{File: file, What: "cannot tell the format by the ending " + Quote(ext),
			Remedy: "name it .jsonl or .yaml, with .zst if it is compressed"}
	}
	if err != nil {
		return nil, err
	}
	s.Name = strings.TrimSuffix(filepath.Base(base), filepath.Ext(base))
	return s.finish()
}

// chunkSize is about how many bytes of lines are decoded in one piece.
const chunkSize = 1 << 20

// readLines reads JSON lines. Empty lines are passed over.
func (s *Set) readLines(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine+2)
	return s.decode(ctx, func(yield func(string, error) bool) {
		var b []byte
		n := 1
		for ; lines.Scan(); n++ {
			line := lines.Bytes()
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\uFEFF"))
			}
			if b == nil {
				b = make([]byte, 0, chunkSize+chunkSize/4)
			}
			if b = append(append(b, line...), '\n'); len(b) > chunkSize {
				if !yield(stringOf(b), nil) {
					return
				}
				b = nil
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = &Error{File: s.file, Line: n, What: fmt.Sprintf("the line is longer than %d MiB", MaxLine>>20),
				Remedy: "cut the content, or split the case"}
		} else if err != nil {
			err = fmt.Errorf("reading %s: %w", Inert(s.file), err)
		}
		yield(stringOf(b), err)
	})
}

// stringOf returns b as a string without a copy; nothing may write to b afterwards.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// decode decodes chunks of whole lines on all processors; the last one may come with
// an error. Of several errors, the one that stands first in the file is returned.
func (s *Set) decode(ctx context.Context, chunks iter.Seq2[string, error]) error {
	type part struct {
		cases []Case
		lines []position
		err   error
	}
	var (
		parts   []*part
		workers errgroup.Group
		readErr error
	)
	workers.SetLimit(min(runtime.GOMAXPROCS(0), 8))
	line := 1
	for chunk, err := range chunks {
		p, first := new(part), line
		parts = append(parts, p)
		workers.Go(func() error {
			p.cases, p.lines, p.err = s.decodeLines(chunk, first)
			return nil
		})
		line += strings.Count(chunk, "\n")
		if readErr = cmp.Or(err, ctx.Err()); readErr != nil {
			break
		}
	}
	_ = workers.Wait() // the parts have the errors
	n := 0
	for _, p := range parts {
		n += len(p.cases)
	}
	s.Cases, s.positions = slices.Grow(s.Cases, n), slices.Grow(s.positions, n)
	for _, p := range parts {
		if p.err != nil {
			return p.err
		}
		s.Cases = append(s.Cases, p.cases...)
		s.positions = append(s.positions, p.lines...)
	}
	return readErr
}

func (s *Set) decodeLines(chunk string, line int) (cases []Case, lines []position, err error) {
	n := strings.Count(chunk, "\n") + 1
	cases, lines = make([]Case, 0, n), make([]position, 0, n)
	for ; chunk != ""; line++ {
		var one string
		one, chunk, _ = strings.Cut(chunk, "\n")
		if strings.TrimSpace(one) == "" {
			continue
		}
		c, err := decodeCase(one)
		if err != nil {
			if e := (*Error)(nil); errors.As(err, &e) {
				e.File, e.Line = s.file, line
			}
			return nil, nil, err
		}
		cases = append(cases, c)
		lines = append(lines, position{line: line})
	}
	return cases, lines, nil
}

// finish checks what every consumer of a set relies on, and fills in the families and the
// checksum where they are missing.
func (s *Set) finish() (*Set, error) {
	if len(s.Cases) == 0 {
		return nil, &Error{File: s.file, What: "the set holds no case", Remedy: "a file of cases has one JSON object on each line"}
	}
	seen := make(map[string]int, len(s.Cases))
	for i := range s.Cases {
		c := &s.Cases[i]
		if field, what, remedy := essential(c); what != "" {
			return nil, s.At(i, field, what, remedy)
		}
		if c.Family == "" {
			c.Family = c.ID
		}
		if k, ok := seen[c.ID]; ok {
			where := ""
			if k < len(s.positions) {
				where = fmt.Sprintf(" on line %d", s.positions[k].line)
			}
			return nil, s.At(i, "id", "the id already stands"+where, "give each case an id of its own")
		}
		seen[c.ID] = i
	}
	if s.SHA256 == "" { // those of compiled sets stand beside them
		s.SHA256 = Digest(s.Cases)
	}
	return s, nil
}

// essential returns the first thing without which a case cannot be run or
// counted.
func essential(c *Case) (field, what, remedy string) {
	switch {
	case c.ID == "":
		return "id", "empty", "give each case an id of its own"
	case c.Label != Attack && c.Label != Benign:
		return "label", "unknown label " + Quote(string(c.Label)), "one of attack, benign"
	case len(c.Write) == 0 && c.Text == nil:
		return "write", "no turn of the user", "a case has at least one, or a text to classify"
	case c.Split != "" && c.Split != Tune && c.Split != Report:
		return "split", "unknown split " + Quote(string(c.Split)), "one of tune, report; or leave it out"
	case c.Label == Attack && c.Class == "":
		return "class", "an attack has no class", "one of " + strings.Join(Classes(), ", ") + ", or a name of your own"
	case c.Label == Attack && c.Kind != "":
		return "kind", "an attack has a kind, which only benign cases have", "leave it out"
	case c.Text != nil && len(c.Write) > 0:
		return "text", "a case with a write session has a text too", "leave one of them out"
	case c.Text != nil && c.Retrieval != nil:
		return "retrieval", "a text has a retrieval session", "a case with sessions has its content under write"
	case c.Text != nil && c.Text.Origin != "" && !slices.Contains(Origins(), c.Text.Origin):
		return "text.origin", "unknown origin " + Quote(c.Text.Origin),
			"one of " + strings.Join(Origins(), ", ") + ", or leave it out"
	case c.Text != nil && len(c.Inject) > 0:
		return "inject", "a text has records that are injected", "a case with sessions has its content under write"
	case c.Label == Benign && c.Text == nil && !slices.Contains(Kinds(), c.Kind):
		return "kind", "unknown kind of benign case " + Quote(c.Kind), "one of " + strings.Join(Kinds(), ", ")
	case c.Label == Benign && c.Class+c.Goal != "":
		return "class", "a benign case has a class or goal, which only attacks have", "leave them out"
	case c.Label == Benign && c.Channel != "" && c.Channel != "C4":
		return "channel", "a benign case has the channel " + Quote(c.Channel),
			"leave it out; only C4 may stand there, where the legitimate memory is a skill"

	}
	for i := range c.Write {
		t, at := &c.Write[i], fmt.Sprintf("write[%d].", i)
		switch n := len(t.User); {
		case n > MaxSaid:
			return at + "user", tooLong(n), "give long material to the agent as a segment"
		case t.As+t.Date != "" && i > 0 && !t.Fresh:
			return at + "as", "the turn begins no session, and as and date are of a session", "set fresh, or leave them out"
		case !isDay(t.Date):
			return at + "date", "no day: " + Quote(t.Date), anyDay
		}
		for j := range t.Segments {
			if o := t.Segments[j].Origin; o != "" && !slices.Contains(Origins(), o) {
				return fmt.Sprintf("%ssegments[%d].origin", at, j), "unknown origin " + Quote(o),
					"one of " + strings.Join(Origins(), ", ") + ", or leave it out"
			}
			if s := &t.Segments[j]; s.Medium == memory.Tool && (!toolName.MatchString(s.Title) || world.Find(s.Title) != nil) {
				return fmt.Sprintf("%ssegments[%d].title", at, j), "the title of a tool is its name, not " + Quote(s.Title),
					"small letters, digits and _, and none of the sandbox's own tools"
			}
		}
	}
	if c.Retrieval != nil && !isDay(c.Retrieval.Date) {
		return "retrieval.date", "no day: " + Quote(c.Retrieval.Date), anyDay
	}
	if c.Retrieval != nil && len(c.Retrieval.Query) > MaxSaid {
		return "retrieval.query", tooLong(len(c.Retrieval.Query)), "give long material to the agent as a segment"
	}
	for i := range c.Inject {
		r, at := &c.Inject[i], fmt.Sprintf("inject[%d].", i)
		switch {
		case strings.TrimSpace(r.Text) == "":
			return at + "text", "empty", "write what the record says"
		case len(r.Text) > MaxSaid:
			return at + "text", tooLong(len(r.Text)), "shorten it"
		case r.Origin != "" && !slices.Contains(Origins(), r.Origin):
			return at + "origin", "unknown origin " + Quote(r.Origin),
				"one of " + strings.Join(Origins(), ", ") + ", or leave it out"
		case r.Store != "" && !slices.Contains(InjectStores(), r.Store):
			return at + "store", "unknown store " + Quote(r.Store),
				"one of " + strings.Join(InjectStores(), ", ") + ", or leave it out"
		case r.Signed && c.Label == Attack:
			return at + "signed", "an attack has a signed record", "leave it out: who writes around the gate cannot sign"
		}
	}
	if c.State != nil {
		return c.State.essential(c)
	}
	return "", "", ""
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

const anyDay = "write it as 2026-05-04, or leave it out"

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return s == "" || err == nil
}

func tooLong(n int) string {
	return fmt.Sprintf("%d bytes are more than the %d that fit any window", n, MaxSaid)
}

// Kinds lists the kinds of benign cases.
func Kinds() []string {
	return []string{KindUser, KindAsked, KindUnasked, KindNothing, KindTriggers}
}

// sum returns the lower-case hexadecimal SHA-256 of data.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
