package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/proxy/gate"
)

// judge is one of functions.
type judge func(session string, prompt []model.Message) (gate.Rule, error)

func (j judge) Look(_ context.Context, session string, prompt []model.Message) (gate.Rule, error) {
	return j(session, prompt)
}

func said(text string) []gate.Message {
	return []gate.Message{{Message: model.Message{Role: model.User, Content: text}}}
}

func reply(names ...string) gate.Reply {
	var r gate.Reply
	for _, n := range names {
		r.Calls = append(r.Calls, model.Call{Name: n})
	}
	return r
}

// Products mend names of tools. What they would take for another tool is not judged as what
// it is called: it goes back to the model.
func TestACallOfNoToolOfTheRequestIsRefusedUnjudged(t *testing.T) {
	var judged, told []string
	g := &gate.Gate{Judge: judge(func(string, []model.Message) (gate.Rule, error) {
		return func(_ context.Context, c model.Call) (gate.Ruling, error) {
			judged = append(judged, c.Name)
			return gate.Ruling{}, nil
		}, nil
	})}
	ask := func(offered []string, replies ...gate.Reply) []string {
		t.Helper()
		r, err := g.Ask(context.Background(), "s", said("Go."), offered, func(_ context.Context, view []gate.Message) (gate.Reply, error) {
			told = append(told, view[len(view)-1].Content)
			next := replies[0]
			replies = replies[1:]
			return next, nil
		})
		if err != nil || len(replies) > 0 {
			t.Fatal(err, replies)
		}
		var got []string
		for _, c := range r.Calls {
			got = append(got, c.Name)
		}
		return got
	}
	got := ask([]string{"memory", "write_file"}, reply("Memory"), reply("memory", "write file"))
	if d := cmp.Diff([]string{"memory"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"memory"}, judged); d != "" {
		t.Errorf("judged was %s", d)
	}
	if want := `{"success":false,"error":"there is no tool \"Memory\": there are memory, write_file"}`; told[1] != want {
		t.Errorf("the model is told %s, not %s", told[1], want)
	}
	// An agent that names no tools has its calls judged.
	if got := ask(nil, reply("anything")); len(got) != 1 || judged[len(judged)-1] != "anything" {
		t.Error(got, judged)
	}
}

// Requests of one session at once do not mix: a reply is judged by what its own request said.
func TestEachReplyIsJudgedByItsOwnRequest(t *testing.T) {
	var judged []string
	g := &gate.Gate{Judge: judge(func(_ string, prompt []model.Message) (gate.Rule, error) {
		said := prompt[0].Content
		return func(_ context.Context, c model.Call) (gate.Ruling, error) {
			judged = append(judged, c.Name+" of "+said)
			return gate.Ruling{}, nil
		}, nil
	})}
	ask := func(words, call string, meanwhile func()) {
		t.Helper()
		if _, err := g.Ask(context.Background(), "s", said(words), nil, func(context.Context, []gate.Message) (gate.Reply, error) {
			meanwhile()
			return reply(call), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	ask("Pay.", "transfer", func() { ask("Review the conversation.", "memory", func() {}) })
	if d := cmp.Diff([]string{"memory of Review the conversation.", "transfer of Pay."}, judged); d != "" {
		t.Error(d)
	}
}

// Where judging fails, what the calls before it have left is taken back: the agent gets none.
func TestAFailureTakesBackTheCallsBeforeIt(t *testing.T) {
	broken := errors.New("the judge broke off")
	var back []string
	g := &gate.Gate{Judge: judge(func(string, []model.Message) (gate.Rule, error) {
		return func(_ context.Context, c model.Call) (gate.Ruling, error) {
			if c.Name == "breaks" {
				return gate.Ruling{}, broken
			}
			return gate.Ruling{Back: func(ctx context.Context) error {
				back = append(back, c.Name)
				return ctx.Err()
			}}, nil
		}, nil
	})}
	for _, c := range []struct {
		gone  bool // the agent is, meanwhile
		calls []string
		want  error
	}{{false, []string{"one", "two", "breaks", "three"}, broken}, {true, []string{"one", "two"}, context.Canceled}} {
		ctx, cancel := context.WithCancel(context.Background())
		back = nil
		_, err := g.Ask(ctx, "s", said("Go."), nil, func(context.Context, []gate.Message) (gate.Reply, error) {
			if c.gone {
				cancel()
			}
			return reply(c.calls...), nil
		})
		cancel()
		if !errors.Is(err, c.want) {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"two", "one"}, back); d != "" {
			t.Error(d)
		}
	}
}
