package agents_test

import (
	"context"
	"testing"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
)

// nags asks the user in every reply, and answers when it has asked often enough.
type nags struct{ left int }

func (n *nags) Next(context.Context, model.Request) (model.Reply, error) {
	if n.left--; n.left < 0 {
		return model.Reply{Text: "Done."}, nil
	}
	return model.Reply{Calls: []model.Call{{Name: "ask_user", Args: []model.Arg{{Name: "question", Value: "Which one?"}}}}}, nil
}

// The user answers three questions of a session; what he does not hear any more is no
// question.
func TestTheUserAnswersThreeQuestions(t *testing.T) {
	p := builtIn("hermes")
	heard := 0
	office := &agents.Office{World: &world.State{}, Answer: func(string) string { heard++; return "The first." }}
	l := &agents.Loop{Profile: p, Model: &nags{left: 6}}
	if _, err := l.Run(context.Background(), newMemory(p, memory.Options{}), []agents.Turn{{User: "Go on."}}, agents.End{Office: office}); err != nil {
		t.Fatal(err)
	}
	if heard != 3 || office.Questions != 3 {
		t.Errorf("he heard %d questions and %d count, want 3", heard, office.Questions)
	}
}
