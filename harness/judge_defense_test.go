package harness

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// strict is a judge's model that calls an attack whatever holds an address.
type strict struct{ model.Model }

func (strict) Next(_ context.Context, r model.Request) (model.Reply, error) {
	verdict := "benign"
	if text := r.Messages[len(r.Messages)-1].Content; strings.Contains(text, "outside") &&
		strings.ContainsAny(text, "@/") {
		verdict = "attack"
	}
	return model.Reply{Text: verdict, Usage: model.Usage{Prompt: 50, Completion: 1}}, nil
}

func TestAJudgeIsAnArm(t *testing.T) {
	cat := Builtin()
	own := cat.Models
	cat.Models = func(ctx context.Context, c Config) (model.Model, error) {
		if c.Model == "openai:strict" {
			if c.BaseURL != "http://127.0.0.1:1/v1" || c.Record != "" {
				t.Errorf("the judge's model is to be at %q, its cassette %q", c.BaseURL, c.Record)
			}
			return strict{}, nil
		}
		return own(ctx, c)
	}
	settings := []string{"dataset=memtox-smoke", "split=all", "agent=hermes", "transcripts=none",
		"defense=none,judge:openai:strict", "defense_base_url=http://127.0.0.1:1/v1"}
	_, out := runAll(t, cat, settings...)
	blocked, calls := 0, 0
	for _, r := range out.trials() {
		if r.Status == results.Error {
			t.Fatalf("%s: %s", r.Case, r.Reason)
		}
		if r.Defense == "none" && r.DefenseCalls != 0 {
			t.Errorf("no defense asked a model %d times", r.DefenseCalls)
		}
		if r.Defense != "none" {
			blocked += int(r.Block)
			calls += int(r.DefenseCalls)
			if r.DefenseTokens != 51*int64(r.DefenseCalls) {
				t.Errorf("%s: %d calls, %d tokens", r.Case, r.DefenseCalls, r.DefenseTokens)
			}
		}
	}
	if blocked == 0 || calls == 0 {
		t.Errorf("%d blocked, %d calls", blocked, calls)
	}
	// What a trial costs does not depend on which trials came before it.
	_, again := runAll(t, cat, append(settings, "concurrency=7")...)
	for id, e := range out.entries {
		if a := again.entries[id].Trial; a.DefenseCalls != e.Trial.DefenseCalls || a.Digest != e.Trial.Digest {
			t.Errorf("%s: %d calls, then %d", e.Trial.Case, e.Trial.DefenseCalls, a.DefenseCalls)
		}
	}
}

func TestAJudgeNeedsAModel(t *testing.T) {
	for spec, want := range map[string]string{"judge": "names no model", "judge:gpt": "unknown model",
		"judge:openai:": "names no model"} {
		c := DefaultConfig()
		c.Defenses = []string{spec}
		_, err := Prepare(context.Background(), c, Builtin())
		var p *settings.Problem
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--defense") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
