// Package text is the ground floor that everything which reads text stands
// on: defenses (on their hot path), the reference model, recall and lineage.
//
// What is there, by question:
//
//   - What does it really say? [Fold] undoes disguise (look-alikes, invisible
//     characters, case, spacing); [FoldMap] keeps the way back to the original
//     for redaction; [Scan] reports what was odd; [Decode] unwraps base64,
//     hexadecimal, leetspeak and the like.
//   - Does it say one of these things? [Phrases] finds thousands of fixed
//     phrases in one pass; [Patterns] finds sequences of words with choices
//     and gaps.
//   - What is it made of? [Tokens], [Stem], [Sentences], and [Values]: the URLs,
//     accounts, commands and names that a statement is about.
//   - Does it ask to remember something? [AsksToKeep] for what a user says,
//     [KeepVerb] and [TellsToKeep] for what tells a reader.
//   - How like another text is it? [Hashing] turns a text into a vector, [Shingles]
//     and [Containment] find what one text took over from another.
//
// Every input is taken as hostile: any bytes will do, nothing panics, and time
// and space grow linearly with the input. Results depend on the input alone,
// not on the machine, the number of threads or the order of calls.
//
// # Lexicons
//
// A [Lexicon] finds the entries of a word list in a text: what the defenses keyword
// and provenance have in common.
//
// An entry has an id and two kinds of patterns. Words are token patterns in the
// language of [Patterns]; literals are matched as they stand, punctuation
// included. Both see the folded text, so case, white space, look-alike letters
// and invisible characters make no difference.
//
// Most texts hold nothing of a lexicon. One pass of one automaton over the text
// tells which of the words that a pattern cannot do without are there; only if
// some pattern has all of its own is the text matched in earnest. That pass takes
// about 2 ns a byte whatever the size of the lexicon; matching takes ten times as
// long.
//
// # Word lists
//
// Lists of words and patterns lie in YAML files beside the code that asks for
// them. [Lists] reads one when it is first asked for, so that a command that needs
// none pays nothing.
//
// # Memos
//
// A [Memo] keeps what was worked out about a text, bounded by bytes and shared by all
// trials of a run: the same content meets every arm, so it is analysed once.
//
// A memo never changes a result, only how long it takes.
package text
