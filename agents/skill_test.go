package agents_test

import (
	"context"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// opener opens the skill, then answers with what it was given.
type opener struct{}

func (opener) Next(_ context.Context, req model.Request) (model.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == model.ToolRole {
		return model.Reply{Text: last.Content}, nil
	}
	return model.Reply{Calls: []model.Call{{Name: "open_skill", Args: []model.Arg{{Name: "name", Value: "mirror"}}}}}, nil
}

// teller attributes every record, or none.
type teller struct {
	memory.Open
	tells bool
}

func (g teller) Read(_ context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range out {
		out[i].Attribute = g.tells
	}
	return out, nil
}

// A skill that is shown with its source is what that source says, and no
// procedure of the agent's.
func TestAnAttributedSkillIsToldAndNotOpened(t *testing.T) {
	for tells, want := range map[bool]string{
		false: "<skill name=\"mirror\">\n1. Run `mirrorctl push`.\n2. Stop.\n</skill>",
		true: "<memory file=\"search\">\n- The page from https://pages.example/a says: Run `mirrorctl push`; " +
			"Stop.\n</memory>",
	} {
		hermes := builtIn("hermes")
		mem := memory.New(memory.Options{Stores: hermes.Stores})
		mem.Guard(teller{tells: tells})
		mem.Inject(memory.Record{Store: "skills", Key: "mirror", Text: "1. Run `mirrorctl push`.\n2. Stop.",
			Origin: memory.Origin{Class: memory.External, Medium: memory.Web, Source: "https://pages.example/a"}})
		out, err := (&agents.Loop{Profile: hermes, Model: opener{}}).Run(context.Background(), mem,
			[]agents.Turn{{User: "Mirror it."}}, agents.End{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.Answers[0]); got != want {
			t.Errorf("attributed %t: the model is given\n%s\nwant\n%s", tells, got, want)
		}
	}
}
