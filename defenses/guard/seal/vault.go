package seal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/memtox/memtox/defenses/guard/store"
)

// vault keeps what a ledger writes as pages of the store: the nodes of trees, the
// entries and hashes of the log, and the head. It reads through to the store and
// holds back what is written until save.
type vault struct {
	ctx     context.Context
	store   Store
	written map[string][]byte
	was     []byte // the page of the head as it was read; nil for none
}

// Names of pages.
const (
	headPage  = "forensics/head"
	nodePages = "forensics/node/"
	rowPages  = "forensics/entry/"
	hashPages = "forensics/hash/"
)

// head says which log this is, and how it stands.
type head struct {
	Origin string `json:"origin"`
	// Size is the number of entries, which the checkpoint says too: where its
	// signature was stripped, this still tells which entries there should be.
	Size       int64  `json:"size"`
	Checkpoint []byte `json:"checkpoint"` // signed note
}

// errNoPage is in the error of a page that should be there.
var errNoPage = errors.New("there is no such page")

func openVault(ctx context.Context, st Store) *vault {
	return &vault{ctx: ctx, store: st, written: map[string][]byte{}}
}

// save makes what was written last, all or none, as long as the head is the one
// that was read: every change of the log is one of the head.
func (v *vault) save() error {
	if len(v.written) == 0 {
		return nil
	}
	defer clear(v.written)
	return v.store.PutPages(v.ctx, headPage, v.was, v.written)
}

func (v *vault) get(name string) ([]byte, error) {
	if b, ok := v.written[name]; ok {
		return b, nil
	}
	b, ok, err := v.store.Page(v.ctx, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading page %s: %w", name, err)
	case !ok:
		return nil, fmt.Errorf("page %s: %w", name, errNoPage)
	}
	return b, nil
}

// Page implements [seal.Pages].
func (v *vault) Page(h Hash) ([]byte, error) { return v.get(nodePages + h.String()) }

func (v *vault) putNode(h Hash, page []byte) error {
	v.written[nodePages+h.String()] = page
	return nil
}

// ReadHashes implements [tlog.HashReader].
func (v *vault) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for i, n := range at {
		b, err := v.get(hashPages + strconv.FormatInt(n, 10))
		if err != nil {
			return nil, err
		}
		if len(b) != len(out[i]) {
			return nil, fmt.Errorf("hash %d of the log has %d bytes", n, len(b))
		}
		copy(out[i][:], b)
	}
	return out, nil
}

// WriteHashes implements [seal.Hashes].
func (v *vault) WriteHashes(at int64, hashes []tlog.Hash) error {
	for i, h := range hashes {
		v.written[hashPages+strconv.FormatInt(at+int64(i), 10)] = h[:]
	}
	return nil
}

// head returns the head; before the first sealing the zero one.
func (v *vault) head() (h head, err error) {
	b, err := v.get(headPage)
	switch {
	case errors.Is(err, errNoPage):
		return head{}, nil
	case err != nil:
		return head{}, err
	}
	v.was = b
	if err := json.Unmarshal(b, &h); err != nil {
		return head{}, fmt.Errorf("%w: the head of the log cannot be read: %w", ErrIntegrity, err)
	}
	return h, nil
}

func (v *vault) putHead(h head) error {
	b, err := json.Marshal(h)
	v.written[headPage] = b
	return err
}

// entry returns an entry of the log.
func (v *vault) entry(n int64) (*Entry, error) {
	b, err := v.get(rowPages + strconv.FormatInt(n, 10))
	if err != nil {
		return nil, err
	}
	e, err := ParseEntry(b)
	if err == nil && e.Number != n {
		err = fmt.Errorf("it says that it is number %d", e.Number)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: entry %d of the log: %w", ErrIntegrity, n, err)
	}
	return e, nil
}

func (v *vault) putEntry(e *Entry) error {
	b, err := e.Encode()
	v.written[rowPages+strconv.FormatInt(e.Number, 10)] = b
	return err
}

// find returns the entry of a snapshot in a log of that size, whose entries stand
// in the order of the journal.
func (v *vault) find(size int64, s *store.Snapshot) (*Entry, error) {
	var e *Entry
	var err error
	_, found := sort.Find(int(size), func(at int) int {
		if err == nil {
			e, err = v.entry(int64(at))
		}
		if err != nil {
			return 0
		}
		return cmp.Compare(s.Seq, e.Sequence)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrIntegrity, err)
	case !found || e.ID != s.ID:
		return nil, fmt.Errorf("snapshot %s is %w", s.ID, ErrNotSealed)
	}
	return e, nil
}
