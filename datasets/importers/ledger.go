package importers

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/datasets"
)

// Ledger says what became of everything that was read. Counts by label, class and
// the like are of the cases that were kept.
type Ledger struct {
	Format string     `json:"format"`
	Files  []FileNote `json:"files"`

	Read    int `json:"read"` // objects
	Kept    int `json:"kept"` // cases: an object may hold several (`each:`), or none
	Attacks int `json:"attacks"`
	Benign  int `json:"benign"`
	Twins   int `json:"twins"` // attacks with a benign twin
	// Duplicates are objects that are copies of a kept one in everything but the
	// id. DuplicateIDs are further uses of an id by something else; both are kept.
	Duplicates   int `json:"duplicates"`
	DuplicateIDs int `json:"duplicate_ids"`
	// LabelConflicts are texts that stand under both labels; both are kept.
	LabelConflicts int `json:"label_conflicts"`
	Filtered       int `json:"filtered"` // left out by the mapping's where:
	Rejected       int `json:"rejected"` // not usable; only with SkipInvalid
	Texts          int `json:"texts"`    // cases without sessions, for detect
	EmptyTexts     int `json:"empty_texts"`

	NotScorable NotScorable `json:"not_scorable"`
	// NeedsJudge are attacks that name no value by which it can be told whether
	// they were stored: without a judge they count for detection only.
	NeedsJudge int            `json:"needs_judge"`
	Derived    map[string]int `json:"derived"` // operative values that were derived, by kind
	Origins    map[string]int `json:"origins"` // of texts; "none" where the set does not say

	Classes map[string]int `json:"classes"` // attack class
	Kinds   map[string]int `json:"kinds"`   // kind of benign case
	Signals map[string]int `json:"signals"` // of attacks
	Domains map[string]int `json:"domains"`
	// Spellings of labels and goals in everything that was read, and what each
	// became.
	Labels map[string]Spelling `json:"labels"`
	Goals  map[string]Spelling `json:"goals"`
	// UnmappedDomains and UnmappedLabels have no counterpart among the built-in
	// names and were kept as they are.
	UnmappedDomains map[string]int `json:"unmapped_domains"`
	UnmappedLabels  map[string]int `json:"unmapped_labels"`

	MultiObjectLines []ManyOnLine `json:"multi_object_lines"`
	StringBooleans   int          `json:"string_booleans"`
	// JSONTexts are contents that were no text and are kept as JSON.
	JSONTexts int `json:"json_texts"`
	// UnusedFields were read and stand in no case.
	UnusedFields map[string]int `json:"unused_fields"`
	// NotToStore are expected memories of benign cases without a legitimate write:
	// what must not be stored. They stand in the ledger's entries.
	NotToStore int `json:"not_to_store"`

	// Entries has one line an object.
	Entries []Entry `json:"-"`

	skip bool // go on after a broken object
}

type FileNote struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Objects int    `json:"objects"`
	BOM     bool   `json:"bom,omitempty"` // began with a byte order mark
}

// NotScorable counts attacks that lack what a rate needs.
type NotScorable struct {
	ASR int `json:"asr"` // no expected memory
	RSR int `json:"rsr"` // no retrieval query
	// Utility counts benign cases with a legitimate write that do not say which.
	Utility int `json:"utility"`
}

// Spelling is a label as it was written: how often, and what it became.
type Spelling struct {
	N  int    `json:"n"`
	As string `json:"as"`
}

// ManyOnLine is a line with more than one object.
type ManyOnLine struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Objects int    `json:"objects"`
}

// Outcomes of an object.
const (
	Kept      = "kept"
	Duplicate = "duplicate"
	Filtered  = "filtered"
	Rejected  = "rejected"
	Empty     = "empty" // nothing to make a case of: an empty each:
)

