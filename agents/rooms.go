package agents

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/internal/text"
)

// makeRoom flushes and compacts when the context has grown to the profile's
// marks. It is called before every turn of the model.
func (s *session) makeRoom() error {
	if at := s.scaled.FlushTokens; at > 0 && !s.flushed && s.tokens > at {
		s.flushed = true
		s.out.Flushes++
		if _, err := s.aside(s.Profile.FlushPrompt, memory.RouteFlush, s.flush, 4); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	// A compaction that could not make enough room is not tried again before
	// the context has grown by an eighth.
	if at := s.scaled.CompactTokens; at > 0 && s.tokens > at && s.tokens > s.settled+s.settled/8 {
		if err := s.compact(); err != nil {
			return fmt.Errorf("compaction: %w", err)
		}
		s.flushed = false
	}
	return nil
}

// aside runs a sub-conversation that sees the whole context and leaves no trace
// in it.
func (s *session) aside(prompt string, route memory.Route, tools []model.Tool, rounds int) (string, error) {
	keep, tokens, n := s.msgs, s.tokens, s.rounds
	s.msgs = keep[:len(keep):len(keep)]
	s.route = route
	from := len(s.out.Messages)
	s.push(model.Message{Role: model.User, Content: prompt})
	answer, err := s.converse(tools, rounds)
	s.msgs, s.tokens, s.rounds, s.route = keep, tokens, n, 0
	s.out.Asides = append(s.out.Asides, [2]int{from, len(s.out.Messages)})
	return answer, err
}

// shortened is how much of a message the context of an extraction shows, in bytes.
const shortened = 300

// extract has the model say the facts of the newest exchange, and adds those that are new.
func (s *session) extract() error {
	all, spoken := s.msgs, s.spoken()
	var said strings.Builder
	for _, m := range spoken.newest {
		said.WriteString(m.Content)
		said.WriteByte('\n')
	}
	like, err := s.mem.Search(s.ctx, memory.Query{Route: memory.RouteInject, Text: said.String(), Said: s.said,
		K: s.Profile.Neighbours})
	if err != nil {
		return err
	}
	var prompt bytes.Buffer
	if len(like) > 0 {
		s.memories(&prompt, "memories", memory.RouteInject, like)
		prompt.WriteString("\n\n")
	}
	prompt.WriteString(s.Profile.ExtractPrompt)
	s.msgs = slices.Concat(spoken.before, spoken.newest)
	answer, err := s.aside(prompt.String(), memory.RouteReview, nil, 1)
	s.msgs = all
	if err != nil {
		return err
	}
	s.mem.Mark(len(s.out.Messages) - 1) // what is written is the answer itself
	defer s.mem.Mark(len(s.out.Messages))
	var had []string
	for _, r := range like {
		had = append(had, r.Record.Text)
	}
	for _, fact := range memory.Items(answer) {
		if fact == noReply || slices.Contains(had, fact) {
			continue
		}
		had = append(had, fact)
		_, err := s.mem.Write(s.ctx, memory.Draft{Route: memory.RouteReview, Store: s.Profile.Stores[0].Name, Text: fact})
		if err != nil {
			return err
		}
	}
	return nil
}

// noReply is the answer that there is nothing to store.
const noReply = "NO_REPLY"

// spoken are the system's message and what the user and the agent said: in the newest
// exchange, and before it as much as the profile shows for context.
func (s *session) spoken() (out struct{ before, newest []model.Message }) {
	for _, m := range s.msgs[1:] {
		if m.Role == model.User {
			out.before, out.newest = append(out.before, out.newest...), nil
		}
		if m.Calls = nil; m.Role != model.ToolRole && m.Content != "" {
			out.newest = append(out.newest, m)
		}
	}
	out.before = out.before[max(0, len(out.before)-s.Profile.ExtractContext):]
	for i := range out.before {
		out.before[i].Content = text.Cut(out.before[i].Content, shortened)
	}
	out.before = slices.Insert(out.before, 0, s.msgs[0])
	return out
}

// compact replaces the older messages by a summary. The items of the summary go
// through the gate where they outlive the session; one that was blocked is
// dropped from the summary too.
func (s *session) compact() error {
	s.out.Compactions++
	summary, err := s.aside(prompts().Compact, memory.RouteCompaction, nil, 1)
	if err != nil {
		return err
	}
	items := memory.Items(summary)
	if store := s.Profile.SummaryStore; store != "" {
		s.mem.Mark(len(s.out.Messages) - 1) // what is written is the summary itself
		entries, err := s.mem.Write(s.ctx, memory.Draft{Route: memory.RouteCompaction, Store: store, Text: summary})
		s.mem.Mark(len(s.out.Messages))
		if err != nil {
			return err
		}
		items = items[:0]
		for _, e := range entries {
			if e.Committed != nil && e.Committed.State.Visible() {
				items = append(items, e.Committed.Text)
			}
		}
	}
	var b strings.Builder
	b.WriteString(prompts().Summary)
	for _, it := range items {
		b.WriteString("\n- " + oneLine(it))
	}
	system := s.msgs[0]
	s.msgs, s.tokens = append([]model.Message{system, {Role: model.User, Content: b.String()}}, s.tail()...), 0
	for _, m := range s.msgs {
		s.tokens += messageTokens(m)
	}
	s.settled = s.tokens
	return nil
}

// tail is what a compaction keeps of the newest messages: at most the profile's
// count and half of the room, but always the user's newest message and what came
// last, and never a tool result without the call that asked for it.
func (s *session) tail() []model.Message {
	room := s.scaled.CompactTokens / 2
	from := len(s.msgs)
	for from > 1 && len(s.msgs)-from < s.scaled.KeepMessages {
		n := messageTokens(s.msgs[from-1])
		if room-n < 0 && from < len(s.msgs) {
			break
		}
		room -= n
		from--
	}
	for from > 1 && s.msgs[from].Role == model.ToolRole {
		from--
	}
	tail := s.msgs[from:]
	user := func(m model.Message) bool { return m.Role == model.User }
	if slices.ContainsFunc(tail, user) {
		return tail
	}
	for _, m := range slices.Backward(s.msgs[1:from]) {
		if user(m) {
			return append([]model.Message{m}, tail...)
		}
	}
	return tail
}
