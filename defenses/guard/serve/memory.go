// Package serve puts the guard beside an agent in any language, as a process:
//
//   - [Server] answers the guard protocol of package external on a pair of streams,
//   - [Handler] answers it over HTTP, with limits, health and metrics,
//   - [NewMCP] offers a guarded memory as tools of the Model Context Protocol.
//
// The first two only decide: the agent keeps its own store. The third holds the
// store ([Memory]), and nothing reaches it but through the guard.
package serve

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard"
	"github.com/memtox/memtox/defenses/guard/pending"
	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/internal/text"
)

// StoreName is the store that a [Memory] keeps its entries in.
const StoreName = "memory"

// Agent is the name whose key signs what a [Memory] stores.
const Agent = pending.Agent

// MemoryOptions configure a [Memory].
type MemoryOptions struct {
	Guard *guard.Guard
	// Store keeps the entries; nil keeps them in memory. It is the caller's to
	// close.
	Store memory.Store
	// Principal is whose memory it is; empty is "user-1".
	Principal string
	// Writer is the class of what the clients write. A client can name a lower
	// class, never a higher one.
	Writer memory.Class
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Sealer seals Store, and says how it stands; nil for none.
	Sealer *Sealer
	// Pending is the list of what waits for a person in Store; nil where nobody decides.
	Pending pending.Asker
}

// Memory is a store behind the guard, for many clients at once.
type Memory struct {
	shared    *memory.Shared
	principal string
	writer    memory.Class
	sealer    *Sealer
	decided   bool           // somebody decides about what waits
	history   *store.History // the store, where it keeps what was; else nil
	// read is what the gate was last asked and said at a recall. The observer
	// writes it and the function in the same Do reads it, so one goroutine at a time.
	read *memory.Event
}

// Specs are the stores of a guarded memory.
func Specs() []memory.StoreSpec {
	return []memory.StoreSpec{{Name: StoreName, Title: "The memory"}}
}

// NewMemory opens the guard over a store and tells it of what is there.
func NewMemory(ctx context.Context, o MemoryOptions) (*Memory, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Principal = cmp.Or(o.Principal, "user-1")
	m := &Memory{principal: o.Principal, writer: o.Writer, sealer: o.Sealer}
	m.history, _ = o.Store.(*store.History)
	m.shared = memory.NewShared(memory.Options{
		Stores: Specs(), Store: o.Store, Principal: o.Principal, Clock: o.Now,
		Recall: memory.RecallSpec{Vector: 0.5, BM25: 0.5, K: 10, Floor: 0.05},
		Observer: func(e *memory.Event) {
			if e.Moment == memory.AtRead {
				read := *e
				m.read = &read
			}
		},
	})
	gate, err := o.Guard.Open(ctx, m.shared.View())
	if err != nil {
		return nil, fmt.Errorf("opening the guard: %w", err)
	}
	if m.decided = o.Pending != nil; m.decided {
		if gate, err = confirm(ctx, gate, m.shared.View(), o.Pending, o.Store); err != nil {
			return nil, fmt.Errorf("opening the list of what waits: %w", err)
		}
	}
	m.shared.Guard(gate)
	if err := m.shared.Do(ctx, func(m *memory.Memory) error { return m.Resume(ctx) }); err != nil {
		return nil, fmt.Errorf("taking the memory up: %w", err)
	}
	return m, nil
}

// Client is one conversation with a [Memory]. What was brought into it, or recalled
// in it, is what its later writes may derive from. It is safe for concurrent use.
type Client struct {
	memory *Memory

	session *memory.Session
	most    int  // contents, MaxContext but for tests
	mostLen int  // bytes of them, MaxContextBytes but for tests
	lost    bool // external content was in a context that is forgotten; the session guards it

	mu       sync.Mutex
	snapshot *string
}

// MaxContext bounds how many contents a conversation remembers of its own context, and
// MaxContextBytes their length: what the guard refused is among them, however long. One
// that goes beyond it forgets them all. Where there was external content among them,
// nobody can tell any more what derives from it: from then on whatever the agent
// itself says in this conversation counts as external.
const (
	MaxContext      = 1 << 14
	MaxContextBytes = 32 << 20
)

// forgotten is where the words of an agent come from whose context was forgotten.
var forgotten = pending.Forgotten

// NewClient begins a conversation.
func (m *Memory) NewClient() *Client {
	return &Client{memory: m, session: m.shared.Session(m.principal), most: MaxContext, mostLen: MaxContextBytes}
}

// do runs f in the conversation. f is told the origin of what the client says itself:
// o, or less where the context was forgotten.
func (c *Client) do(ctx context.Context, o memory.Origin, f func(m *memory.Memory, o memory.Origin) error) error {
	return c.session.Do(ctx, func(m *memory.Memory) error {
		if contents, bytes, least := m.Context(); contents > c.most || bytes > c.mostLen {
			c.lost = c.lost || least.Class == memory.External
			m.NextSession()
		}
		if c.lost && o.Class == memory.Agent {
			o = forgotten
		}
		c.memory.read = nil
		return f(m, o)
	})
}

