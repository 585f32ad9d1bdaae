// Package ollama drives models of an Ollama server by its own protocol, with
// tools, options and embeddings.
package ollama
