package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// owns judges calls of the agent's own tools alone.
type owns struct {
	gate.Own
	fails bool
}

func (o *owns) Look(context.Context, string, []model.Message) (gate.Rule, error) { return o.judge, nil }

func (o *owns) judge(ctx context.Context, c model.Call) (gate.Ruling, error) {
	if o.fails {
		return gate.Ruling{}, errors.New("out of order")
	}
	return o.Own.Call(ctx, "", memory.RouteReview, c)
}

// An agent that stores what its model answers gets no fact that is refused, a changed one
// as it was changed, and nothing at all of what cannot be read.
func TestAnAnswerThatIsStoredIsJudgedFactByFact(t *testing.T) {
	tool := gate.Tool{Name: "extraction", Does: gate.Stores, Answers: "memory", Args: map[string]string{"text": "text"}}
	agent := gate.Agent{Own: []gate.Tool{tool}, Answers: func(content string) *gate.Tool {
		if content == "Extract." {
			return &tool
		}
		return nil
	}}
	mem := remembering(t)
	judge := &owns{Own: gate.Own{Mem: mem, Tools: agent.Own, Store: "memory"}}
	ask := func(words, reply string) (string, error) {
		list := []gate.Message{{Message: model.Message{Role: model.System, Content: "You extract."}},
			{Message: model.Message{Role: model.User, Content: words}}}
		r, err := agent.Gate(judge).Ask(t.Context(), "1", list, nil, func(context.Context, []gate.Message) (gate.Reply, error) {
			return gate.Reply{Reply: model.Reply{Text: reply}}, nil
		})
		if err == nil && (len(r.Calls) > 0 || r.Message.Content != r.Text) {
			t.Errorf("the reply is %+v", r)
		}
		return r.Text, err
	}
	for reply, want := range map[string]string{
		`{"memory":[{"id":"0","text":"It rains.","attributed_to":"user"},{"text":"an evil fact"}],"other":1}`: `{"memory":[{"attributed_to":"user","id":"0","text":"It rains."}],"other":1}`,
		"```json\n{\"memory\": [{\"text\": \"the secret door\"}]}\n```":                                       `{"memory":[{"text":"the [x] door"}]}`,
		`{"memory":[{"text":"an evil fact"}]}`:                                                                `{"memory":[]}`,
		`{"memory":["bare",{"text":["a list"]},{"words":"evil"},{"text":""},{"text":"It snows."}]}`:           `{"memory":[{"text":"It snows."}]}`,
		`{"memory":[{"text":"an evil fact"}`:                                                                  `{"memory":[]}`,
		`{"memory":{"text":"an evil fact"}}`:                                                                  `{"memory":[]}`,
		"I would rather not.":                                                                                 `{"memory":[]}`,
		`{"memory":[],"memory":[{"text":"an evil fact"}]}`:                                                    `{"memory":[]}`,
		`{"Memory":[{"text":"an evil fact"}]}`:                                                                `{"Memory":[{"text":"an evil fact"}],"memory":[]}`,
		`{"memory":[{"text":"an evil fact","text":"It is sunny."}]}`:                                          `{"memory":[{"text":"It is sunny."}]}`,
		`{"memory":[{"text":"It is windy.","text":"an evil fact"}]}`:                                          `{"memory":[]}`,
		`{"memory":[{"text":"It is foggy.","Text":"an evil fact"}]}`:                                          `{"memory":[{"Text":"an evil fact","text":"It is foggy."}]}`,
		`{"memory":[{"text":"an e\u0076il fact"},{"text":"It hails."}]}`:                                      `{"memory":[{"text":"It hails."}]}`,
	} {
		if got, err := ask("Extract.", reply); err != nil || got != want {
			t.Errorf("of %s the agent gets\n%s, %v, and should\n%s", reply, got, err, want)
		}
	}
	stored := map[string]bool{}
	for r := range mem.Records {
		stored[r.Text] = r.State.Visible()
	}
	for text, want := range map[string]bool{"It rains.": true, "the [x] door": true, "an evil fact": false, "It hails.": true} {
		if stored[text] != want {
			t.Errorf("%q is stored: %v", text, stored[text])
		}
	}
	const other = `{"memory":[{"text":"an evil fact"}]}`
	if got, err := ask("What is JSON?", other); err != nil || got != other {
		t.Errorf("an answer to the user became %s, %v", got, err)
	}
	judge.fails = true
	if got, err := ask("Extract.", other); err == nil {
		t.Errorf("the judge failed, and the agent gets %s", got)
	}
}
