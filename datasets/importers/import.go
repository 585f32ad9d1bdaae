package importers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memtox/memtox/datasets"
)

// Request is what to import.
type Request struct {
	Format string // one of Formats
	Files  []Input
	// Map is the mapping of the formats jsonl, csv and parquet. Other formats have
	// their own.
	Map *Mapping
	// SkipInvalid goes on after an object that cannot be used and notes it in the
	// ledger. Without it such an object is an error.
	SkipInvalid bool
}

// Import reads the files and returns their cases, in the order of the files, and
// the ledger. An error in the data is a [datasets.Error].
func Import(ctx context.Context, r Request) ([]datasets.Case, *Ledger, error) {
	f, ok := FindFormat(r.Format)
	if !ok {
		return nil, nil, &datasets.Error{What: "unknown format " + datasets.Quote(r.Format),
			Remedy: "one of " + strings.Join(FormatNames(), ", ")}
	}
	x := &importing{ledger: newLedger(f.Name, r.SkipInvalid), seen: map[[16]byte]int{}, ids: map[string]int{},
		texts: map[[16]byte]datasets.Label{}, variants: map[int]string{}}
	read := reading{ledger: x.ledger}
	switch m := r.Map; {
	case f.Name == mpbenchName:
		if m != nil {
			return nil, nil, &datasets.Error{What: f.Name + " needs no mapping", Remedy: "leave --map out"}
		}
		x.m, x.ready, x.convert = mpbenchMapping(), true, x.convertMPBench
	case f.mapping != nil && m != nil:
		return nil, nil, &datasets.Error{What: f.Name + " has a mapping of its own",
			Remedy: "leave --map out, or use the format jsonl, csv or parquet"}
	case f.mapping != nil:
		m, err := f.mapping()
		if err != nil {
			return nil, nil, err
		}
		x.m, x.ready, x.convert = m, true, x.convertMapped
	case m == nil:
		return nil, nil, &datasets.Error{What: "no mapping says which field is what",
			Remedy: "write one and give it with --map: `content: $.text` and `label: $.label` are enough"}
	default:
		x.m, x.convert = m, x.convertMapped
	}
	x.used = x.m.used()
	read.records, read.yield, read.syntax = x.m.records, x.mapped, cmp.Or(x.m.syntax, f.syntax)
	if len(r.Files) == 0 {
		return nil, nil, &datasets.Error{What: "no file to import", Remedy: "name at least one"}
	}
	for _, in := range r.Files {
		one := read
		one.in = in
		if err := one.read(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := x.finish(); err != nil {
		return nil, nil, err
	}
	return x.cases, x.ledger, nil
}

// importing is one import on its way.
type importing struct {
	m     *Mapping
	ready bool // m is a ready mapping, whose optional fields may be nowhere
	// convert makes a case of a record, or of an item of one.
	convert func(*scope, *made) error
	used    map[string]bool
	ledger  *Ledger
	cases   []datasets.Case

	buf      []byte
	seen     map[[16]byte]int            // case by hash of everything but its id
	ids      map[string]int              // case by the id that it had
	texts    map[[16]byte]datasets.Label // label by hash of a text
	variants map[int]string              // old id of what a case varies
	sample   string                      // the fields of the first record, for errors
}

// add takes a case that was made of a record, gives it its id, and notes it.
func (x *importing) add(e Entry, c datasets.Case) {
	c.ID = ""
	x.buf = datasets.AppendCase(x.buf[:0], &c)
	sum := sha256.Sum256(append(x.buf, "memtox import 1"...))
	key := [16]byte(sum[:16])
	if first, ok := x.seen[key]; ok {
		x.ledger.Duplicates++
		e.Outcome, e.Case = Duplicate, x.cases[first].ID
		e.Value, e.From = "", ""
		x.ledger.Entries = append(x.ledger.Entries, e)
		return
	}
	c.ID = "m-" + hex.EncodeToString(sum[:8])
	if c.Family == "" {
		c.Family = c.ID
	}
	x.seen[key] = len(x.cases)
	if e.ID != "" {
		if _, twice := x.ids[e.ID]; twice {
			x.ledger.DuplicateIDs++
			e.Notes = append(e.Notes, "the id stands for something else too")
		} else {
			x.ids[e.ID] = len(x.cases)
		}
	}
	if c.Text != nil {
		h := sha256.New()
		fmt.Fprintf(h, "%d:%s%s", len(c.Text.Key), c.Text.Key, c.Text.Content)
		text := [16]byte(h.Sum(nil)[:16])
		if label, ok := x.texts[text]; ok && label != c.Label {
			x.ledger.LabelConflicts++
			e.Notes = append(e.Notes, "the same text stands under the other label too")
		}
		x.texts[text] = c.Label
	}
	if e.From != "" {
		x.ledger.Derived[e.From]++
	}
	if c.NeedsJudge() {
		e.Notes = append(e.Notes, "needs a judge: no value can be looked for")
	}
	if e.NotToStore != "" {
		x.ledger.NotToStore++
	}
	e.Outcome, e.Case = Kept, c.ID
	x.ledger.count(&c)
	x.cases = append(x.cases, c)
	x.ledger.Entries = append(x.ledger.Entries, e)
}

// finish resolves what can be resolved only once everything was read.
func (x *importing) finish() error {
	if !x.ready {
		for _, name := range slices.Sorted(maps.Keys(x.m.fields)) {
			if e := x.m.fields[name]; !e.literal && e.found == 0 && x.ledger.Read > x.ledger.Filtered+x.ledger.Rejected {
				what := "no record has "
				for _, p := range e.paths {
					what += p.text + " "
				}
				return &datasets.Error{File: x.ledger.Files[0].Name, Field: name, What: strings.TrimSpace(what),
					Remedy: "the first record has " + x.sample}
			}
		}
	}
	for i, old := range x.variants {
		of, ok := x.ids[old]
		if !ok {
			return x.placed(&datasets.Error{Case: x.cases[i].ID, Field: "variant_of",
				What:   "no record has the id " + datasets.Quote(old),
				Remedy: "import the set that it varies too"})
		}
		x.cases[i].VariantOf = x.cases[of].ID
	}
	if len(x.cases) == 0 {
		return &datasets.Error{File: x.ledger.Files[0].Name, What: fmt.Sprintf("no case came of %d objects", x.ledger.Read),
			Remedy: "look at the mapping's where: and each:, or at what was rejected"}
	}
	// The set is checked as every reader will check it.
	_, err := datasets.NewSet("import", slices.Clone(x.cases))
	return x.placed(err)
}

// placed says of an error about a case where that came from.
func (x *importing) placed(err error) error {
	var e *datasets.Error
	if !errors.As(err, &e) || e.Case == "" || e.Line > 0 {
		return err
	}
	for i := range x.ledger.Entries {
		if from := &x.ledger.Entries[i]; from.Case == e.Case && from.Outcome == Kept {
			e.File, e.Line, e.Case = from.File, from.Line, "" // the id was never seen
			break
		}
	}
	return err
}
