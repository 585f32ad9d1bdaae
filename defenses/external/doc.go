// Package external puts any program or service in the place of a defense:
// exec:COMMAND speaks JSON Lines on standard input and output, http:URL the same
// messages as POST requests. docs/external-guards.md describes the protocol for
// those who write a guard; [Request] and [Answer] are its messages.
//
// [New] makes the defense that asks. The other end, what a program needs that offers a
// memtox defense to others, is the Server of defenses/guard/serve. A defense behind
// the two decides as it does in process.
//
// The guard is not trusted. An answer that is late, malformed, doubled or to a
// question that nobody asked is an error of the trial, and so is the death of the
// guard: never a verdict. A guard that breaks the protocol is not asked again.
//
// It is told of a trial no more than a defense in process sees: the text, where
// it came from, and a number that counts trials up. Nothing names the case.
package external
