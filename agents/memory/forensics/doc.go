// Package forensics answers, after the fact, what happened to a memory: when a
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
// Everything works on a [memory.Store]; nothing here knows of a defense. Results
// are values with JSON names. Texts in them come from records and are hostile:
// whoever prints them makes them inert.
//
// A present record is one that is not retired: staged, held and quarantined ones
// are there, though no session may see them.
package forensics
