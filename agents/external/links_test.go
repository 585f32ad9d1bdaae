package external_test

import (
	"context"
	"testing"

	"github.com/memtox/memtox/agents/external"
	"github.com/memtox/memtox/agents/memory"
)

// started notes which of the conversations are given a trial.
type started struct {
	n  int
	by *[]int
}

func (s *started) Exchange(_ context.Context, m *external.Message) (*external.Reply, error) {
	if m.Op == external.Reset {
		*s.by = append(*s.by, s.n)
	}
	return &external.Reply{ID: m.ID, Name: "product", Done: true}, nil
}

func (s *started) Close() {}

// Behind two models, trials that follow each other are one conversation's, with whatever that
// has started: a gateway takes a gigabyte.
func TestAProductBehindTwoModelsIsStartedOnce(t *testing.T) {
	var by []int
	dialed := 0
	o := external.Options{Links: new(external.Links), Dial: func() (external.Link, error) {
		dialed++
		return &started{dialed, &by}, nil
	}}
	var ends []*external.Agent
	for range 2 {
		a, err := external.New("installed:product", o)
		if err == nil {
			err = a.Greet(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		ends = append(ends, a)
	}
	for range 3 {
		for _, a := range ends {
			trial, err := a.Open(t.Context(), memory.New(memory.Options{}), nil, "none")
			if err != nil {
				t.Fatal(err)
			}
			trial.Close()
		}
	}
	for _, n := range by {
		if n != by[0] || len(by) != 6 {
			t.Fatalf("the trials were those of the conversations %v", by)
		}
	}
}
