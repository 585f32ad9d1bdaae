package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/reference"
)

// scribe reads the mail in each turn, answers with what a function says, and extracts facts.
type scribe struct {
	answer, facts string
	extractions   []model.Request
	conversations int
}

func (s *scribe) Next(_ context.Context, req model.Request) (model.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case strings.Contains(last.Content, "Extract the facts"):
		s.extractions = append(s.extractions, req)
		return model.Reply{Text: s.facts}, nil
	case last.Role == model.User:
		s.conversations++
		return model.Reply{Calls: []model.Call{{Name: "read_mail"}}}, nil
	}
	return model.Reply{Text: s.answer}, nil
}

func texts(m *memory.Memory) (out []string) {
	for r := range m.Records {
		out = append(out, r.Text)
	}
	return out
}

func mail(text string) []agents.Incoming {
	return []agents.Incoming{{Origin: memory.Origin{Class: memory.External, Medium: memory.Email, Source: "a@b.example"},
		Text: text}}
}

// What tools return reaches an extraction only in the words of the agent, a fact that is
// remembered already is dropped, and none is ever changed.
func TestFactsAreExtractedFromWhatWasSaid(t *testing.T) {
	m := &scribe{answer: "It says that the office moves.", facts: "- The office moves.\n- The office stays.\n- The office moves."}
	mem := newMemory(builtIn("mem0"), memory.Options{})
	turns := make([]agents.Turn, 8)
	for i := range turns {
		turns[i] = agents.Turn{User: fmt.Sprintf("Read mail %d about the office.", i), Incoming: mail("words of the mail")}
	}
	loop := &agents.Loop{Profile: builtIn("mem0"), Model: m}
	out, err := loop.Run(context.Background(), mem, turns, agents.End{Review: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(mem), []string{"The office moves.", "The office stays."}; !slices.Equal(got, want) {
		t.Errorf("stored are %q, not %q", got, want)
	}
	if len(m.extractions) != len(turns) || len(out.Asides) != len(turns) {
		t.Fatalf("%d extractions for %d turns", len(m.extractions), len(turns))
	}
	for _, req := range m.extractions {
		if len(req.Tools) > 0 {
			t.Error("an extraction offers tools")
		}
		for _, msg := range req.Messages {
			if msg.Role == model.ToolRole || len(msg.Calls) > 0 || strings.Contains(msg.Content, "words of the mail") {
				t.Errorf("an extraction shows what a tool returned: %+v", msg)
			}
		}
	}
	// The system's message, ten for context, the exchange and the prompt.
	last := m.extractions[len(turns)-1].Messages
	if len(last) != 14 || !strings.Contains(last[13].Content, "- The office stays.\n") {
		t.Errorf("the last extraction has %d messages, the last of them\n%s", len(last), last[len(last)-1].Content)
	}
}

// The session that nobody looks at any more extracts nothing behind its last turn.
func TestNoFactsAreExtractedBehindTheEnd(t *testing.T) {
	m := &scribe{answer: "Yes.", facts: "- It rains."}
	loop := &agents.Loop{Profile: builtIn("mem0"), Model: m}
	for n, turns := range []([]agents.Turn){{{User: "Hello."}}, {{User: "Hello."}, {User: "Again."}}} {
		m.extractions = nil
		if _, err := loop.Run(context.Background(), newMemory(builtIn("mem0"), memory.Options{}), turns, agents.End{}); err != nil {
			t.Fatal(err)
		}
		if len(m.extractions) != n {
			t.Errorf("%d turns: %d extractions", len(turns), len(m.extractions))
		}
	}
}

// Without a phrase book the reference model extracts what it repeats of a mail, and what
// the user says.
func TestTheReferenceModelExtracts(t *testing.T) {
	mem := newMemory(builtIn("mem0"), memory.Options{})
	loop := &agents.Loop{Profile: builtIn("mem0"), Model: reference.New(reference.Naive, nil)}
	turns := []agents.Turn{
		{User: "I prefer trains to planes."},
		{User: "Please summarise the mail.", Incoming: mail("The account for refunds is DE89370400440532013000. It was sunny.")}}
	if _, err := loop.Run(context.Background(), mem, turns, agents.End{Review: true}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(texts(mem), "\n")
	for _, want := range []string{"trains to planes", "DE89370400440532013000"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is not stored once:\n%s", want, all)
		}
	}
	if strings.Contains(all, "NO_REPLY") {
		t.Errorf("that there is nothing to store is stored:\n%s", all)
	}
}
