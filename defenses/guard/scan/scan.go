// Package scan looks for poison in the files that agents keep their memory
// in: Markdown and other text (MEMORY.md), JSON, JSON Lines, and SQLite databases,
// the durable store of memtox among them.
//
//	r, err := scan.Scan(ctx, g, scan.Options{}, "MEMORY.md", "memories/")
//
// What counts as a finding is what the policy of the guard would not let through
// from an unknown source. Nothing is changed, and nothing is followed: symbolic
// links and special files in a directory are skipped, and so are binary files. What
// was skipped is said. What should have been scanned and could not be (unreadable,
// damaged, too large) is said apart, for then no finding proves nothing.
package scan

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/internal/text"
)

// Options bound a scan. The zero value has the defaults.
type Options struct {
	// MaxBytes is the largest text or JSON file, and the most bytes of text of one
	// database, that are scanned; 0 is 64 MiB and 1 GiB.
	MaxBytes int64
}

const (
	defaultText     = 64 << 20
	defaultDatabase = 1 << 30
	// window is how much of a long text is looked at in one go, overlap what of it
	// is looked at again with what follows.
	window, overlap = 64 << 10, 4 << 10
	// maxFindings bounds what is kept; the rest is counted.
	maxFindings = 10_000
	maxExcerpt  = 120
)

// Finding is one thing that the policy would not let through.
type Finding struct {
	File     string        `json:"file"`
	Line     int           `json:"line,omitempty"`  // from 1; 0 in a database
	Place    string        `json:"place,omitempty"` // path in JSON; table, column and row; record
	Check    string        `json:"check"`           // id of the pattern
	On       string        `json:"on"`              // the check of the guard that it belongs to
	Family   string        `json:"family,omitempty"`
	Severity string        `json:"severity"`
	Action   memory.Action `json:"action"` // what the policy would do
	Rule     string        `json:"rule,omitempty"`
	Note     string        `json:"note"`
	// Excerpt is what was matched. Secrets and personal data have none.
	Excerpt     string `json:"excerpt,omitempty"`
	Fingerprint string `json:"fingerprint"` // equal in every scan that finds the same, wherever it moved in the file
}

// Skipped is a file that was not scanned, or not wholly, and why.
type Skipped struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Report is what a scan found.
type Report struct {
	Files    int       `json:"files"`   // scanned
	Entries  int       `json:"entries"` // lines, strings, cells and records in them
	Bytes    int64     `json:"bytes"`
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // findings beyond those that are listed
	Skipped  []Skipped `json:"skipped"`        // no memory: binary files, links
	Failed   []Skipped `json:"failed"`         // should have been scanned wholly, and was not
}

// Scan scans files, and directories with all that is below them. Its error is that
// of ctx, or of a path that is not there.
func Scan(ctx context.Context, g *guard.Guard, o Options, paths ...string) (*Report, error) {
	s := &scanner{ctx: ctx, in: g.Inspector(), maxText: o.MaxBytes, maxDB: o.MaxBytes,
		seen:   make(map[[sha256.Size]byte]int),
		report: &Report{Findings: []Finding{}, Skipped: []Skipped{}, Failed: []Skipped{}}}
	if o.MaxBytes == 0 {
		s.maxText, s.maxDB = defaultText, defaultDatabase
	}
	var done []string
	for _, p := range paths {
		p = filepath.Clean(p)
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("scanning: %w", err)
		}
		if slices.Contains(done, p) {
			continue
		}
		done = append(done, p)
		if !info.IsDir() {
			s.file(p, true)
		} else if err := s.directory(p); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return s.report, nil
}

type scanner struct {
	ctx            context.Context
	in             *guard.Inspector
	maxText, maxDB int64
	report         *Report
	name           string                    // of the file at hand
	failed         bool                      // it is among Report.Failed
	checks         map[string]int            // findings of each check in it
	seen           map[[sha256.Size]byte]int // how often an identity was found
}

func (s *scanner) directory(dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("scanning: %w", err)
	}
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		name := p
		if rel, relErr := filepath.Rel(root, p); relErr == nil {
			name = filepath.Join(dir, rel)
		}
		if err != nil {
			s.name, s.failed = name, false
			s.fail(reason(err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			s.skip(name, "a repository's own files")
			return fs.SkipDir
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			s.skip(name, "a symbolic link, which is not followed; name it to have it scanned")
		case !d.Type().IsRegular():
			s.skip(name, "not a regular file")
		default:
			s.file(name, false)
		}
		return nil
	})
}

func (s *scanner) skip(name, why string) {
	s.report.Skipped = append(s.report.Skipped, Skipped{name, why})
}

// fail notes that the file at hand was not scanned wholly.
func (s *scanner) fail(why string) {
	if !s.failed {
		s.report.Failed = append(s.report.Failed, Skipped{s.name, why})
	}
	s.failed = true
}

// reason is an error without the path, which stands beside it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

var sqliteMagic = []byte("SQLite format 3\x00")

// file scans one file. One that was named, or whose name says that it is text, is
// scanned as text whatever it holds: a NUL byte must not hide an entry.
func (s *scanner) file(name string, named bool) {
	s.name, s.failed, s.checks = name, false, make(map[string]int)
	if err := s.read(named); err != nil {
		s.fail(reason(err))
	}
}

