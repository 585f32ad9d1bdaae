package harness

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/settings"
)

// Hashed is the value of the setting embeddings that asks no server.
const Hashed = "hashed"

// embedder makes what the setting embeddings names. It has a cassette of its own.
func (x *Experiment) embedder(ctx context.Context, cat Catalog) error {
	c := x.Config
	x.embeddings = Hashed + notLLM
	if !c.embeds() {
		return nil
	}
	if kind, _, _ := strings.Cut(c.Embeddings, ":"); kind != "openai" && kind != "ollama" {
		return settings.Unknown("--embeddings", "embedder", c.Embeddings, []string{Hashed, "openai:NAME", "ollama:NAME"})
	}
	m, err := secondModel(ctx, c, cat, c.Embeddings, c.EmbeddingsBaseURL, c.EmbeddingsKeyFile, ".embeddings-")
	if err != nil {
		return settings.Placed("--embeddings", ofSecond("embeddings", err))
	}
	x.reaches(m)
	if close, ok := m.(io.Closer); ok {
		x.closers = append(x.closers, close)
	}
	e, ok := m.(model.Embedder)
	if !ok {
		return &settings.Problem{Where: "--embeddings", What: c.Embeddings + " makes no embeddings",
			Hint: "name a model of a server, openai:NAME or ollama:NAME"}
	}
	x.embeddings = c.Embeddings
	if n, ok := m.(model.Namer); ok && !n.IsLLM() {
		x.embeddings += notLLM
	}
	if r, ok := m.(*server); ok && !r.replayed {
		_, err = model.NewEmbeddings(e).Vectors(ctx, []string{"Hello."})
		if err = r.refusal(ctx, err); err != nil {
			return settings.Placed("--embeddings", ofSecond("embeddings", err))
		}
	}
	x.embed = model.NewEmbeddings(e).Vectors
	return nil
}

// notLLM stands behind the name of an embedder that is none.
const notLLM = " (no language model)"

// embeds reports whether the settings name a server for embeddings.
func (c *Config) embeds() bool { return c.Embeddings != "" && c.Embeddings != Hashed }

// compared is what texts are compared by in recall or by a defense; "" is nothing.
func (x *Experiment) compared() string {
	if x.embedding || x.Plan != nil && slices.ContainsFunc(x.Plan.Arms, func(a Arm) bool { return a.Profile.Recall.Vector > 0 }) {
		return x.embeddings
	}
	return ""
}

// unused warns where a server is named that nobody asks.
func (x *Experiment) unused() {
	if x.Config.embeds() && x.compared() == "" {
		x.Warnings = append(x.Warnings, fmt.Sprintf("%s is asked nothing: no defense embeds texts, and no agent recalls by them",
			x.Config.Embeddings))
	}
}
