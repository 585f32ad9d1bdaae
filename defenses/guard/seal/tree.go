package seal

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
)

// maxDepth is the number of bits of a key.
const maxDepth = 8 * len(Hash{})

// Tree is the state of a memory: record ids, each with the hash of what it
// commits to. The zero Tree is empty. A Tree never changes and can be shared
// between goroutines.
type Tree struct {
	root  *node // nil: empty
	pages Pages // nil: all nodes are in memory
}

// node is a subtree of at least one record: a branch, a leaf, or, where it has not
// been loaded, a stub of either.
type node struct {
	hash        Hash
	count       uint64
	left, right *node // branch; nil is empty
	leaf        *leaf // of one record
	stub        bool  // only hash and count are known
	stored      bool  // its page exists
}

type leaf struct {
	key, value Hash
	id         string
}

func byKey(a, b leaf) int { return bytes.Compare(a.key[:], b.key[:]) }

// Set returns the tree with records added or replaced, by their ids. Only a tree that
// reads pages can fail.
func (t Tree) Set(records map[string]Hash) (Tree, error) {
	leaves := make([]leaf, 0, len(records))
	for id, value := range records {
		leaves = append(leaves, leaf{key: Key(id), value: value, id: id})
	}
	slices.SortFunc(leaves, byKey)
	root, err := t.set(t.root, place{}, leaves)
	if err != nil {
		return t, fmt.Errorf("putting %d records into a tree: %w", len(records), err)
	}
	return Tree{root, t.pages}, nil
}

// set puts sorted leaves that belong there into the subtree at a place.
func (t Tree) set(n *node, at place, leaves []leaf) (*node, error) {
	if len(leaves) == 0 {
		return n, nil
	}
	n, err := t.open(n, at)
	if err != nil {
		return nil, err
	}
	if l := &leaves[0]; len(leaves) == 1 && (n == nil || n.leaf != nil && n.leaf.key == l.key) {
		return &node{hash: leafHash(l.key, l.value), count: 1, leaf: l}, nil
	}
	i := sort.Search(len(leaves), func(i int) bool { return bit(&leaves[i].key, at.depth) == 1 })
	left, right := n.children(at.depth)
	if left, err = t.set(left, at.down(0), leaves[:i]); err != nil {
		return nil, err
	}
	if right, err = t.set(right, at.down(1), leaves[i:]); err != nil {
		return nil, err
	}
	return branch(left, right), nil
}

func branch(left, right *node) *node {
	l, r := left.sum(), right.sum()
	return &node{hash: nodeHash(l.Count, l.Hash, r.Count, r.Hash), count: l.Count + r.Count, left: left, right: right}
}

// children are the halves of a node that is not a stub. A leaf is one of its own.
func (n *node) children(depth int) (left, right *node) {
	switch {
	case n == nil:
		return nil, nil
	case n.leaf == nil:
		return n.left, n.right
	case bit(&n.leaf.key, depth) == 0:
		return n, nil
	}
	return nil, n
}

// sum is what a parent commits to.
func (n *node) sum() Sibling {
	if n == nil {
		return Sibling{}
	}
	return Sibling{Count: n.count, Hash: n.hash}
}

// Root is the hash that commits to every record; all zeros for no record.
func (t Tree) Root() Hash { return t.root.sum().Hash }

// Len is the number of records.
func (t Tree) Len() uint64 { return t.root.sum().Count }

// place is where a node stands: the bits that its keys begin with.
type place struct {
	bits  Hash
	depth int
}

func (p place) down(side byte) place {
	p.bits[p.depth/8] |= side << (7 - p.depth%8)
	p.depth++
	return p
}

// holds reports whether a key begins with the place's bits.
func (p *place) holds(key *Hash) bool {
	whole := p.depth / 8
	if !bytes.Equal(key[:whole], p.bits[:whole]) {
		return false
	}
	return p.depth%8 == 0 || (key[whole]^p.bits[whole])>>(8-p.depth%8) == 0
}

// TreeChange is one record in which two trees differ. A zero hash says that the
// record is not there.
type TreeChange struct {
	ID       string
	Old, New Hash
}

// Diff visits the records in which two trees differ, in the order of keys. It
// costs O(d log n) for d of them: subtrees with the same hash are not visited.
func Diff(from, to Tree, yield func(TreeChange) error) error {
	return diff(from, to, from.root, to.root, place{}, yield)
}

func diff(a, b Tree, n, m *node, at place, yield func(TreeChange) error) error {
	if n.sum() == m.sum() {
		return nil
	}
	n, err := a.open(n, at)
	if err != nil {
		return err
	}
	if m, err = b.open(m, at); err != nil {
		return err
	}
	if n.single() && m.single() && (n == nil || m == nil || n.leaf.key == m.leaf.key) {
		var c TreeChange
		if n != nil {
			c.ID, c.Old = n.leaf.id, n.leaf.value
		}
		if m != nil {
			c.ID, c.New = m.leaf.id, m.leaf.value
		}
		return yield(c)
	}
	nl, nr := n.children(at.depth)
	ml, mr := m.children(at.depth)
	if err := diff(a, b, nl, ml, at.down(0), yield); err != nil {
		return err
	}
	return diff(a, b, nr, mr, at.down(1), yield)
}

// single reports whether a node holds no more than one record.
func (n *node) single() bool { return n == nil || n.leaf != nil }
