// Package attacks makes cases: it compiles the families of the benchmark, and
// varies cases that exist.
//
// A [Family] is one YAML file, and a data set by itself ([Open]);
// datasets/AUTHORING.md describes it for
// those who write one. [Load] reads a folder of them and [Compile] turns them
// into cases, whose values generators make up. The same files and seed give the
// same cases to the byte.
//
// Attack and benign cases take their values from the same generators. The space
// of names is cut in two by hash, one part for each split, so that no name of
// one split can turn up in the other.
//
// [Mutations] are functions from case to case: the same attack in another guise
// or by another way, such as disguised letters or a tool that echoes it. A
// [Sequence] applies several, one after the other; what it makes is a variant,
// which names its case and its sequence. docs/attacks.md describes them all.
//
// # The adaptive attacker
//
// An attacker who does not give up: a black-box search for variants of an attack
// that get past one defense.
//
// What it is given of the target is a [Try]: hand over a case, and learn what an
// attacker could see, that is whether the poison was stored, whether it acted
// later, and whether something was visibly stopped. It sees no code, no score and
// no reason of a defense. One call of Try is one query, and queries are what a
// budget counts.
//
// The search has two parts, so that what is learned and what is reported are
// apart:
//
//   - [Learn] looks for sequences of mutations on cases of the split tune. It
//     builds a portfolio: the sequence that lands most of the cases first, then
//     the one that lands most of what is left, and so on. Each member is bred by an
//     evolutionary search over sequences.
//   - [Search] attacks one case of the split report: the attack as it is, then the
//     portfolio in its order (best of N), then every mutation that is left by
//     itself, then an evolutionary search over sequences with what it saw of this
//     case alone, until the attack lands or the budget is spent.
//
// Both depend on the cases, the options and the answers of Try alone; neither on
// time nor on the number of workers.
package attacks
