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
//   - How like another text is it? [Hashing] turns a text into a vector, [Shingles]
//     and [Containment] find what one text took over from another.
//
// Every input is taken as hostile: any bytes will do, nothing panics, and time
// and space grow linearly with the input. Results depend on the input alone,
// not on the machine, the number of threads or the order of calls.
package text
