package harness

import (
	"context"
	"strings"

	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/settings"
)

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