// Entry is what became of one object, or of one item of it.
type Entry struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Object  int    `json:"object,omitempty"` // place on the line, where it has several
	Item    string `json:"item,omitempty"`   // of each:
	Twin    bool   `json:"twin,omitempty"`   // made by twin:
	ID      string `json:"id,omitempty"`     // as it was
	Case    string `json:"case,omitempty"`   // id of the case; of a duplicate that of the kept one
	Outcome string `json:"outcome"`
	// Value is an operative value that was derived, for review, and From its kind.
	Value string `json:"value,omitempty"`
	From  string `json:"from,omitempty"`
	// NotToStore is the expected memory of a benign case that must not be stored.
	NotToStore string   `json:"not_to_store,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

func newLedger(format string, skip bool) *Ledger {
	count := func() map[string]int { return map[string]int{} }
	return &Ledger{Format: format, skip: skip, Files: []FileNote{}, MultiObjectLines: []ManyOnLine{},
		Derived: count(), Origins: count(), Classes: count(), Kinds: count(), Signals: count(), Domains: count(),
		UnmappedDomains: count(), UnmappedLabels: count(), UnusedFields: count(),
		Labels: map[string]Spelling{}, Goals: map[string]Spelling{}}
}

// reject notes a broken object. It returns the error where that ends the import.
func (l *Ledger) reject(r record, err error) error {
	if !l.skip {
		return err
	}
	l.Read++
	l.Rejected++
	l.note(r, Rejected, err.Error())
	return nil
}

// note enters what became of an object of which there is no case.
func (l *Ledger) note(r record, outcome string, notes ...string) {
	e := entryOf(r)
	e.Outcome, e.Notes = outcome, notes
	l.Entries = append(l.Entries, e)
}

func entryOf(r record) Entry {
	e := Entry{File: r.file, Line: r.line}
	if r.object > 1 {
		e.Object = r.object
	}
	return e
}

func (l *Ledger) spelled(of map[string]Spelling, as, was string) {
	s := of[was]
	of[was] = Spelling{s.N + 1, as}
}

func (l *Ledger) count(c *datasets.Case) {
	l.Kept++
	if c.Label == datasets.Attack {
		l.Attacks++
		l.Classes[c.Class]++
		if c.Signal != "" {
			l.Signals[c.Signal]++
		}
		if c.Text == nil {
			if c.Memory == "" {
				l.NotScorable.ASR++
			}
			if c.Retrieval == nil {
				l.NotScorable.RSR++
			}
			if c.NeedsJudge() {
				l.NeedsJudge++
			}
		}
	} else {
		l.Benign++
		if c.Kind != "" {
			l.Kinds[c.Kind]++
		}
		if c.Text == nil && c.Kind != datasets.KindNothing && c.Kind != datasets.KindTriggers && !c.Writes() {
			l.NotScorable.Utility++
		}
	}
	if c.Domain != "" {
		l.Domains[c.Domain]++
		if !slices.Contains(datasets.Domains(), c.Domain) {
			l.UnmappedDomains[c.Domain]++
		}
	}
	if t := c.Text; t != nil {
		l.Texts++
		if t.Content == "" {
			l.EmptyTexts++
		}
		l.Origins[cmp.Or(t.Origin, "none")]++
	}
}

// WriteText writes the ledger for a person. Names come from foreign data and are
// quoted where they are not plain.
func (l *Ledger) WriteText(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s %s\n", name, fmt.Sprintf(format, args...))
	}
	if l.Rejected > 0 {
		line("REJECTED", "%d objects could not be used: see the ledger file", l.Rejected)
	}
	for _, f := range l.Files {
		bom := ""
		if f.BOM {
			bom = ", byte order mark taken away"
		}
		line("file", "%s: %d objects, %d bytes, SHA-256 %.16s…%s", datasets.Inert(f.Name), f.Objects, f.Bytes,
			f.SHA256, bom)
	}
	line("read", "%d objects", l.Read)
	line("kept", "%d cases: %d attacks, %d benign", l.Kept, l.Attacks, l.Benign)
	some := func(name string, n int, what string) {
		if n > 0 {
			line(name, "%d %s", n, what)
		}
	}
	some("twins", l.Twins, "attacks have a benign twin")
	some("duplicates", l.Duplicates, "copies in everything but the id: left out")
	some("duplicate ids", l.DuplicateIDs, "ids stand for something else too: both kept, ids are replaced")
	some("label conflicts", l.LabelConflicts, "texts stand under both labels: both kept")
	some("filtered", l.Filtered, "objects left out by the mapping (where)")
	some("texts", l.Texts, "cases without sessions: for memtox detect, not for memtox run")
	some("empty texts", l.EmptyTexts, "of them hold nothing")
	list := func(name string, m map[string]int) {
		if len(m) == 0 {
			return
		}
		var parts []string
		for _, k := range byCount(m) {
			parts = append(parts, fmt.Sprintf("%s %d", datasets.Inert(k), m[k]))
		}
		if len(parts) > 20 {
			parts = append(parts[:20], fmt.Sprintf("and %d more", len(m)-20))
		}
		line(name, "%s", strings.Join(parts, ", "))
	}
	list("classes", l.Classes)
	list("kinds", l.Kinds)
	list("signals", l.Signals)
	list("domains", l.Domains)
	list("unmapped domains", l.UnmappedDomains)
	list("origins", l.Origins)
	spell := func(name string, m map[string]Spelling) {
		n := map[string]int{}
		for k, s := range m {
			n[datasets.Inert(k)+" → "+datasets.Inert(s.As)] = s.N
		}
		if len(n) == 0 {
			return
		}
		for i, k := range byCount(n) {
			if i == 20 {
				line("", "and %d more", len(n)-20)
				break
			}
			line(name, "%s: %d", k, n[k])
			name = ""
		}
	}
	spell("labels", l.Labels)
	list("unmapped labels", l.UnmappedLabels)
	spell("goals", l.Goals)
	some("not scorable, ASR", l.NotScorable.ASR, "attacks name no expected memory: kept, for detection only")
	some("not scorable, RSR", l.NotScorable.RSR, "attacks have no retrieval query: kept, for ASR and detection only")
	some("not scorable, utility", l.NotScorable.Utility,
		"benign cases with a legitimate write do not say which: kept, for detection only")
	list("derived values", l.Derived)
	some("needs a judge", l.NeedsJudge, "attacks name no value that can be looked for: without a judge they count for "+
		"detection only")
	some("not to be stored", l.NotToStore, "expected memories of benign cases that must not be stored: in the ledger "+
		"file, in no case")
	for _, m := range l.MultiObjectLines {
		line("several on a line", "%s:%d holds %d objects: all read", datasets.Inert(m.File), m.Line, m.Objects)
	}
	some("string booleans", l.StringBooleans, "truth values are written as texts")
	some("JSON contents", l.JSONTexts, "contents are no texts: kept as JSON")
	list("unused fields", l.UnusedFields)
	_, err := io.WriteString(w, b.String())
	return err
}

// byCount orders names by their count, the greatest first.
func byCount(m map[string]int) []string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return m[b] - m[a] })
	return keys
}

// WriteEntries writes what became of each object, as JSON lines.
func (l *Ledger) WriteEntries(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for i := range l.Entries {
		if err := e.Encode(&l.Entries[i]); err != nil {
			return fmt.Errorf("writing the ledger: %w", err)
		}
	}
	return b.Flush()
}
