package memory

import (
	"context"

	"github.com/memtox/memtox/internal/text"
)

// Embed turns texts into vectors of length 1 and of one dimension, in their order. A
// text that has none gets a nil or a zero vector. An error is one of the trial, never
// an opinion about a text. It is safe for concurrent use.
type Embed func(ctx context.Context, texts []string) ([][]float32, error)

// Hashed is the built-in Embed, of hashed words and spelling: no language model's.
func Hashed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, s := range texts {
		out[i] = text.Hashing{}.Embed(s)
	}
	return out, nil
}
