package seal

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
)

// bucketSize is how many records a subtree holds at most before it is cut in
// two nodes in memory and in pages. Hashes do not depend on it. 32 records make
// a page of about 1.5 KB and an update of about 80 hashes.
const bucketSize = 32

// maxDepth is the number of bits of a key.
const maxDepth = 8 * len(Hash{})

// Tree is the state of a memory: record ids, each with the hash of what it
// commits to. The zero Tree is empty. A Tree never changes and can be shared
// between goroutines.
type Tree struct {
	root  *node // nil: empty
	pages Pages // nil: all nodes are in memory
}

// node is a subtree of at least one record: a branch, a bucket, or, where it has
// not been loaded, a stub of either.
type node struct {
	hash        Hash
	count       uint64
	left, right *node  // branch; nil is empty
	leaves      []leaf // bucket, sorted by key
	stub        bool   // only hash and count are known
	stored      bool   // its page exists
}

type leaf struct {
	key, value Hash
	id         string
}

// Item is a record to put into a tree.
type Item struct {
	ID string
	// Content is the canonical encoding of the whole record.
	Content []byte
	// Value stands for Content where it is set: the hash that [Value] gives.
	Value Hash
}

func (i Item) leaf() leaf {
	l := leaf{key: Key(i.ID), value: i.Value, id: i.ID}
	if l.value.IsZero() {
		l.value = Value(i.Content)
	}
	return l
}

// Build makes a tree of many records at once. An id that stands there twice is
// an error.
func Build(items ...Item) (Tree, error) {
	leaves := make([]leaf, len(items))
	for i := range items {
		leaves[i] = items[i].leaf()
	}
	slices.SortFunc(leaves, byKey)
	for i := 1; i < len(leaves); i++ {
		if leaves[i].key == leaves[i-1].key {
			return Tree{}, fmt.Errorf("building a tree: the id %q stands there twice", leaves[i].id)
		}
	}
	return Tree{root: grow(leaves, 0)}, nil
}

func byKey(a, b leaf) int { return bytes.Compare(a.key[:], b.key[:]) }

// grow makes the node of sorted leaves that share the first depth bits.
func grow(leaves []leaf, depth int) *node {
	switch {
	case len(leaves) == 0:
		return nil
	case len(leaves) <= bucketSize:
		// A bucket owns its leaves: a shared array would keep all others alive.
		return &node{hash: hashLeaves(leaves, depth), count: uint64(len(leaves)), leaves: slices.Clone(leaves)}
	}
	i := cut(leaves, depth)
	return branch(grow(leaves[:i], depth+1), grow(leaves[i:], depth+1))
}

// cut is where the leaves whose bit at depth is 1 begin.
func cut(leaves []leaf, depth int) int {
	return sort.Search(len(leaves), func(i int) bool { return bit(&leaves[i].key, depth) == 1 })
}

func hashLeaves(leaves []leaf, depth int) Hash {
	switch len(leaves) {
	case 0:
		return Hash{}
	case 1:
		return leafHash(leaves[0].key, leaves[0].value)
	}
	i := cut(leaves, depth)
	return nodeHash(uint64(i), hashLeaves(leaves[:i], depth+1), uint64(len(leaves)-i), hashLeaves(leaves[i:], depth+1))
}

func branch(left, right *node) *node {
	l, r := left.sum(), right.sum()
	return &node{hash: nodeHash(l.Count, l.Hash, r.Count, r.Hash), count: l.Count + r.Count, left: left, right: right}
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

// Set returns the tree with one record added or replaced. Only a tree that reads
// pages can fail.
func (t Tree) Set(item Item) (Tree, error) {
	root, err := t.set(t.root, place{}, item.leaf())
	if err != nil {
		return t, fmt.Errorf("setting record %q: %w", item.ID, err)
	}
	return Tree{root, t.pages}, nil
}

func (t Tree) set(n *node, at place, l leaf) (*node, error) {
	if n == nil {
		return grow([]leaf{l}, at.depth), nil
	}
	n, err := t.open(n, at)
	if err != nil {
		return nil, err
	}
	if n.leaves != nil {
		i, found := slices.BinarySearchFunc(n.leaves, l, byKey)
		if found && n.leaves[i].value == l.value {
			return n, nil
		}
		leaves := make([]leaf, 0, len(n.leaves)+1)
		leaves = append(append(leaves, n.leaves[:i]...), l)
		if found {
			i++
		}
		return grow(append(leaves, n.leaves[i:]...), at.depth), nil
	}
	left, right := n.left, n.right
	if bit(&l.key, at.depth) == 0 {
		left, err = t.set(left, at.down(0), l)
	} else {
		right, err = t.set(right, at.down(1), l)
	}
	if err != nil || left.sum() == n.left.sum() && right.sum() == n.right.sum() {
		return n, err
	}
	return branch(left, right), nil
}

func (t Tree) each(n *node, at place, yield func(*leaf) error) error {
	if n == nil {
		return nil
	}
	n, err := t.open(n, at)
	if err != nil {
		return err
	}
	for i := range n.leaves {
		if err := yield(&n.leaves[i]); err != nil {
			return err
		}
	}
	if n.leaves != nil {
		return nil
	}
	if err := t.each(n.left, at.down(0), yield); err != nil {
		return err
	}
	return t.each(n.right, at.down(1), yield)
}

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

// Change is one record in which two trees differ. A zero hash says that the
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
	switch {
	case n == nil:
		return b.each(m, at, func(l *leaf) error { return yield(TreeChange{ID: l.id, New: l.value}) })
	case m == nil:
		return a.each(n, at, func(l *leaf) error { return yield(TreeChange{ID: l.id, Old: l.value}) })
	}
	n, err := a.open(n, at)
	if err != nil {
		return err
	}
	if m, err = b.open(m, at); err != nil {
		return err
	}
	if n.leaves != nil && m.leaves != nil {
		return diffLeaves(n.leaves, m.leaves, yield)
	}
	nl, nr := n.children(at.depth)
	ml, mr := m.children(at.depth)
	if err := diff(a, b, nl, ml, at.down(0), yield); err != nil {
		return err
	}
	return diff(a, b, nr, mr, at.down(1), yield)
}

// children are the halves of a node; a bucket is cut in two.
func (n *node) children(depth int) (left, right *node) {
	if n.leaves == nil {
		return n.left, n.right
	}
	i := cut(n.leaves, depth)
	return grow(n.leaves[:i], depth+1), grow(n.leaves[i:], depth+1)
}

func diffLeaves(old, new []leaf, yield func(TreeChange) error) error {
	for len(old) > 0 || len(new) > 0 {
		var c TreeChange
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(new) == 0:
			order = -1
		default:
			order = byKey(old[0], new[0])
		}
		if order <= 0 {
			c.ID, c.Old, old = old[0].id, old[0].value, old[1:]
		}
		if order >= 0 {
			c.ID, c.New, new = new[0].id, new[0].value, new[1:]
		}
		if c.Old == c.New {
			continue
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}
