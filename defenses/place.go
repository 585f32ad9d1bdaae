package defenses

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/settings"
)

// Place is a gate at which a defense can be put.
type Place uint8

// The places. Own leaves a defense at the gates that it screens itself.
const (
	Own Place = iota
	Input
	Write
	Read
	Act
)

var placeNames = []string{"", "input", "write", "read", "act"}

// String returns the place's name: input, write, read, act, or "" for Own.
func (p Place) String() string {
	if int(p) < len(placeNames) {
		return placeNames[p]
	}
	return fmt.Sprintf("unknown(%d)", p)
}

// UnmarshalText reads a name; "" is no place.
func (p *Place) UnmarshalText(b []byte) error {
	if !slices.Contains(placeNames[1:], string(b)) {
		return settings.Unknown("", "place", string(b), placeNames[1:])
	}
	*p = Place(slices.Index(placeNames, string(b)))
	return nil
}

// PlaceList names places for a person: "write, read".
func PlaceList(places []Place) string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// At puts a defense at one gate and takes it away from the others. screens are
// the gates that it screens by itself. Where it does not screen the place, it is
// asked about the same text in the form that it knows: a segment, a recalled
// record or a tool argument as the proposal to store its text (by route none),
// or else as the one candidate of a recall. So any detector can be measured at
// any gate.
//
// The defense is still told of the seeds and of every commit, and a [Signer]
// still signs: a defense that verifies signatures at the read gate alone would
// otherwise find none.
func At(d Defense, place Place, screens []Place) (Defense, error) {
	if place == Own {
		return d, nil
	}
	if c, ok := d.(*chain); ok {
		return c.at(place)
	}
	ask, err := asked(place, screens)
	if err != nil {
		return nil, err
	}
	return &placed{inner: d, place: place, ask: ask}, nil
}

// asked is the gate of a defense that is asked about what passes another one.
func asked(place Place, screens []Place) (Place, error) {
	switch {
	case slices.Contains(screens, place):
		return place, nil
	case slices.Contains(screens, Write):
		return Write, nil
	case slices.Contains(screens, Read):
		return Read, nil
	case len(screens) == 0:
		return Own, fmt.Errorf("it screens nothing, so it cannot be placed: leave out @%s", place)
	}
	return Own, fmt.Errorf("it screens %s only and cannot judge what passes the %s gate: leave out @%s",
		PlaceList(screens), place, place)
}

// placed is a defense at one gate.
type placed struct {
	inner Defense
	place Place
	ask   Place // the gate of inner that is asked
}

func (p *placed) Open(ctx context.Context, view memory.View) (memory.Gate, error) {
	ask := p.ask
	if r, ok := p.inner.(Remote); ok {
		// Only the guard itself knows what it screens.
		id, err := r.Greet(ctx)
		if err != nil {
			return nil, err
		}
		if ask, err = asked(p.place, id.Screens); err != nil {
			return nil, err
		}
	}
	g, err := p.inner.Open(ctx, view)
	if err != nil {
		return nil, err
	}
	pg := &placedGate{Gate: g, view: view, place: p.place, ask: ask}
	pg.signer, _ = g.(Signer)
	return pg, nil
}

type placedGate struct {
	memory.Gate // Seed and Committed pass
	signer      Signer
	view        memory.View
	place, ask  Place
}

func (g *placedGate) Sign(r memory.Record) ([]byte, string) {
	if g.signer == nil {
		return nil, ""
	}
	return g.signer.Sign(r)
}

func (g *placedGate) Input(ctx context.Context, s memory.Segment) (memory.Verdict, error) {
	switch {
	case g.place != Input:
		return memory.Verdict{}, nil
	case g.ask == Input:
		return g.Gate.Input(ctx, s)
	}
	return g.judge(ctx, memory.RouteNone, memory.Query{Principal: g.view.Principal()}, memory.Record{
		Text: s.Text, Origin: s.Origin, Lineage: memory.Lineage{{Segment: s.ID, Origin: s.Origin}}})
}

func (g *placedGate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	var v memory.Verdict
	var err error
	switch {
	case g.place != Write:
	case g.ask == Write:
		v, err = g.Gate.Write(ctx, p)
	case p.Op == memory.Remove:
		// Nothing is shown by removing it.
	default:
		v, err = g.judge(ctx, p.Route, memory.Query{Route: p.Route, Principal: g.view.Principal()}, p.Record)
	}
	if err != nil || v.Action == memory.Block || p.Op == memory.Remove || g.signer == nil {
		return v, err
	}
	r := p.Record
	if v.Action == memory.Redact {
		r.Text = v.Text
	}
	r.Scope = v.Scope
	v.Signature, v.SignedBy = g.signer.Sign(r)
	return v, nil
}

func (g *placedGate) Read(ctx context.Context, q memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	switch {
	case g.place != Read:
		return make([]memory.Decision, len(cs)), nil
	case g.ask == Read:
		return g.Gate.Read(ctx, q, cs)
	}
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		v, err := g.judge(ctx, q.Route, q, cs[i].Record)
		if err != nil {
			return nil, err
		}
		out[i].Verdict = v
	}
	return out, nil
}

func (g *placedGate) Act(ctx context.Context, c memory.Call) (memory.Verdict, error) {
	switch {
	case g.place != Act:
		return memory.Verdict{}, nil
	case g.ask == Act:
		return g.Gate.Act(ctx, c)
	}
	var out memory.Verdict
	for _, a := range c.Args {
		origin := a.Lineage.Least(memory.Origin{Class: memory.Agent, Medium: memory.Chat})
		v, err := g.judge(ctx, memory.RouteNone, c.Query, memory.Record{Text: a.Value, Origin: origin, Lineage: a.Lineage})
		if err != nil {
			return out, err
		}
		mergeVerdict(&out, v)
	}
	return out, nil
}

// judge asks the inner gate about a record in the form that it knows.
func (g *placedGate) judge(ctx context.Context, route memory.Route, q memory.Query, r memory.Record) (memory.Verdict,
	error) {
	if r.Principal == "" {
		r.Principal = g.view.Principal()
	}
	if r.Created.IsZero() {
		r.Created, r.ValidFrom, r.Version = g.view.Now(), g.view.Now(), 1
	}
	if g.ask == Write {
		v, err := g.Gate.Write(ctx, memory.Proposal{Op: memory.Add, Route: route, Record: r})
		v.Signature, v.SignedBy, v.Held = nil, "", false // nothing is stored
		return v, err
	}
	ds, err := g.Gate.Read(ctx, q, []memory.Candidate{{Record: r, Score: 1}})
	if err != nil {
		return memory.Verdict{}, err
	}
	if len(ds) != 1 {
		return memory.Verdict{}, fmt.Errorf("asking about one record at the read gate: %d decisions came back", len(ds))
	}
	return ds[0].Verdict, nil
}
