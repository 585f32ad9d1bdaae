// Package contradiction holds what a write claims against what is already known.
//
// It reads values out of ordinary sentences, keys, JSON and tables, each with its
// topic: the words around it. Two values compete where they are of one kind and
// their topics meet, in whatever wording: "sick notes for Kita Hummel are sent to X",
// "Kita Hummel reads sick notes and letters at Y". Known are the facts of the trial's
// own trusted records: what the operator or the user said, or the agent derived from
// nothing external. A claim from outside that gives another value is quarantined, also
// where it is right and the user's word is old: the defense cannot tell the two apart.
// A user's own new value is a correction and takes the old one's place.
//
// read.go takes a text apart, fact.go reads its sentences with the words of
// words.yaml, value.go makes values comparable, known.go is the index of what is
// known, gate.go the defense. It takes time linear in the text; no text makes it fail.
//
// It knows English, and of grammar only where a sentence's predicate begins. How often
// it is right is measured on testdata.
package contradiction