// Source says where the content of a write comes from.
type Source struct {
	Class string // SYSTEM, USER, AGENT_AUTHORED or EXTERNAL_TOOL; empty is the writer's
	Name  string // page, sender or path; empty where there is none
}

func (c *Client) origin(s Source) (memory.Origin, error) {
	o := memory.Origin{Class: c.memory.writer, Medium: memory.Chat, Source: text.Clip(s.Name, 512)}
	if s.Class != "" {
		if err := o.Class.UnmarshalText([]byte(s.Class)); err != nil {
			return o, fmt.Errorf("source_class: %w", err)
		}
	} else if s.Name != "" {
		o.Class = memory.External // it stands somewhere else
	}
	o.Class = min(o.Class, c.memory.writer)
	if o.Class == memory.External {
		o.Medium = memory.MCP
	}
	return o, nil
}

// Stored is what became of a write that was not refused.
type Stored struct {
	Success bool   `json:"success"`
	ID      string `json:"id"`
	State   string `json:"state"`             // live, or staged and held while it waits for a person
	Content string `json:"content"`           // as it was stored
	Changed bool   `json:"changed,omitempty"` // the guard took something out
	Note    string `json:"note,omitempty"`
}

// Add stores an entry. Under a key that has one it takes that one's place. A
// refusal is a [*guard.Rejection].
func (c *Client) Add(ctx context.Context, key, content string, from Source) (Stored, error) {
	return c.write(ctx, from, memory.Draft{Op: memory.Add, Key: key, Text: content})
}

// Update puts a content in the place of an entry's. Where it is refused, or waits,
// the entry stays as it was.
func (c *Client) Update(ctx context.Context, id, content string, from Source) (Stored, error) {
	return c.write(ctx, from, memory.Draft{Op: memory.Replace, Record: id, Text: content})
}

func (c *Client) write(ctx context.Context, from Source, d memory.Draft) (out Stored, err error) {
	o, err := c.origin(from)
	if err != nil {
		return out, err
	}
	d.Route, d.Store = memory.RouteMemoryTool, StoreName
	if strings.TrimSpace(d.Text) == "" {
		return out, &guard.Rejection{Message: "Nothing to store: the content is empty."}
	}
	err = c.do(ctx, o, func(m *memory.Memory, o memory.Origin) error {
		if d.Op == memory.Replace {
			if _, err := c.own(m, d.Record); err != nil {
				return err
			}
		} else if prior, ok := m.View().ByKey(StoreName, d.Key); d.Key != "" && ok && prior.State == memory.Live &&
			c.mine(&prior) {
			d.Op, d.Record = memory.Replace, prior.ID
		}
		seg, err := m.Take(ctx, o, len(m.Window())+1, d.Text)
		if err != nil {
			return err
		}
		d.From = &seg
		entries, err := m.Write(ctx, d)
		if err != nil {
			return err
		}
		if len(entries) == 1 {
			var refused *guard.Rejection
			if out, refused = c.standing(m, &entries[0]); refused != nil {
				return refused
			} else if out.Success {
				return nil
			}
		}
		stored, err := committed("stored", entries)
		for _, r := range stored {
			out = Stored{Success: true, ID: r.ID, State: r.State.String(), Content: r.Text, Changed: r.Text != d.Text}
			if r.State != memory.Live {
				out.Note = "It waits for a person's decision, as " + r.ID + " (memtox guard pending)."
			}
		}
		return err
	})
	return out, err
}

// committed are the records that a write stored or deleted. A [guard.Rejection] says
// why there are not all.
func committed(done string, entries []memory.Entry) (out []*memory.Record, err error) {
	for i := range entries {
		e := &entries[i]
		if r := guard.Rejected(&e.Verdict); r != nil {
			return out, r
		}
		if e.Committed == nil {
			return out, &guard.Rejection{Message: "Not " + done + ": " + cmp.Or(e.Rejected, "the entry is trusted more than "+
				"what this conversation holds; ask the operator to remove it") + "."}
		}
		out = append(out, e.Committed)
	}
	return out, nil
}

// mine reports whether a record is the principal's or everybody's.
func (c *Client) mine(r *memory.Record) bool {
	return r.Principal == c.memory.principal || r.Principal == "*"
}

// own returns an entry of the principal's by its id.
func (c *Client) own(m *memory.Memory, id string) (memory.Record, error) {
	r, ok := m.View().Get(id)
	if !ok || r.Store != StoreName || r.State == memory.Retired || !c.mine(&r) {
		return r, &guard.Rejection{Message: fmt.Sprintf("There is no entry %q.", text.Clip(id, 80))}
	}
	return r, nil
}

