// Package attacks makes cases: it compiles the template families of the
// benchmark, and varies cases that exist.
//
// A [Family] is one YAML file under datasets/bench/families/tune or
// datasets/bench/families/report; datasets/bench/AUTHORING.md describes it for
// those who write one. [Load] reads a folder of them and [Compile] turns them
// into cases: a context-free grammar gives the wording, generators give the
// values ([Kinds]), and what comes out too alike is drawn again. The same files
// and seed give the same cases to the byte.
//
// Attack and benign cases take their values from the same generators. The space
// of names is cut in two by hash, one part for each split, so that no name of
// one split can turn up in the other.
//
// [Variations] are functions from case to case: the same attack by another way,
// such as the agent's own summary or a tool that echoes it.
package attacks
