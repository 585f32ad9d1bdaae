package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/harness/score"
	"github.com/memtox/memtox/internal/text"
)

// unit is one text of a case as it is shown to a gate.
type unit struct {
	key, text, query string
	user             string // what asks in the same turn to keep it; "" if nothing does
	origin           memory.Origin
	known            bool // the case says the origin, or --origin does
	payload          bool
}

// units are the texts of a case: its text, or what its write session brings in.
// The user's own words are a text where nothing else is, or where they are what
// should be stored.
func (d *Detection) units(k *datasets.Case, value *score.Value) []unit {
	var out []unit
	query := ""
	if k.Retrieval != nil {
		query = k.Retrieval.Query
	}
	add := func(u unit) {
		u.query = query
		out = append(out, u)
	}
	if x := k.Text; x != nil {
		u := unit{key: x.Key, text: x.Content}
		class, ok := datasets.OriginClass(x.Origin)
		switch {
		case ok:
			u.origin, u.known = memory.Origin{Class: class}, true
		case d.origin != nil:
			u.origin, u.known = *d.origin, true
		default:
			u.origin = memory.Origin{Class: memory.Agent}
		}
		u.origin.Medium, u.origin.Source = x.Medium, x.Source
		add(u)
	}
	for _, turn := range k.Write {
		asks := ""
		if text.AsksToKeep(turn.User) {
			asks = turn.User
		}
		for _, s := range turn.Segments {
			add(unit{text: s.Text, origin: memory.Origin{Class: memory.External, Medium: s.Medium, Source: s.Source},
				known: true, user: asks})
		}
	}
	if len(out) == 0 || k.Kind == datasets.KindUser {
		for _, turn := range k.Write {
			add(unit{text: turn.User, origin: memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"},
				known: true})
		}
	}
	found := false
	for i := range out {
		out[i].payload = value.In(out[i].text) || value.In(out[i].key)
		found = found || out[i].payload
	}
	for i := range out {
		out[i].payload = out[i].payload || !found
	}
	return out
}

// textMemory is a memory that texts are shown to, one after another. They pass its gate
// as what an agent stores does, at one place, and none is stored, so that no text sees
// another.
type textMemory struct {
	*memory.Memory
	at    defenses.Place
	store *textStored
	heard memory.Observer // is told what the gate says of the texts
	close func() error
}

// open opens an arm's gate over a memory that holds the records. The options lack what
// all texts have in common.
func (d *Detection) open(ctx context.Context, arm int, stored []memory.Record, o memory.Options) (*textMemory, error) {
	m := &textMemory{at: d.gates[arm], store: &textStored{Store: memory.NewStore()}}
	o.Stores, o.Store, o.Start, o.Seed = d.Plan.Arms[arm].Profile.Stores, m.store, trialStart, d.Config.Seed
	o.Lineage = memory.Window // a text's origin is declared, or nobody knows it
	o.Observer = func(e *memory.Event) {
		if e.Moment.String() == m.at.String() && m.heard != nil {
			m.heard(e)
		}
	}
	m.Memory = memory.New(o)
	gate, done, err := d.guard(ctx, arm, m.Memory)
	if err != nil {
		return nil, err
	}
	m.close = done
	shown := &textGate{Gate: gate, at: m.at}
	m.Guard(shown)
	if len(stored) > 0 {
		if err := m.Seed(ctx, stored); err != nil {
			return nil, fmt.Errorf("seeding the memory: %w", err)
		}
	}
	m.store.id, err = m.store.NextID(ctx)
	shown.full, m.store.full = true, true
	return m, err
}

// show shows a text to the gate. Each is a session of its own, at the same time.
func (m *textMemory) show(ctx context.Context, u *unit) error {
	if len(m.Window()) > 0 {
		m.NextSession()
		m.Tick(-24 * time.Hour)
	}
	if m.at == defenses.Input {
		_, err := m.Take(ctx, u.origin, 1, u.text)
		return err
	}
	var from *memory.Segment // nil is nobody knows
	said := memory.Origin{Class: memory.User, Medium: memory.Chat, Source: "user"}
	for _, s := range []memory.Segment{{Origin: said, Text: u.user}, {Origin: u.origin, Text: u.text}} {
		if s.Text == "" || !u.known {
			continue
		}
		taken, err := m.Take(ctx, s.Origin, 1, s.Text)
		if err != nil {
			return err
		}
		from = &taken
	}
	if m.at == defenses.Write {
		_, err := m.Write(ctx, memory.Draft{Route: memory.RouteMemoryTool, Op: memory.Add, Store: textStore,
			Key: u.key, Text: u.text, From: from})
		return err
	}
	// The record was there before, so a defense that signs has signed it.
	r := memory.Record{Store: textStore, Key: u.key, Text: u.text, Origin: u.origin, Asked: u.user != ""}
	if from != nil {
		r.Lineage = memory.Lineage{{Segment: from.ID, Origin: u.origin}}
	}
	signed, err := m.Backup(ctx, []memory.Record{r})
	if err != nil {
		return err
	}
	m.Inject(signed[0])
	_, err = m.Get(ctx, textStore, signed[0].Key, memory.Query{Route: memory.RouteSearch, Text: u.query})
	return err
}

// textGate is a gate that is asked at one place and, once the store is full, is told of
// no change.
type textGate struct {
	memory.Gate
	at   defenses.Place
	full bool
}

func (g *textGate) Input(ctx context.Context, s memory.Segment) (memory.Verdict, error) {
	if g.at != defenses.Input {
		return memory.Verdict{}, nil
	}
	return g.Gate.Input(ctx, s)
}

func (g *textGate) Committed(c memory.Change) {
	if !g.full {
		g.Gate.Committed(c)
	}
}

// textStored is a store that, once it is full, takes nothing more. It shows what it was
// given last to whoever knows the key.
type textStored struct {
	memory.Store
	full bool
	id   string // of whatever is not stored
	last memory.Record
}

func (s *textStored) NextID(ctx context.Context) (string, error) {
	if s.full {
		return s.id, nil
	}
	return s.Store.NextID(ctx)
}

func (s *textStored) Commit(ctx context.Context, b *memory.Batch) (memory.Committed, error) {
	if !s.full {
		return s.Store.Commit(ctx, b)
	}
	s.last = b.Records[len(b.Records)-1]
	return memory.Committed{}, nil
}

func (s *textStored) ByKey(ctx context.Context, store, key string) (memory.Record, bool, error) {
	if s.full && s.last.Key == key {
		return s.last, true, nil
	}
	return s.Store.ByKey(ctx, store, key)
}
