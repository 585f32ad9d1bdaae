package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/inert"
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

// Reader makes the judge that the setting judge names; nil where it asks no model.
func (c Config) Reader(ctx context.Context, cat Catalog) (*score.ModelJudge, error) {
	if c.Judge == Deterministic || c.Judge == "" {
		return nil, nil
	}
	name, ok := strings.CutPrefix(c.Judge, "llm:")
	switch kind, _, _ := strings.Cut(name, ":"); {
	case !ok:
		return nil, unknownModel("--judge", "judge", c.Judge, []string{Deterministic, "llm:openai:NAME", "llm:ollama:NAME"})
	case kind == "reference":
		return nil, &settings.Problem{Where: "--judge", What: name + " is no language model: it answers no questions",
			Hint: "name a model such as llm:openai:NAME"}
	case kind != "openai" && kind != "ollama":
		return nil, unknownModel("--judge", "model", name, []string{"openai:NAME", "ollama:NAME"})
	}
	c.Protocol = "tools" // it is given no tools
	m, err := secondModel(ctx, c, cat, name, c.JudgeBaseURL, c.JudgeKeyFile, ".verdicts-")
	if err == nil {
		err = Ask(ctx, m)
	}
	if err != nil {
		return nil, settings.Placed("--judge", ofSecond("judge", err))
	}
	return score.New(m, name), nil
}

// judgeModel makes the model of a judge, which answers beside the agent's. Its
// exchanges have a cassette of their own.
func judgeModel(ctx context.Context, c Config, cat Catalog, name string) (model.Model, error) {
	m, err := secondModel(ctx, c, cat, name, c.DefenseBaseURL, c.KeyFile, ".judge-")
	if err == nil {
		err = Ask(ctx, m)
	}
	return m, ofSecond("defense", err)
}

// secondModel makes a model beside the agent's: at a base URL of its own, or at the
// agent's where it is of the same kind, with a cassette of its own. The agent's key is meant
// for no other server.
func secondModel(ctx context.Context, c Config, cat Catalog, name, baseURL, keyFile, suffix string) (model.Model, error) {
	kind, _, _ := strings.Cut(name, ":")
	main, _, _ := strings.Cut(c.Model, ":")
	elsewhere := baseURL != "" || kind != main
	if elsewhere {
		c.BaseURL = baseURL
	}
	if elsewhere || keyFile != "" {
		c.KeyFile = keyFile
	}
	if kind == "reference" {
		c.BaseURL, c.Record, c.Replay = "", "", ""
	}
	file := func(tape string) string {
		if tape == "" {
			return ""
		}
		return tape + suffix + inert.FileName(name)
	}
	c.Model, c.Record, c.Replay = name, file(c.Record), file(c.Replay)
	return cat.Models(ctx, c)
}

// ofSecond makes the hints of a problem speak of the settings of a second model.
func ofSecond(prefix string, err error) error {
	p, ok := errors.AsType[*settings.Problem](err)
	if !ok {
		return err
	}
	placed := *p
	placed.Where = ""
	placed.Hint = strings.NewReplacer("--base-url", "--set "+prefix+"_base_url=URL", "--set key_file", "--set "+prefix+"_key_file").
		Replace(p.Hint)
	return &placed
}
