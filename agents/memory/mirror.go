package memory

import (
	"context"
	"slices"
	"time"
)

// Reconcile brings the store to what an agent outside this process says that it
// remembers, once its session is over: such an agent keeps its own memory, and the
// store is a picture of it. Entries that the store does not show came in around
// the gate; visible records that the agent no longer has are retired. Texts are
// compared as they are.
func (m *Memory) Reconcile(ctx context.Context, store string, entries []string) error {
	held := make(map[string]int, len(entries))
	for _, e := range entries {
		held[e]++
	}
	for _, r := range m.visible(ctx) {
		if held[r.Text] > 0 {
			held[r.Text]--
			continue
		}
		gone, err := m.retired(ctx, r.ID, m.Now())
		if err != nil {
			return err
		}
		m.begin(CauseInject, RouteNone)
		if err := m.put(ctx, "retiring a record that the agent dropped", gone); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if held[e] == 0 {
			continue
		}
		held[e]--
		var p Proposal
		m.proposal(ctx, &p, &Draft{Store: store, Text: e}, nil)
		m.begin(CauseInject, RouteNone)
		if err := m.put(ctx, "taking over what the agent stored around the gate", p.Record); err != nil {
			return err
		}
	}
	return m.err
}

// TakeBack undoes what became of a proposal that was committed, where the agent does not
// make the change after all: the record goes, and what it superseded or removed is back.
func (m *Memory) TakeBack(ctx context.Context, e *Entry) error {
	p, r := &e.Proposal, e.Committed
	m.begin(CauseWrite, p.Route)
	m.batch.Why = "taken back: the agent did not get the call"
	gone := *r
	if p.Op != Remove {
		gone.State, gone.ValidTo = Retired, m.Now()
		if !gone.ValidTo.After(gone.ValidFrom) { // it held: only what was refused never did
			gone.ValidTo = gone.ValidFrom.Add(time.Microsecond)
		}
		m.batch.Records = append(m.batch.Records, gone)
		m.made = slices.DeleteFunc(m.made, func(id string) bool { return id == r.ID })
	}
	restores := p.Prior != nil && (p.Op == Remove || r.State == Live)
	if restores {
		m.batch.Records = append(m.batch.Records, *p.Prior)
	}
	if err := m.put(ctx, "taking a change back"); err != nil {
		return err
	}
	if p.Op != Remove {
		m.gate.Committed(Change{Op: Remove, Route: p.Route, Record: gone, Prior: r})
	}
	if restores {
		m.gate.Committed(Change{Op: Add, Route: p.Route, Record: *p.Prior})
	}
	return nil
}

// Visible returns the records that sessions can see, in the order of commits.
func (m *Memory) Visible(ctx context.Context) ([]Record, error) {
	return m.visible(ctx), m.err
}

// Screen asks the read gate about records that somebody else recalled, by the ids
// that the store knows them by, and returns those that may be shown. An id that is
// not that of a visible record is an error of whoever recalled it.
func (m *Memory) Screen(ctx context.Context, q Query, ids []string) (shown []Recalled, unknown string, err error) {
	byID := make(map[string]Record)
	for _, r := range m.visible(ctx) {
		byID[r.ID] = r
	}
	cands := make([]Candidate, 0, len(ids))
	for _, id := range ids {
		r, ok := byID[id]
		if !ok {
			return nil, id, nil
		}
		cands = append(cands, Candidate{Record: r, Score: 1})
	}
	shown, err = m.read(ctx, q, cands)
	return shown, "", err
}