func (s *scanner) read(named bool) error {
	name := s.name
	info, err := os.Stat(name) // who names a link means what it leads to
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		s.skip(name, "not a regular file")
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 8<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head = head[:n]
	if bytes.HasPrefix(head, sqliteMagic) {
		s.report.Files++
		return s.database()
	}
	for _, part := range []string{"-wal", "-shm", "-journal"} {
		if base, ok := strings.CutSuffix(name, part); ok && isDatabase(base) {
			return nil // belongs to the database, and is read with it
		}
	}
	wide := bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) // UTF-16
	ext := strings.ToLower(filepath.Ext(name))
	isText := slices.Contains([]string{".md", ".markdown", ".txt", ".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".toml",
		".csv", ".org", ".rst"}, ext)
	if !named && !isText && !wide && isBinary(head) {
		s.skip(name, "a binary file")
		return nil
	}
	if info.Size() > s.maxText {
		return fmt.Errorf("larger than %d bytes: raise --max-bytes", s.maxText)
	}
	var all bytes.Buffer // of the file's size at once: growing would take it twice
	all.Grow(int(max(info.Size(), int64(n))) + bytes.MinRead)
	all.Write(head)
	_, err = all.ReadFrom(io.LimitReader(f, s.maxText-int64(n)+1))
	data := all.Bytes()
	if err == nil && int64(len(data)) > s.maxText {
		err = errors.New("it grew while it was read")
	}
	if err != nil {
		return err
	}
	if wide {
		// Half a pair becomes U+FFFD.
		data, _ = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(data)
	}
	s.report.Files++
	s.report.Bytes += int64(len(data))
	switch first := firstByte(data); {
	case ext == ".jsonl" || ext == ".ndjson":
		s.jsonLines(data)
	case ext == ".json" || !isText && (first == '{' || first == '['):
		s.json(data)
	default:
		s.text(data)
	}
	return nil
}

func isDatabase(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(sqliteMagic))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, sqliteMagic)
}

func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad > len(head)/10+3 // an old encoding has a few, a picture many
}

func firstByte(data []byte) byte {
	if t := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(t) > 0 {
		return t[0]
	}
	return 0
}

// text scans a file by its lines, so that each entry has findings of its own, and
// then across them, for what is parted by line ends.
func (s *scanner) text(data []byte) {
	line := 0
	for l := range bytes.Lines(data) {
		if line++; s.ctx.Err() != nil {
			return
		}
		if l = bytes.TrimRight(l, "\r\n"); len(bytes.TrimSpace(l)) > 0 {
			entry(s, l, "", "", func(int) int { return line }, nil)
		}
	}
	alone := maps.Clone(s.checks)
	at, counted := 1, 0
	windows(s, data, "", "", func(offset int) int {
		if offset < counted {
			at, counted = 1, 0
		}
		at += bytes.Count(data[counted:offset], []byte{'\n'})
		counted = offset
		return at
	}, alone)
}

// entry scans one entry, in windows where it is long.
func entry[T string | []byte](s *scanner, content T, key, place string, line func(int) int, without map[string]int) {
	s.report.Entries++
	windows(s, content, key, place, line, without)
}

// windows scans a text; line tells the line of an offset. Checks among without are
// left out. No more than a window is copied.
func windows[T string | []byte](s *scanner, content T, key, place string, line func(int) int, without map[string]int) {
	found := make(map[[2]string]bool) // check and what was matched, where windows overlap
	for from := 0; ; {
		to := min(from+window, len(content))
		for to < len(content) && !utf8.RuneStart(content[to]) {
			to--
		}
		part := string(content[from:to])
		for _, f := range s.in.Inspect(key, part) {
			if without[f.Check] > 0 {
				continue
			}
			match := ""
			if f.End > f.Start && f.End <= len(part) {
				match = part[f.Start:f.End]
			}
			if id := [2]string{f.Check, strconv.Itoa(from + f.Start)}; from > 0 && found[id] {
				continue
			} else if len(content) > window {
				found[id] = true
			}
			s.add(&f, match, place, line(from+f.Start))
		}
		if to == len(content) || s.ctx.Err() != nil {
			return
		}
		for from = to - overlap; from < to && !utf8.RuneStart(content[from]); from++ {
		}
	}
}

func (s *scanner) add(f *guard.Finding, match, place string, line int) {
	s.checks[f.Check]++
	if len(s.report.Findings) >= maxFindings {
		s.report.More++
		return
	}
	// The same in another line is another finding; the line itself is no part of
	// the identity, for lines move.
	id := fmt.Sprintf("%q", []string{filepath.ToSlash(s.name), place, f.Check, match})
	known := sha256.Sum256([]byte(id)) // what was matched may be long
	s.seen[known]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, s.seen[known]))
	out := Finding{File: s.name, Line: line, Place: place, Check: f.Check, On: string(f.On), Family: f.Family,
		Severity: f.Severity.String(),
		Action:   f.Action, Rule: f.Rule, Note: f.Note, Fingerprint: hex.EncodeToString(sum[:])}
	if f.On != guard.SensitiveDataCheck {
		out.Excerpt = text.Clip(match, maxExcerpt)
	}
	s.report.Findings = append(s.report.Findings, out)
}
