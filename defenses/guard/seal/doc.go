// Package seal answers, after the fact, what happened to a memory: when a
// record appeared and what it was before, what it derives from and what derives
// from it, what else came from the same source, and whether the store is still
// what it was when its snapshots were sealed.
//
//   - [Replay] reads the past: appearances, cohorts, search, timelines.
//   - [Replay.TraceRecord] follows lineage both ways.
//   - [Ledger] seals snapshots: a root over every record, chained in a signed,
//     append-only log; it proves what a snapshot held, and [Ledger.Verify] names
//     what has been changed behind its back.
//   - [Respond] is the response to an incident in four steps: pinpoint,
//     quarantine, isolate, re-derive.
//
// Everything works on a [store.History]; nothing here knows of a defense. Results
// are values with JSON names. Texts in them come from records and are hostile:
// whoever prints them makes them inert.
//
// A present record is one that is not retired: staged, held and quarantined ones
// are there, though no session may see them.
//
// # The tree and the log
//
// A [Tree] is the state of a memory: record ids and what each commits to. It is
// a value; [Tree.Set] returns another tree that shares all but
// O(log n) nodes with the first, so taking a snapshot is keeping a Tree.
// [Tree.Prove] gives the [Proof] that a record is in it, with what content, or
// that it is not; [Proof.Verify] checks one against a root that the verifier
// trusts, and rejects everything but the one proof that the tree gives.
//
//	t, _ := seal.Tree{}.Set(map[string]seal.Hash{"r1": digest})
//	p, _ := t.Prove("r1")
//	err := p.Verify(t.Root())
//
// A [Log] chains snapshots: it is append-only, signed by a [Checkpoint], and
// proves that an earlier checkpoint is a prefix of a later one, so that no
// snapshot can be taken out unseen by anybody who kept a checkpoint.
//
// How the tree is made:
//
// A binary trie over SHA-256 of the record id, in which a subtree of one record
// is that record's leaf and a subtree of none is empty. Every node commits to the
// number of records on either side:
//
//	key(id)        = SHA-256(0x03 ‖ id)
//	leaf           = SHA-256(0x00 ‖ key ‖ value)
//	node           = SHA-256(0x01 ‖ n(left) ‖ left ‖ n(right) ‖ right)   n: 8 bytes, big-endian
//	empty          = 32 zero bytes, n = 0
//
// The root hangs on the set of records alone, not on the order of writes. A
// record's place is a function of its id, so the place where it would have to be
// proves its absence. A tree sorted by id would prove neither in O(log n) and
// stay incremental without rebalancing, and a treap with hashed priorities can
// be made as deep as an attacker who chooses ids likes; here depth d costs the
// attacker about 2^d hashes and ends at 256.
//
// The value of a record is the digest of its version ([store.Version.Sum]), which covers
// origin, lineage, principal and all other metadata, never its text alone: a swap of
// provenance changes the root.
//
// [Memgar] is memgar's tree, hash for hash, weaknesses and all, for comparison
// with snapshots that it took. It is not for new ones.
package seal
