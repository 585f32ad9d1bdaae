package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/model"
)

// stores is the tool by which the agent stores the reply to a prompt; nil is none.
func (g *Gate) stores(view []Message) *Tool {
	if i := lastUser(view); g.Answers != nil && i >= 0 {
		return g.Answers(view[i].Content)
	}
	return nil
}

// keep judges a reply that the agent stores by itself: each object of its list is a call of
// the tool. What is refused is left out. A reply that cannot be read stores nothing.
func (g *Gate) keep(ctx context.Context, rule Rule, t *Tool, reply Reply) (Reply, error) {
	of := map[string]json.RawMessage{}
	var list []json.RawMessage
	if from, to := strings.Index(reply.Text, "{"), strings.LastIndex(reply.Text, "}"); from >= 0 && from < to {
		if json.Unmarshal([]byte(reply.Text[from:to+1]), &of) == nil {
			_ = json.Unmarshal(of[t.Answers], &list)
		}
	}
	var calls []model.Call
	var facts []json.RawMessage
	for _, raw := range list {
		var members map[string]json.RawMessage
		var text string
		if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members[t.arg("text")], &text) != nil || text == "" {
			continue
		}
		raw, _ = json.Marshal(members) // each member once, as it is judged
		if args, err := model.ParseArgs(nil, "", raw); err == nil {
			calls, facts = append(calls, model.Call{Name: t.Name, Args: args}), append(facts, raw)
		}
	}
	reply.Calls = calls
	said := g.number(reply)
	was := slices.Clone(said.Calls)
	rulings, err := judge(ctx, rule, nil, said.Calls)
	if err != nil {
		return Reply{}, err
	}
	kept := []json.RawMessage{}
	for i, c := range said.Calls {
		switch {
		case rulings[i].Refused != "":
			g.count(func(n *Counts) { n.Refused++ })
		case rulings[i].Changed != nil:
			kept = append(kept, json.RawMessage(edited(string(facts[i]), was[i].Args, c.Args)))
		default:
			kept = append(kept, facts[i])
		}
	}
	members, err := json.Marshal(kept)
	if err != nil {
		return Reply{}, fmt.Errorf("writing what may be stored: %w", err)
	}
	of[t.Answers] = members
	b, err := json.Marshal(of)
	if err != nil {
		return Reply{}, fmt.Errorf("writing what may be stored: %w", err)
	}
	said.Content, said.Calls, said.Changed = string(b), nil, true
	reply.Text, reply.Calls, reply.Message = said.Content, nil, said
	return reply, nil
}