// Entry is one entry as a client sees it.
type Entry struct {
	ID      string `json:"id"`
	Key     string `json:"key,omitempty"`
	Content string `json:"content"` // as a prompt may hold it: a placeholder where it is blocked
	// Blocked says that the guard does not let the content into a prompt, and
	// BlockReason why. The stored entry is unchanged, and can be deleted.
	Blocked     bool      `json:"blocked,omitempty"`
	BlockReason []string  `json:"block_reason,omitempty"`
	Class       string    `json:"source_class"`
	Source      string    `json:"source,omitempty"`
	Scope       string    `json:"scope,omitempty"`
	State       string    `json:"state"`
	Attributed  bool      `json:"attributed,omitempty"` // told with its source, not to be obeyed
	Created     time.Time `json:"created"`
	Score       float64   `json:"score,omitempty"` // relevance, of a search
}

// shown is a candidate as the decision shows it. The zero Decision shows all.
func shown(r *memory.Record, d *memory.Decision) Entry {
	e := Entry{ID: r.ID, Key: r.Key, Content: r.Text, Class: r.Origin.Class.String(), Source: r.Origin.Source,
		Scope: r.Scope.String(), State: r.State.String(),
		Created: r.Created}
	if d.Action == memory.Redact {
		e.Content = d.Text
	}
	e.Blocked = d.Action > memory.Redact || d.Action == memory.Redact && strings.HasPrefix(d.Text, "[BLOCKED: ")
	if d.Action > memory.Redact {
		e.Content = "[BLOCKED: the stored entry is unchanged: review it, then remove it]"
	}
	if e.Blocked {
		for _, f := range d.Findings {
			e.BlockReason = append(e.BlockReason, f.Check)
		}
	}
	if d.Attribute && !e.Blocked {
		e.Content, e.Attributed = memory.Attribute(r.Origin, e.Content), true
	}
	return e
}

// List returns the entries of the principal's, oldest first, those that are blocked
// included. With reveal, blocked ones show their content, for a person who reviews
// them: the conversation has read it then, and what it writes of it is external.
func (c *Client) List(ctx context.Context, reveal bool) ([]Entry, error) {
	out := []Entry{}
	err := c.do(ctx, memory.Origin{}, func(m *memory.Memory, _ memory.Origin) error {
		_, err := m.Snapshot(ctx, StoreName, memory.Query{Route: memory.RouteSnapshot})
		if err != nil || c.memory.read == nil {
			return err
		}
		for i := range c.memory.read.Candidates {
			r := &c.memory.read.Candidates[i].Record
			if !c.mine(r) {
				continue
			}
			e := shown(r, &c.memory.read.Decisions[i])
			if reveal && e.Blocked {
				e.Content = r.Text
				m.Revealed(r)
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// Search returns at most k entries that are relevant to a query and may be shown,
// best first.
func (c *Client) Search(ctx context.Context, query string, k int) ([]Entry, error) {
	out := []Entry{}
	err := c.do(ctx, memory.Origin{}, func(m *memory.Memory, _ memory.Origin) error {
		found, err := m.Search(ctx, memory.Query{Route: memory.RouteSearch, Text: query, K: k}, StoreName)
		if err != nil || c.memory.read == nil {
			return err
		}
		decided := make(map[string]int, len(found))
		for i := range c.memory.read.Candidates {
			decided[c.memory.read.Candidates[i].Record.ID] = i
		}
		for _, f := range found {
			i := decided[f.Record.ID]
			e := shown(&c.memory.read.Candidates[i].Record, &c.memory.read.Decisions[i])
			e.Score = f.Score
			out = append(out, e)
		}
		return nil
	})
	return out, err
}

// Snapshot is every entry that may be shown, a line each, as it stands in a prompt.
// It is made when it is first asked for and is the same bytes as long as the
// conversation lasts.
func (c *Client) Snapshot(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == nil {
		entries, err := c.List(ctx, false)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(e.Content, "\n", "\n  "))
		}
		s := b.String()
		c.snapshot = &s
	}
	return *c.snapshot, nil
}

// Delete removes an entry. One that the guard blocks can always be removed; one that
// is trusted more than whoever removes it cannot.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.do(ctx, memory.Origin{Class: c.memory.writer, Medium: memory.Chat},
		func(m *memory.Memory, o memory.Origin) error {
			r, err := c.own(m, id)
			if err != nil {
				return err
			}
			if _, err := m.Get(ctx, StoreName, r.Key, memory.Query{Route: memory.RouteSnapshot}); err != nil {
				return err
			}
			if e := c.memory.read; e != nil && len(e.Candidates) == 1 && e.Candidates[0].Record.ID == id &&
				shown(&r, &e.Decisions[0]).Blocked {
				return m.Withdraw(ctx, id, "a blocked entry, removed by its owner")
			}
			if len(m.Window()) == 0 {
				if _, err := m.Take(ctx, o, 1, "delete an entry of the memory"); err != nil {
					return err
				}
			}
			entries, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Op: memory.Remove, Store: StoreName,
				Record: id})
			if err == nil && len(entries) == 1 {
				if _, refused := c.standing(m, &entries[0]); refused != nil {
					return refused
				}
			}
			if err == nil {
				_, err = committed("deleted", entries)
			}
			return err
		})
}
