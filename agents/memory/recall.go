package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memtox/memtox/internal/text"
)

// Recalled is one record that passed the read gate, as the prompt shows it.
type Recalled struct {
	Record     *Record
	Text       string // what the prompt holds
	Score      float64
	Attributed bool
}

// Snapshot recalls every visible record of a store, in order, as it is injected
// into the prompt.
func (m *Memory) Snapshot(ctx context.Context, storeName string, q Query) ([]Recalled, error) {
	var cands []Candidate
	if s, ok := m.store.(*inMemory); ok {
		in := func(r *Record) bool { return r.State.Visible() && r.Store == storeName }
		n := 0
		for i := range s.records {
			if in(&s.records[i]) {
				n++
			}
		}
		cands = m.room(n)
		for i := range s.records {
			if r := &s.records[i]; in(r) {
				cands = append(cands, Candidate{Record: *r})
			}
		}
	} else {
		recs := m.visible(ctx, storeName)
		cands = m.room(len(recs))
		for i := range recs {
			cands = append(cands, Candidate{Record: recs[i]})
		}
	}
	return m.read(ctx, q, cands)
}

// manyCandidates are more than all reads of a trial have.
const manyCandidates = 256

// room is for so many candidates, which stay as they are as long as the Memory is used.
func (m *Memory) room(n int) []Candidate {
	if n > manyCandidates {
		return make([]Candidate, 0, n)
	}
	at := len(m.cands)
	if cap(m.cands)-at < n {
		m.cands, at = make([]Candidate, 0, max(n, min(2*cap(m.cands), manyCandidates), 32)), 0
	}
	m.cands = m.cands[:at+n]
	return m.cands[at : at : at+n]
}

// Search recalls the records of the named stores (none: all) that are relevant
// to the query. The gate sees every candidate above the floor, before the cut to
// q.K, so that a flood of records cannot starve it.
func (m *Memory) Search(ctx context.Context, q Query, stores ...string) ([]Recalled, error) {
	return m.search(ctx, q, m.look(ctx, stores...))
}

// look is visible for those who are done with the list before the store is asked again.
func (m *Memory) look(ctx context.Context, stores ...string) []Record {
	if s, ok := m.store.(*inMemory); ok {
		return s.look(stores)
	}
	return m.visible(ctx, stores...)
}

// SearchTranscript recalls past turns of earlier sessions.
func (m *Memory) SearchTranscript(ctx context.Context, q Query) ([]Recalled, error) {
	return m.search(ctx, q, m.turns())
}

func (m *Memory) search(ctx context.Context, q Query, recs []Record) ([]Recalled, error) {
	cands, err := m.rank(ctx, q.Text, recs)
	if err != nil {
		return nil, fmt.Errorf("embedding texts for recall: %w", err)
	}
	return m.read(ctx, q, cands)
}

// Get recalls one record by its key.
func (m *Memory) Get(ctx context.Context, storeName, key string, q Query) ([]Recalled, error) {
	r, ok := m.byKey(ctx, storeName, key)
	if !ok || !r.State.Visible() {
		return nil, nil
	}
	return m.read(ctx, q, []Candidate{{Record: r, Score: 1}})
}

func (m *Memory) read(ctx context.Context, q Query, cands []Candidate) ([]Recalled, error) {
	if q.Principal == "" {
		q.Principal = m.principal
	}
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	if len(cands) == 0 {
		return nil, nil
	}
	began := time.Now()
	ds, err := m.gate.Read(ctx, q, cands)
	took, wire := m.opts.Meter.split(time.Since(began))
	if err := m.after(AtRead, err); err != nil {
		return nil, err
	}
	if len(ds) != len(cands) {
		return nil, &GateError{AtRead, fmt.Errorf("%d candidates went in, %d decisions came back", len(cands), len(ds))}
	}
	m.observe(Event{Moment: AtRead, Route: q.Route, Took: took, Wire: wire, Query: q, Candidates: cands, Decisions: ds})

	order := make([]int, 0, len(cands))
	for i, d := range ds {
		if d.Action <= Redact {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ds[a].Rank, ds[b].Rank) })
	if q.K > 0 && len(order) > q.K {
		order = order[:q.K]
	}
	out := make([]Recalled, 0, len(order))
	m.recalled = slices.Grow(m.recalled, len(order))
	var origins [4]Origin
	for _, i := range order {
		r := &cands[i].Record
		shown := Recalled{Record: r, Text: r.Text, Score: cands[i].Score}
		entry := entered{id: r.ID, text: r.Text}
		if ds[i].Action == Redact {
			shown.Text = ds[i].Text
		}
		if ds[i].Attribute {
			shown.Text, shown.Attributed = Attribute(r.Origin, shown.Text), true
			entry.text = shown.Text // the name of the source is in the context too
		}
		for _, o := range r.AppendOrigins(origins[:0]) {
			entry.origin = o
			m.recalled = append(m.recalled, entry)
		}
		out = append(out, shown)
	}
	m.leaveOutRepetitions()
	return out, nil
}

// Revealed brings a record into the context that the gate does not show. Nobody vouches
// for what it claims to be, so it is external.
func (m *Memory) Revealed(r *Record) {
	m.recalled = append(m.recalled, entered{id: r.ID, text: r.Text,
		origin: Origin{Class: External, Medium: MCP, Source: r.Origin.Source}})
	m.leaveOutRepetitions()
}

// manyRecalled is how many recalled records a context holds before it is looked for
// some that came twice. The sessions of a benchmark stay far below it; those of a
// server do not, whose client may list the whole memory again and again.
const manyRecalled = 4096

