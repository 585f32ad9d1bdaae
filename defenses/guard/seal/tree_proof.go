package seal

import (
	"errors"
	"fmt"
)

// Sibling is the subtree beside the path to a record: how many records it holds
// and its hash. An empty subtree is the zero Sibling.
type Sibling struct {
	Count uint64 `json:"count"`
	Hash  Hash   `json:"hash"`
}

// Proof shows that a record is in the tree of some root, or that it is not.
type Proof struct {
	ID      string `json:"id"`
	Present bool   `json:"present"`
	// Value is what the record commits to; zero where it is absent.
	Value Hash `json:"value,omitzero"`
	// Index is the number of records before this one in the order of keys, or
	// before where it would be.
	Index uint64 `json:"index"`
	// Size is the number of records in the tree.
	Size uint64 `json:"size"`
	// Other is the leaf that stands where an absent record would; nil where
	// nothing stands there.
	Other *Leaf `json:"other,omitempty"`
	// Siblings lead from the root to the record.
	Siblings []Sibling `json:"siblings"`
}

// Leaf is another record's leaf, without its id.
type Leaf struct {
	Key   Hash `json:"key"`
	Value Hash `json:"value"`
}

// ErrProof is in the error of every proof that does not show what it claims.
var ErrProof = errors.New("the proof does not hold")

// Prove shows whether and with what content a record is in the tree. Only a tree
// that reads pages can fail.
func (t Tree) Prove(id string) (Proof, error) {
	key := Key(id)
	p := Proof{ID: id, Size: t.Len(), Siblings: make([]Sibling, 0, 32)}
	n := t.root
	for at := (place{}); n != nil; at = at.down(bit(&key, at.depth)) {
		var err error
		if n, err = t.open(n, at); err != nil {
			return Proof{}, fmt.Errorf("proving record %q: %w", id, err)
		}
		if n.leaf != nil {
			break
		}
		mine, other := n.left, n.right
		if bit(&key, at.depth) == 1 {
			mine, other = other, mine
			p.Index += other.sum().Count
		}
		p.Siblings = append(p.Siblings, other.sum())
		n = mine
	}
	switch {
	case n == nil:
	case n.leaf.key == key:
		p.Present, p.Value = true, n.leaf.value
	default:
		p.Other = &Leaf{Key: n.leaf.key, Value: n.leaf.value}
		if byKey(*n.leaf, leaf{key: key}) < 0 {
			p.Index++
		}
	}
	return p, nil
}

// Verify checks the proof against a root from a source that the verifier trusts.
// It accepts exactly the proof that the tree of that root gives: no sibling more
// or less, no other index or size.
func (p *Proof) Verify(root Hash) error {
	if err := p.verify(root); err != nil {
		return fmt.Errorf("%w: record %q: %w", ErrProof, p.ID, err)
	}
	return nil
}

func (p *Proof) verify(root Hash) error {
	key := Key(p.ID)
	depth := len(p.Siblings)
	if depth > maxDepth {
		return fmt.Errorf("%d siblings, and a key has %d bits", depth, maxDepth)
	}
	var at Sibling
	var before uint64
	least := uint64(1) // in the last sibling, else the leaf would stand higher
	switch {
	case p.Present:
		if p.Other != nil {
			return errors.New("it names another record in the place of one that is there")
		}
		at = Sibling{1, leafHash(key, p.Value)}
	case !p.Value.IsZero():
		return errors.New("it gives the content of a record that is not there")
	case p.Other != nil:
		if p.Other.Key == key {
			return errors.New("the record in its place is the record itself")
		}
		for i := range depth {
			if bit(&key, i) != bit(&p.Other.Key, i) {
				return fmt.Errorf("the record in its place stands elsewhere from bit %d on", i)
			}
		}
		at = Sibling{1, leafHash(p.Other.Key, p.Other.Value)}
		if byKey(leaf{key: p.Other.Key}, leaf{key: key}) < 0 {
			before++
		}
	default:
		least = 2
	}
	if depth > 0 && p.Siblings[depth-1].Count < least {
		return errors.New("it goes deeper than the tree")
	}
	for i := depth - 1; i >= 0; i-- {
		s := p.Siblings[i]
		if (s.Count == 0) != s.Hash.IsZero() {
			return fmt.Errorf("sibling %d: no records have the zero hash, and only they", i)
		}
		if s.Count > 1<<62 || at.Count > 1<<62 {
			return fmt.Errorf("sibling %d: more records than there can be", i)
		}
		if bit(&key, i) == 0 {
			at = Sibling{at.Count + s.Count, nodeHash(at.Count, at.Hash, s.Count, s.Hash)}
		} else {
			before += s.Count
			at = Sibling{at.Count + s.Count, nodeHash(s.Count, s.Hash, at.Count, at.Hash)}
		}
	}
	switch {
	case at.Hash != root:
		return fmt.Errorf("it leads to root %s, not to %s", at.Hash, root)
	case at.Count != p.Size:
		return fmt.Errorf("the tree has %d records, and the proof says %d", at.Count, p.Size)
	case before != p.Index:
		return fmt.Errorf("the index is %d, and the proof says %d", before, p.Index)
	}
	return nil
}
