// Package memory is the ground floor of memtox: what an agent's long-term
// memory holds, who may change it, and the one chokepoint that every change and
// every recall passes.
//
// The words are those of the whole tool. A [Segment] is one piece of context
// with an [Origin]. Whatever route a write takes (a memory tool, a file tool, a
// flush, a compaction summary, a review, a skill), the session loop hands
// Memory a [Draft]. [Memory] turns the draft into entries, gives each its
// lineage and origin, proposes each to the [Gate], and commits to its [Store]
// what the [Verdict] allows. Recall goes the other way: candidates leave the
// store, the gate decides about each, and only then is the list cut to size.
//
// A Gate is one trial's instance of a defense. The packages under defenses
// implement it; this package knows none of them, and none of them can reach the
// store around Memory.
//
// The [Store] of a trial holds the records as they are. One that keeps what they were
// (defenses/guard/store), and that other processes write to as well, is a [Journal]:
// the gate is told of their changes before its next decision.
//
// A Memory, its View and the store of [NewStore] belong to one goroutine. [Shared]
// is safe for concurrent use; so is a store with a history.
//
// Origins and lineage are set here, from the text that really crossed the
// context window. Neither a model nor the text itself can claim an origin.
package memory
