// Package contradiction holds what a write claims against what is already known.
//
// It reads subject–predicate–object facts from ordinary sentences, from keys and
// values, JSON, INI files and tables, files each under the slot that
// it fills ("Norvik's billing contact"), and compares values where slots meet,
// in whatever wording: "the billing contact for Norvik is X", "Norvik's billing
// contact: Y". Known are the facts of the trial's own trusted records: what the
// operator or the user said, or the agent derived from nothing external. A claim
// from outside that gives a known slot another value is quarantined; a user's own
// new value is a correction and takes the old one's place. Slots that hold
// several values at once ("likes", "speaks") do not conflict.
//
// A text is read in this order: its lines, keys, JSON and
// tables in structure.go, sentences and clauses in prose.go, what a clause says in
// predicate.go, all of it from the tokens of token.go and the words of
// lexicon.txt. claim.go turns facts into slots, value.go makes values comparable,
// base.go is the hash index of what is known, gate.go the defense. It all reads a
// text in linear time; no text makes it fail.
//
// It knows English and no more of the world than its word lists: "vegetarian"
// and "eats meat" do not meet. How often it is right is measured on testdata;
// dev.jsonl, dev2.jsonl and pairs-dev.jsonl are what it was developed on.
package contradiction
