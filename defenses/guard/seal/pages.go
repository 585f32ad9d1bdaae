package seal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Pages keeps the nodes of trees outside memory. A page is named by the hash of
// its node and never changes, so trees of many snapshots share pages.
type Pages interface {
	// Page returns a page. A missing one is an error.
	Page(Hash) ([]byte, error)
}

// ErrDamaged is in the error of a page that is not what its name says.
var ErrDamaged = errors.New("the page is damaged")

// bucketSize is how many records a subtree holds at most that is one page. Hashes do
// not depend on it. 32 records make a page of about 1.5 KB, and reading it costs about
// 80 hashes.
const bucketSize = 32

// Kinds of pages.
const (
	bucketPage = 0 // for each leaf in the order of keys: length of the id, id, value
	branchPage = 1 // for each side: number of records, hash
)

// Open returns the tree of a root whose pages [Tree.Save] wrote. Pages are read
// as they are needed, each is checked against its name, and none is kept.
func Open(root Hash, size uint64, pages Pages) Tree {
	if size == 0 {
		return Tree{pages: pages}
	}
	return Tree{root: &node{hash: root, count: size, stub: true, stored: true}, pages: pages}
}

// Save hands every page that Open did not find or an earlier Save did not write
// to put, children first, and returns the tree that reads from pages what it
// needs.
func (t Tree) Save(pages Pages, put func(Hash, []byte) error) (Tree, error) {
	if err := t.root.save(put); err != nil {
		return t, fmt.Errorf("saving a tree: %w", err)
	}
	return Open(t.Root(), t.Len(), pages), nil
}

func (n *node) save(put func(Hash, []byte) error) error {
	switch {
	case n == nil || n.stored:
		return nil
	case n.count <= bucketSize:
		return put(n.hash, n.appendLeaves([]byte{bucketPage}))
	}
	page := []byte{branchPage}
	for _, child := range [...]*node{n.left, n.right} {
		if err := child.save(put); err != nil {
			return err
		}
		s := child.sum()
		page = binary.AppendUvarint(page, s.Count)
		page = append(page, s.Hash[:]...)
	}
	return put(n.hash, page)
}

// appendLeaves appends the leaves of a subtree that is wholly in memory, as one that
// fits a page always is.
func (n *node) appendLeaves(b []byte) []byte {
	switch {
	case n == nil:
		return b
	case n.leaf == nil:
		return n.right.appendLeaves(n.left.appendLeaves(b))
	}
	b = binary.AppendUvarint(b, uint64(len(n.leaf.id)))
	b = append(b, n.leaf.id...)
	return append(b, n.leaf.value[:]...)
}

// open loads a stub that stands at a place. Any other node is returned as it is.
func (t Tree) open(n *node, at place) (*node, error) {
	if n == nil || !n.stub {
		return n, nil
	}
	page, err := t.pages.Page(n.hash)
	if err != nil {
		return nil, fmt.Errorf("reading page %s: %w", n.hash, err)
	}
	got, err := parsePage(page, at)
	if err != nil {
		return nil, fmt.Errorf("reading page %s: %w: %w", n.hash, ErrDamaged, err)
	}
	if got.hash != n.hash || got.count != n.count {
		return nil, fmt.Errorf("reading page %s: %w: it holds %d records with hash %s, not %d", n.hash, ErrDamaged, got.count,
			got.hash, n.count)
	}
	got.stored = true
	return got, nil
}

func parsePage(b []byte, at place) (*node, error) {
	if len(b) == 0 {
		return nil, errors.New("it is empty")
	}
	kind, b := b[0], b[1:]
	switch kind {
	case branchPage:
		if at.depth >= maxDepth {
			return nil, errors.New("a branch lies deeper than a key is long")
		}
		var sides [2]*node
		for i := range sides {
			count, n := binary.Uvarint(b)
			if n <= 0 || len(b)-n < len(Hash{}) || count > 1<<62 {
				return nil, errors.New("a branch is cut short")
			}
			hash := Hash(b[n : n+len(Hash{})])
			b = b[n+len(Hash{}):]
			if count > 0 {
				sides[i] = &node{hash: hash, count: count, stub: true, stored: true}
			}
		}
		if len(b) > 0 {
			return nil, fmt.Errorf("%d bytes stand behind a branch", len(b))
		}
		b := branch(sides[0], sides[1])
		if b.count <= bucketSize {
			return nil, fmt.Errorf("a branch has %d records", b.count)
		}
		return b, nil
	case bucketPage:
		var leaves []leaf
		for len(b) > 0 {
			size, n := binary.Uvarint(b)
			if n <= 0 || uint64(len(b)-n) < size || uint64(len(b)-n)-size < uint64(len(Hash{})) {
				return nil, errors.New("a record is cut short")
			}
			id := string(b[n : n+int(size)])
			b = b[n+int(size):]
			l := leaf{key: Key(id), value: Hash(b[:len(Hash{})]), id: id}
			b = b[len(Hash{}):]
			// Only so can no page stand in two places, which would let a small
			// file say an endless tree.
			if !at.holds(&l.key) {
				return nil, errors.New("a record stands where its id does not belong")
			}
			if len(leaves) > 0 && byKey(leaves[len(leaves)-1], l) >= 0 {
				return nil, errors.New("records are out of order")
			}
			leaves = append(leaves, l)
		}
		if len(leaves) == 0 || len(leaves) > bucketSize {
			return nil, fmt.Errorf("%d records in a page", len(leaves))
		}
		return Tree{}.set(nil, at, leaves)
	}
	return nil, fmt.Errorf("unknown kind %d", kind)
}
