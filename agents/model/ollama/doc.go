// Package ollama drives models of an Ollama server by its own protocol, with
// tools, options, keep-alive and embeddings. It uses the types and the client of
// [github.com/ollama/ollama/api] over [remote.Client].
package ollama
