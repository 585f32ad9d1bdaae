// Package datasets holds what memtox measures on: the [Case] and its
// vocabulary, sets of cases and how they are read, written and checked.
//
// [Open] takes the name of a built-in set ([Builtins]) or a file:
//
//	set, err := datasets.Open(ctx, "memtox-smoke")
//	set, err := datasets.Open(ctx, "mine.jsonl")
//
// Reading is strict: an unknown field, a wrong type, a missing field or a
// broken line is an [Error] that names file, line, field and remedy. A set has
// one SHA-256, taken over the canonical JSON lines that [WriteJSONL] writes, so
// it depends on the cases and their order and not on how a file was formatted.
//
// [Validate] proves the static promises of a set: vocabulary, canaries, twins,
// splits, near-duplicates, and that no shortcut tells attacks from benign cases.
//
// [Background] and [Pad] supply the ordinary text around a case. The text of a
// case is hostile: nothing here interprets it, and everything that goes into an
// error or a listing is quoted.
//
// # Templates
//
// Short text templates fill a padded segment, and make up values.
//
//	The [east|north] stair was [swept|looked at] {when}.
//
// [a|b] takes one of its alternatives, which may nest and be empty; brackets
// without a bar are ordinary text, so "[INFO] ready" needs no care. {name} asks
// the caller for a text. Everything is decided by a [Rand], so the same seed gives
// the same text on every machine.
package datasets
