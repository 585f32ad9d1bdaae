// Package reference is the built-in model: a deterministic function of the
// visible request that obeys, remembers, recalls and acts by the form of
// sentences. It is not a language model. docs/reference-model.md in the
// repository is its specification.
//
// It exists so that the whole harness runs with no key, no network and no cost,
// so that defenses can be told apart from a model's mood, and so that the
// outcome of a small case can be worked out by hand. It is never tuned towards
// published numbers.
package reference
