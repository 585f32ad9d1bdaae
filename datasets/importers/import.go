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
		texts: map[[16]byte]datasets.Label{}, variants: map[int]string{}, twins: map[int]string{}}
	x.convert = func(s *scope, c *made) error { return x.fill(s, c, &x.m.filling, "") }
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
		x.m, x.ready = m, true
	case m == nil:
		return nil, nil, &datasets.Error{What: "no mapping says which field is what",
			Remedy: "write one and give it with --map: `content: $.text` and `label: $.label` are enough"}
	default:
		x.m = m
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

type importing struct {
	m       *Mapping
	twinned bool // a twin was made
	ready   bool // m is a ready mapping, whose optional fields may be nowhere
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
	twins    map[int]string              // old id of a case's twin
	sample   string                      // the fields of the first record, for errors
}

// add takes a case that was made of a record, gives it its id, and notes it. It returns
// its place, or that of the kept case of which it is a copy.
func (x *importing) add(e Entry, c datasets.Case) int {
	c.ID = ""
	x.buf = datasets.AppendCase(x.buf[:0], &c)
	sum := sha256.Sum256(append(x.buf, "memtox import 1"...))
	key := [16]byte(sum[:16])
	if first, ok := x.seen[key]; ok {
		x.ledger.Duplicates++
		e.Outcome, e.Case = Duplicate, x.cases[first].ID
		e.Value, e.From = "", ""
		x.ledger.Entries = append(x.ledger.Entries, e)
		return first
	}
	c.ID = "m-" + hex.EncodeToString(sum[:8])
	if c.Family == "" {
		c.Family = c.ID
	}
	x.seen[key] = len(x.cases)
	if e.ID != "" && !e.Twin {
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
	return len(x.cases) - 1
}

// pair makes two cases each other's twins, of one family. It reports whether they are.
func (x *importing) pair(i, j int) bool {
	a, b := &x.cases[i], &x.cases[j]
	if a.Twin == b.ID && b.Twin == a.ID {
		return true
	}
	if a.Twin != "" || b.Twin != "" {
		return false
	}
	a.Twin, b.Twin = b.ID, a.ID
	if b.Family == b.ID {
		b.Family = a.Family
	} else if a.Family == a.ID {
		a.Family = b.Family
	}
	x.ledger.Twins++
	return true
}

// finish resolves what can be resolved only once everything was read.
func (x *importing) finish() error {
	if !x.ready && x.ledger.Read > x.ledger.Filtered+x.ledger.Rejected {
		var nowhere []use
		look := func(u use) {
			if u.must && !u.literal && len(u.paths) > 0 && u.found == 0 {
				nowhere = append(nowhere, u)
			}
		}
		if x.m.filling.uses("", look); x.twinned {
			x.m.twin.uses("twin.", look)
		}
		if len(nowhere) > 0 {
			u := slices.MinFunc(nowhere, func(a, b use) int { return strings.Compare(a.at, b.at) })
			what := "no record has"
			for _, p := range u.paths {
				what += " " + p.text
			}
			return &datasets.Error{File: x.ledger.Files[0].Name, Field: u.at, What: what,
				Remedy: "the first record has " + x.sample}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(x.twins)) {
		j, ok := x.ids[x.twins[i]]
		what, remedy := "", "a twin is the other case's twin too, and one of them is an attack and the other benign"
		switch {
		case !ok:
			what, remedy = "no record has the id "+datasets.Quote(x.twins[i]), "import the set that has it too, or leave twin: out"
		case x.cases[i].Label == x.cases[j].Label:
			what = datasets.Quote(x.twins[i]) + " has the same label"
		case !x.pair(i, j):
			what = datasets.Quote(x.twins[i]) + " or this case has another twin already"
		default:
			continue
		}
		return x.placed(&datasets.Error{Case: x.cases[i].ID, Field: "twin", What: what, Remedy: remedy})
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
