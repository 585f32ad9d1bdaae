package model

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/memtox/memtox/internal/remote"
)

// Embedder is a model whose server turns texts into vectors; "" names the model itself.
type Embedder interface {
	Embed(ctx context.Context, name string, texts []string) ([][]float32, error)
}

// Embeddings asks an [Embedder] for each list of texts once. It is safe for concurrent
// use.
type Embeddings struct {
	of Embedder

	mu    sync.Mutex
	lists map[[32]byte]*embedded
	held  int // numbers in lists
	dim   int // of every vector; 0 before the first
}

// embedded is a list whose vectors are known or being asked for: whoever asks first
// holds it, and the others wait.
type embedded struct {
	sync.Mutex
	vectors [][]float32
}

// maxHeld is how many numbers are kept, 128 MB of them; beyond it vectors are asked
// for anew.
const maxHeld = 32 << 20

// NewEmbeddings returns one that has asked nothing yet.
func NewEmbeddings(of Embedder) *Embeddings {
	return &Embeddings{of: of, lists: map[[32]byte]*embedded{}}
}

// Vectors returns the vectors of texts, scaled to length 1; nil for a blank text, which
// servers refuse. The list is one request. An error means that there is no answer that
// can be used; it is not kept.
func (e *Embeddings) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	var asked []string
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			asked = append(asked, t)
		}
	}
	out := make([][]float32, len(texts))
	if len(asked) == 0 {
		return out, nil
	}
	vectors, err := e.list(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, t := range texts {
		if strings.TrimSpace(t) != "" {
			out[i], vectors = vectors[0], vectors[1:]
		}
	}
	return out, nil
}

func (e *Embeddings) list(ctx context.Context, texts []string) ([][]float32, error) {
	h := sha256.New()
	for _, t := range texts {
		h.Write(binary.AppendUvarint(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
	key := [32]byte(h.Sum(nil))
	e.mu.Lock()
	l := e.lists[key]
	if l == nil {
		if e.held > maxHeld {
			clear(e.lists)
			e.held = 0
		}
		l = new(embedded)
		e.lists[key] = l
	}
	e.mu.Unlock()
	l.Lock()
	defer l.Unlock()
	// Whoever asked before may have failed: then this one asks in its own name.
	if l.vectors != nil || ctx.Err() != nil {
		return l.vectors, context.Cause(ctx)
	}
	// Which trial asks first is chance: on a cassette all belong to one of their own.
	vectors, err := e.of.Embed(remote.WithTrial(ctx, "embeddings"), "", texts)
	if err == nil {
		err = e.check(vectors, len(texts))
	}
	if err != nil {
		return nil, err
	}
	l.vectors = vectors
	return vectors, nil
}

// check scales vectors to length 1, and refuses those that cannot be compared.
func (e *Embeddings) check(vectors [][]float32, texts int) error {
	if len(vectors) != texts {
		return remote.Spoilt(remote.Fatal, "the answer holds %d vectors of %d texts", len(vectors), texts)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range vectors {
		if e.dim == 0 {
			e.dim = len(v)
		}
		var square float64
		for _, x := range v {
			square += float64(x) * float64(x)
		}
		switch length := math.Sqrt(square); {
		case len(v) != e.dim:
			return remote.Spoilt(remote.Fatal, "a vector has %d numbers, the first one had %d", len(v), e.dim)
		case !(length > 0) || math.IsInf(length, 0):
			return &remote.Error{Kind: remote.Fatal, Err: fmt.Errorf("a vector has the length %v: it has no direction", length),
				Hint: "name a model that is made for embeddings"}
		default:
			for i, x := range v {
				v[i] = float32(float64(x) / length)
			}
		}
		e.held += len(v)
	}
	return nil
}