// leaveOutRepetitions keeps each recalled record once: a second one with the same
// text and origin changes no lineage.
func (m *Memory) leaveOutRepetitions() {
	if len(m.recalled) <= max(manyRecalled, 2*m.distinct) {
		return
	}
	type what struct {
		id, text string
		origin   Origin
	}
	had := make(map[what]bool, len(m.recalled))
	m.recalled = slices.DeleteFunc(m.recalled, func(e entered) bool {
		k := what{e.id, e.text, e.origin}
		twice := had[k]
		had[k] = true
		return twice
	})
	m.distinct, m.srcs = len(m.recalled), nil
}

// rank scores records by the profile's recall and returns those above the floor,
// best first; equals in the order of commits, newest first. An error is that of
// [Options.Embed].
func (m *Memory) rank(ctx context.Context, query string, recs []Record) ([]Candidate, error) {
	spec := m.opts.Recall
	q := m.opts.Cache.index(query)
	docs := make([]*index, len(recs))
	total := 0
	for i, r := range recs {
		docs[i] = m.opts.Cache.index(r.Text)
		total += docs[i].count
	}
	lexical := bm25(q, docs, total)
	var vec []float32
	var err error
	if spec.Vector > 0 && len(recs) > 0 {
		if vec, err = m.vector(ctx, q); err != nil {
			return nil, err
		}
	}
	out := m.room(len(recs))
	for i := len(recs) - 1; i >= 0; i-- {
		score := spec.BM25 * lexical[i]
		if vec != nil {
			of, err := m.vector(ctx, docs[i])
			if err != nil {
				return nil, err
			}
			if of != nil {
				score += spec.Vector * float64(max(0, text.Dot(vec, of)))
			}
		}
		if score > 0 && score >= spec.Floor {
			out = append(out, Candidate{Record: recs[i], Score: score})
		}
	}
	slices.SortStableFunc(out, func(a, b Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return out, nil
}

// vector embeds a text. Each is asked for alone: which of them are known already is
// chance where trials run at once, and a cassette must find the request again.
func (m *Memory) vector(ctx context.Context, ix *index) ([]float32, error) {
	if m.opts.Embed == nil {
		return ix.vector(), nil
	}
	v, err := m.opts.Embed(ctx, []string{ix.text})
	if err != nil {
		return nil, err
	}
	return v[0], nil
}

// bm25 scores documents against a query (Robertson and Zaragoza 2009, k1 = 1.2,
// b = 0.75), scaled so that the best document of the query has 1.
func bm25(q *index, docs []*index, total int) []float64 {
	const k1, b = 1.2, 0.75
	out := make([]float64, len(docs))
	if len(docs) == 0 || total == 0 {
		return out
	}
	mean := float64(total) / float64(len(docs))
	best := 0.0
	tf := make([]int32, len(docs))
	for _, t := range q.stems {
		df := 0
		for i, d := range docs {
			if tf[i] = d.times(t.word); tf[i] > 0 {
				df++
			}
		}
		if df == 0 {
			continue
		}
		idf := math.Log(1 + (float64(len(docs)-df)+0.5)/(float64(df)+0.5))
		for i, n := range tf {
			if n > 0 {
				f := float64(n)
				out[i] += idf * f * (k1 + 1) / (f + k1*(1-b+b*float64(docs[i].count)/mean))
				best = max(best, out[i])
			}
		}
	}
	if best > 0 {
		for i := range out {
			out[i] /= best
		}
	}
	return out
}

// chunks cuts a long text at line ends, or failing that anywhere, into parts of
// at most about that many tokens; 0 leaves it whole.
func chunks(s string, tokens int) []string {
	size := 4 * tokens
	if size == 0 || len(s) <= size {
		return []string{s}
	}
	var out []string
	for len(s) > size {
		cut := strings.LastIndexByte(s[:size], '\n') + 1
		if cut == 0 {
			for cut = size; cut > size-4 && s[cut]&0xC0 == 0x80; cut-- {
			}
		}
		out = append(out, s[:cut])
		s = s[cut:]
	}
	return append(out, s)
}

// ended is a session that is over. Most are never searched, so what its turns are as
// records is found out only then.
type ended struct {
	heard
	turns     []Segment
	session   int
	principal string
	at        time.Time
}

// end is the session as it stands now, of which the next one takes the room.
func (m *Memory) end() ended {
	e := ended{turns: slices.Clone(m.inbox), session: m.session, principal: m.principal, at: m.now}
	if len(m.asked) > 0 {
		e.heard = heard{slices.Clone(m.window), m.asked}
		m.asked = make(map[int][]*wish)
	}
	return e
}

// turns are the past turns of earlier sessions as transcript search sees them.
func (m *Memory) turns() []Record {
	for i := range m.ended {
		e := &m.ended[i]
		for _, s := range e.turns {
			for _, part := range chunks(s.Text, m.opts.Recall.ChunkTokens) {
				m.past = append(m.past, Record{ID: fmt.Sprintf("t%d.%d", e.session, len(m.past)+1), Store: "transcript",
					Key:  fmt.Sprintf("session %d", e.session),
					Text: part, Origin: s.Origin, Lineage: Lineage{{Segment: s.ID, Origin: s.Origin}}, Principal: e.principal,
					Asked: e.wasAsked(&m.opts, s.Turn, part), Created: e.at, ValidFrom: e.at, Version: 1})
			}
		}
	}
	m.ended = again(m.ended)
	return m.past
}
