package seal

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Document proves to somebody who has the verifier's key and nothing else that a
// record was, or was not, in a sealed snapshot.
type Document struct {
	Kind       string `json:"kind"`       // DocumentKind
	Checkpoint string `json:"checkpoint"` // signed note
	Snapshot   Entry  `json:"snapshot"`
	Log        []Hash `json:"log"` // that the snapshot is in the checkpoint's log
	Proof      Proof  `json:"proof"`
	// Disclosed opens the record's content; nil keeps it to itself.
	Disclosed *Disclosed `json:"disclosed,omitempty"`
}

// DocumentKind names the form of a Document.
const DocumentKind = "memtox memory proof 1"

// Disclosed is what a version's digest was made of.
type Disclosed struct {
	Seq    uint64 `json:"seq"`
	Salt   []byte `json:"salt"`
	Record []byte `json:"record"` // canonical encoding
}

// Prove proves whether a record is in a sealed snapshot, named by its id or its
// name. Disclose puts its content into the document. A snapshot that is not sealed
// is [ErrNotSealed].
func (l *Ledger) Prove(ctx context.Context, snapshot, record string, disclose bool) (*Document, error) {
	s, err := l.store.FindSnapshot(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	d := &Document{Kind: DocumentKind}
	if err := l.fill(ctx, d, &s, record); err != nil {
		return nil, fmt.Errorf("proving record %q in snapshot %s: %w", record, s.ID, err)
	}
	if disclose && d.Proof.Present {
		if d.Disclosed, err = l.disclose(ctx, record, d.Snapshot.Sequence); err != nil {
			return nil, fmt.Errorf("proving record %q in snapshot %s: %w", record, s.ID, err)
		}
	}
	return d, nil
}

func (l *Ledger) disclose(ctx context.Context, record string, to uint64) (*Disclosed, error) {
	var last store.Version
	for v, err := range l.store.Versions(ctx, store.Filter{ID: record, To: to}) {
		if err != nil {
			return nil, fmt.Errorf("reading its versions: %w", err)
		}
		last = v
	}
	switch {
	case last.Seq == 0:
		return nil, fmt.Errorf("%w: the store has no version of it from then", ErrIntegrity)
	case last.Forgotten:
		return nil, errors.New("its content was forgotten and cannot be disclosed; prove it without")
	}
	return &Disclosed{Seq: last.Seq, Salt: last.Salt, Record: last.Record.AppendCanonical(nil)}, nil
}

// fill puts a snapshot, its place in the log and the proof into a document.
func (l *Ledger) fill(ctx context.Context, d *Document, snapshot *store.Snapshot, record string) error {
	v := openVault(ctx, l.store)
	h, err := v.head()
	if err != nil {
		return err
	}
	e, err := v.find(h.Size, snapshot)
	if err != nil {
		return err
	}
	d.Snapshot, d.Checkpoint = *e, string(h.Checkpoint)
	if d.Log, err = NewLog(h.Size, v).ProveEntry(e.Number); err != nil {
		return fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	d.Proof, err = Open(e.Root, e.Size, v).Prove(record)
	return integrity(err)
}

// Statement is what a document proves.
type Statement struct {
	Record     string     `json:"record"`
	Present    bool       `json:"present"`
	Digest     Hash       `json:"digest,omitzero"` // of the record's version
	Snapshot   Entry      `json:"snapshot"`
	Checkpoint Checkpoint `json:"checkpoint"`
	SignedBy   string     `json:"signed_by"` // name of the verifier's key
	// Disclosed is the record itself, where the document opens it.
	Disclosed *memory.Record `json:"disclosed,omitempty"`
}

// CheckDocument checks a document to the last byte and returns what it proves.
// The error of one that proves nothing wraps [ErrIntegrity].
func CheckDocument(data []byte, verifier note.Verifier) (*Statement, error) {
	s, err := checkDocument(data, verifier)
	if err != nil {
		return nil, fmt.Errorf("checking a proof: %w: %w", ErrIntegrity, err)
	}
	return s, nil
}

func checkDocument(data []byte, verifier note.Verifier) (*Statement, error) {
	var d Document
	if err := Decode(data, &d); err != nil {
		return nil, err
	}
	if d.Kind != DocumentKind {
		return nil, fmt.Errorf("it is of kind %q, not %q", d.Kind, DocumentKind)
	}
	c, err := OpenCheckpoint([]byte(d.Checkpoint), verifier)
	if err != nil {
		return nil, err
	}
	if err := CheckEntry(&d.Snapshot, d.Log, c.Size, c.Root); err != nil {
		return nil, err
	}
	if err := d.Proof.Verify(d.Snapshot.Root); err != nil {
		return nil, err
	}
	if d.Proof.Size != d.Snapshot.Size {
		return nil, fmt.Errorf("the snapshot has %d records, and the proof says %d", d.Snapshot.Size, d.Proof.Size)
	}
	s := &Statement{Record: d.Proof.ID, Present: d.Proof.Present, Digest: d.Proof.Value, Snapshot: d.Snapshot,
		Checkpoint: c, SignedBy: verifier.Name()}
	if d.Disclosed == nil {
		return s, nil
	}
	r, err := memory.ParseCanonical(d.Disclosed.Record)
	if err != nil {
		return nil, fmt.Errorf("the disclosed record: %w", err)
	}
	v := store.Version{Audit: store.Audit{Seq: d.Disclosed.Seq}, Record: r, Salt: d.Disclosed.Salt}
	switch {
	case !s.Present || r.ID != s.Record:
		return nil, fmt.Errorf("it discloses record %q, and is about %q", r.ID, s.Record)
	case len(v.Salt) != store.SaltSize || v.Seq > d.Snapshot.Sequence:
		return nil, errors.New("the disclosed record has a salt of another size, or is from after the snapshot")
	case Hash(v.Sum()) != s.Digest:
		return nil, errors.New("the disclosed record is not the one that was sealed")
	}
	s.Disclosed = &r
	return s, nil
}
