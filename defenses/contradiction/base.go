package contradiction

import (
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// base is what is known: a hash index from slots to values. A look-up costs the
// same at any number of facts.
type base struct {
	heads map[uint64]int32 // slot to the first of its facts
	facts []known
	free  int32 // first of the forgotten entries, or -1
}

// known is one value of one slot.
type known struct {
	object     string
	record     string
	slot       uint64
	owner      uint64 // for an entry under an attribute's bare name: the full slot
	next       int32  // next value of the slot, -1 at the end
	class      memory.Class
	negated    bool
	multi      bool
	functional bool
}

// maxChain bounds how many values of one slot are kept. Slots of one value have
// one. Only slots of several values ("likes") and bare names, which say nothing
// once they have two owners, ever reach the bound.
const maxChain = 16

// bareSalt keeps the entries under an attribute's bare name apart.
const bareSalt = 0x9e3779b97f4a7c15

func newBase() *base { return &base{heads: make(map[uint64]int32, 64), free: -1} }

// conflict returns the known fact that a claim contradicts, or nil.
func (b *base) conflict(x *extractor, c *claim) *known {
	if len(b.facts) == 0 {
		return nil
	}
	if head, ok := b.heads[c.slot]; ok {
		k, same := b.compare(x, c, head)
		if same {
			return nil
		}
		if k != nil {
			return k
		}
	}
	if c.bare == 0 {
		return nil
	}
	if c.own {
		// "Norvik's billing contact" where only "the billing contact" is known.
		if head, ok := b.heads[c.bare]; ok {
			if k, same := b.compare(x, c, head); k != nil && !same && k.functional && k.owner == 0 {
				return k
			}
		}
		return nil
	}
	// "The billing contact" where Norvik's is known, and nobody else's.
	if head, ok := b.heads[c.bare^bareSalt]; ok {
		owner := b.facts[head].owner
		for i := head; i >= 0; i = b.facts[i].next {
			if b.facts[i].owner != owner {
				return nil
			}
		}
		if k, same := b.compare(x, c, head); !same {
			return k
		}
	}
	return nil
}

// compare holds a claim against the values of a slot. same is true where one of
// them says the same.
func (b *base) compare(x *extractor, c *claim, head int32) (conflict *known, same bool) {
	var object string
	var v value
	for i := head; i >= 0; i = b.facts[i].next {
		k := &b.facts[i]
		if object == "" {
			object = text.Cut(x.phrase(c.object), maxValue)
			v = parseValue(object)
		}
		w := parseValue(k.object)
		equal := w.equal(&v)
		switch {
		case k.negated != c.negated:
			if equal {
				conflict = k
			}
		case k.negated || k.multi && c.multi || k.multi != c.multi:
			if equal {
				return nil, true
			}
		case equal:
			return nil, true
		case w.excludes(&v, k.functional && c.functional):
			if conflict == nil {
				conflict = k
			}
		}
	}
	return conflict, false
}

// learn adds what a record claims. A value that contradicts what was known takes
// its place, unless a more trusted record says the other thing.
func (b *base) learn(x *extractor, c *claim, r *memory.Record) {
	for range maxChain {
		k := b.conflict(x, c)
		if k == nil {
			break
		}
		if k.class > r.Origin.Class {
			return
		}
		b.drop(k.slot, func(o *known) bool { return o == k })
	}
	object := strings.Clone(text.Cut(x.phrase(c.object), maxValue))
	k := known{object: object, record: r.ID, slot: c.slot, class: r.Origin.Class, negated: c.negated, multi: c.multi,
		functional: c.functional}
	b.put(k)
	if c.bare != 0 && c.own && !c.negated {
		k.slot, k.owner = c.bare^bareSalt, c.slot
		b.put(k)
	}
}

func (b *base) put(k known) {
	head, ok := b.heads[k.slot]
	if !ok {
		head = -1
	}
	n := 0
	for i := head; i >= 0; i = b.facts[i].next {
		if n++; n > maxChain {
			return
		}
		o := &b.facts[i]
		if o.record == k.record && o.object == k.object && o.negated == k.negated && o.owner == k.owner {
			return // told twice: by Seed and by Committed
		}
	}
	k.next = head
	at := b.free
	if at >= 0 {
		b.free = b.facts[at].next
		b.facts[at] = k
	} else {
		at = int32(len(b.facts))
		b.facts = append(b.facts, k)
	}
	b.heads[k.slot] = at
}

// forget drops what a record said of a claim's slots.
func (b *base) forget(c *claim, record string) {
	from := func(k *known) bool { return k.record == record }
	b.drop(c.slot, from)
	if c.bare != 0 {
		b.drop(c.bare^bareSalt, from)
	}
}

// drop removes the values of a slot that match.
func (b *base) drop(slot uint64, match func(*known) bool) {
	prev := int32(-1)
	i, ok := b.heads[slot]
	if !ok {
		return
	}
	for i >= 0 {
		next := b.facts[i].next
		if match(&b.facts[i]) {
			switch {
			case prev >= 0:
				b.facts[prev].next = next
			case next >= 0:
				b.heads[slot] = next
			default:
				delete(b.heads, slot)
			}
			b.facts[i] = known{next: b.free}
			b.free = i
		} else {
			prev = i
		}
		i = next
	}
}
