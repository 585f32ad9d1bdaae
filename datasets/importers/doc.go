// Package importers turns other people's data into cases.
//
// [Import] reads files of one [Format]. Two kinds of data come out: sets with two
// sessions (MPBench) become full cases, which run wherever a built-in one does;
// labelled texts become cases with a text and no session, for `memtox detect`.
//
// A format is either written in Go, where a released file has traps of its own
// (mpbench), or it is a [Mapping]: a YAML file that says which field of a record
// is what. The ready ones stand in mappings/; anybody's own is given with --map.
//
// Nothing is dropped or repaired in silence. Every object that was read has an
// [Entry] in the [Ledger]: kept, a duplicate, left out by the mapping, or
// rejected, with the id that it had and the id that its case got. Ids are replaced
// by hashes, because published ones tell the label (ADV_…). Where an attack names
// no operative value, one is derived from what it wants stored; the ledger lists
// all of them for review, and a case without any needs a judge.
//
// Foreign data is hostile: sizes and depths are bounded, a broken line is an
// error with file, line and field, and everything that an error quotes is escaped.
//
// # Published files
//
// [Fetch] gets published data sets: the files of a pinned commit, held to their size
// and git blob hash. A download that broke off goes on where it ended,
// and a folder that has the files already serves without a network.
package importers
