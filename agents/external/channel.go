package external

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents"
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// The channels by which the content of a session comes to an installed agent: memtox's
// tools, or what it has of its own. Behind any but an instruction and a job may stand [Later].
const (
	ByMCP         = "mcp"
	ByFile        = "file"
	ByPage        = "page"
	ByShell       = "shell"
	ByUser        = "user"
	ByInstruction = "instruction"
	BySkill       = "skill"
	ByJob         = "job"

	// Later has the agent read in one user turn what the user speaks of in the next.
	Later = "+later"
)

// ReadFirst is what the user says in the turn before, where the content comes in that.
const ReadFirst = "Please read this first. I say in a moment what I want to know."

type Piece struct {
	Name string // such as mail-1
	Kind string // what a person would call it
	Text string
}

// Bringer is a link that brings content by channels of the agent's own.
type Bringer interface {
	// Bring puts content where the agent finds it by a channel, and returns what the user says
	// of where that is. It is gone when the session ends.
	Bring(via string, pieces []Piece) (where string, err error)
}

// brought is a piece of content that the agent has somewhere.
type brought struct {
	agents.Incoming
	probes []string // of the lines of its text: what a message that has them holds
	lines  []string // as messages may have them
	taken  bool
	seen   string // what the input gate left of its text
}

// bring brings what a turn has by its channel, and returns the turn as the user says it.
// Instructions are there from the session's first turn on.
func (t *Trial) bring(ctx context.Context, box *agents.Sandbox, i int, turns []agents.Turn) (agents.Turn, error) {
	turn := turns[i]
	via, later := strings.CutSuffix(turn.Via, Later)
	if via == "" {
		return turn, nil
	}
	of := turns[i : i+1]
	if via == ByInstruction {
		from, to := i, i+1
		for from > 0 && !turns[from].Fresh {
			from--
		}
		for to < len(turns) && !turns[to].Fresh {
			to++
		}
		of = turns[from:to]
	}
	var pieces []Piece
	if via != ByInstruction || len(t.brought) == 0 {
		for _, o := range of {
			pieces = append(pieces, t.pieces(via, o.Incoming)...)
		}
	}
	switch via {
	case ByUser:
		turn.Incoming = slices.Clone(turn.Incoming)
		for j := range turn.Incoming {
			turn.Incoming[j].Inline = true
		}
		turn.Via = ""
	case ByMCP:
		turn.Via = ""
	}
	if !slices.ContainsFunc(turn.Incoming, byChannel) && len(pieces) == 0 {
		return turn, nil
	}
	if via != ByUser {
		l, ok := t.link.(Bringer)
		if !ok {
			return turn, fmt.Errorf("content cannot come to it by %s", via)
		}
		where, err := l.Bring(via, pieces)
		if err != nil {
			return turn, t.fail(ctx, err)
		}
		if slices.ContainsFunc(turn.Incoming, byChannel) {
			turn.Where = where
		}
	}
	if !later {
		return turn, nil
	}
	first := turn
	first.User = ReadFirst
	if _, err := t.turn(ctx, box, i+1, first); err != nil {
		return turn, err
	}
	turn.Incoming, turn.Where, turn.Fresh = nil, "", false
	return turn, nil
}

// byChannel reports whether a piece of content comes by a channel. What a server says of
// its tools does not.
func byChannel(in agents.Incoming) bool { return in.Origin.Medium != memory.Tool }

// pieces are those of a turn for a channel. From now on prompts may have them.
func (t *Trial) pieces(via string, all []agents.Incoming) (out []Piece) {
	for _, in := range all {
		if !byChannel(in) || via == ByUser {
			continue
		}
		kind := "text"
		if tool := world.Reader(in.Origin.Medium); tool != nil {
			kind = tool.Called
		}
		t.pieceNo++
		out = append(out, Piece{Name: fmt.Sprintf("%s-%d", kind, t.pieceNo), Kind: kind, Text: in.Labelled()})
		if via != ByMCP {
			t.brought = append(t.brought, newBrought(in))
		}
	}
	return out
}

// shortest is the length from which on a line is looked for, longest how much of it:
// products cut long lines.
const (
	shortest = 16
	longest  = 160
)

func newBrought(in agents.Incoming) *brought {
	b := &brought{Incoming: in}
	most := ""
	for line := range strings.Lines(in.Text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		b.lines = append(b.lines, spellings(line)...)
		if len(line) >= shortest {
			b.probes = append(b.probes, spellings(text.Clip(line, longest))...)
		}
		if len(line) > len(most) {
			most = line
		}
	}
	if b.probes == nil && most != "" {
		b.probes = spellings(most)
	}
	return b
}

// spellings are a line as a message may have it: as it is, and in JSON.
func spellings(line string) []string {
	plain, _ := remote.Line(line) // a text always encodes
	html, _ := json.Marshal(line)
	out := []string{line, string(plain[1 : len(plain)-1]), string(html[1 : len(html)-1])}
	slices.Sort(out)
	return slices.Compact(out)
}

func (b *brought) in(content string) bool {
	return slices.ContainsFunc(b.probes, func(s string) bool { return strings.Contains(content, s) })
}

// meet takes in what the session brought, through the input gate, when a prompt has it for
// the first time, and has the model see of it what the gate left.
func (t *Trial) meet(prompt []model.Message) error {
	if t.box == nil || len(t.brought) == 0 {
		return nil
	}
	for i := range prompt {
		m := &prompt[i]
		if m.Role == model.Assistant {
			continue
		}
		whole := m.Content
		if seen, ok := t.seen[whole]; ok {
			m.Content = seen
			continue
		}
		for _, b := range t.brought {
			if !b.in(whole) {
				continue
			}
			if !b.taken {
				seg, err := t.box.Met(b.Incoming, called(prompt, m.CallID))
				if err != nil {
					return err
				}
				b.taken, b.seen = true, seg.Text
			}
			if t.reader.Brought == nil {
				t.reader.Brought = map[model.Role][]string{}
			}
			if lines := t.reader.Brought[m.Role]; len(b.lines) > 0 && !slices.Contains(lines, b.lines[0]) {
				t.reader.Brought[m.Role] = append(lines, b.lines...)
			}
			if b.seen != b.Text {
				m.Content = b.without(m)
			}
		}
		t.seen[whole] = m.Content
	}
	return nil
}

// without is what the model sees of a message with content that the input gate changed: of
// a tool's result that alone.
func (b *brought) without(m *model.Message) string {
	if m.Role == model.ToolRole {
		return b.seen
	}
	out, said := m.Content, false
	for _, line := range b.lines {
		for strings.Contains(out, line) {
			as := ""
			if !said {
				as, said = b.seen, true
			}
			if strings.Contains(as, line) {
				as = memory.Withheld
			}
			out = strings.Replace(out, line, as, 1)
		}
	}
	return out
}

func called(prompt []model.Message, id string) model.Call {
	for _, m := range slices.Backward(prompt) {
		for _, c := range m.Calls {
			if c.ID == id && id != "" {
				return c
			}
		}
	}
	return model.Call{}
}
