// Package reproduce puts our measurements beside published figures.
//
// The figures, their sources and what is known to be inconsistent in them are
// data (figures.yaml). [Reproduce] fills a table from runs, or from a program
// that the caller hands in where no model is involved, and gives every figure a
// verdict: inside, outside, or not comparable, with the reason.
//
//	r, err := reproduce.Reproduce(ctx, "sandbox-poc", reproduce.Input{Programs: …})
//
// A figure of a language model is comparable only with a run of that model on
// those cases. A run with the reference model can stand beside it, says in every
// row that it is not an LLM, and is never inside or outside.
package reproduce
