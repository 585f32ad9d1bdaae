package memory

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/memtox/memtox/internal/text"
)

// source is something that a record may derive from.
type source struct {
	link Link
	ix   *index
}

// holds reports whether the source has a span of a text.
func (s *source) holds(of *index, span uint64) bool {
	return s.ix.hasPair(span) || len(of.spans) == 1 && s.ix.hasWord(span)
}

// derive sets what a record's text derives from. Every content span takes the least
// trusted source that contains it; a span found nowhere takes the least trusted
// source in the window, for a model may have put it in other words.
//
// Two rules come first. A declared source is the source: overlap can lower the trust
// in what the agent says itself, and nothing else. And where nothing is declared and
// a single thing that the user said holds every span of the text, the text is the
// user's, even if other content says it too: an attacker cannot make the user say
// something, and without this rule any page could take the user's own facts away by
// repeating them.
func (m *Memory) derive(r *Record, from *Segment) {
	r.Lineage = m.lineage(r.Text, from)
	r.Origin = r.Lineage.Least(Origin{Class: Agent, Medium: Chat})
	r.Asked = m.askedFor(r.Lineage, r.Text)
	if r.Origin.Class == External && (from == nil || from.Origin.Class != External) {
		m.nameAll(r)
	}
}

func (m *Memory) lineage(content string, from *Segment) Lineage {
	if from != nil && from.Origin.Class != Agent {
		return Lineage{{Segment: from.ID, Origin: from.Origin}}
	}
	if m.opts.Lineage == Exact && m.opts.Truth != nil {
		if l, ok := m.opts.Truth(content); ok {
			return m.located(l)
		}
	}
	if m.opts.Lineage == Window {
		return m.leastLink()
	}
	ix := m.opts.Cache.index(content)
	srcs := m.sources()
	if from == nil {
		if l := coveredByUser(ix, srcs, false); l != nil {
			return l
		}
		if l := m.labelled(content, srcs); l != nil {
			return l
		}
	}
	var out Lineage
	lost := len(ix.spans) == 0
	for _, span := range ix.spans {
		best := -1
		for i, s := range srcs {
			if s.holds(ix, span) && (best < 0 || s.link.Origin.Less(srcs[best].link.Origin)) {
				best = i
			}
		}
		if best < 0 {
			lost = true
			continue
		}
		out = out.with(srcs[best].link)
	}
	if lost {
		for _, l := range m.leastLink() {
			out = out.with(l)
		}
	}
	return out
}

// longestLabel bounds what the agent calls something that it notes, in bytes.
const longestLabel = 160

// labelled is the lineage of what the user said behind a label, such as "the account of
// Brandt Optik: I spoke to them, it is now ZZ12 …": the user's, for the account that it has is
// one that he said. The label is the agent's own where it has no value that the user has not
// said, no word that an outsider said and he did not, and turns nothing round.
func (m *Memory) labelled(content string, srcs []source) Lineage {
	label, said, ok := strings.Cut(content, ": ")
	if !ok || len(label) > longestLabel || strings.ContainsAny(label, "\n.!?") {
		return nil
	}
	out := coveredByUser(m.opts.Cache.index(said), srcs, false)
	if out == nil {
		return nil
	}
	if !slices.ContainsFunc(text.Values(said), func(v text.Value) bool { return (deciding|1<<text.ID)&(1<<v.Kind) != 0 }) || text.Denies(label) {
		return nil
	}
	some := func(users bool, holds func(*source) bool) bool {
		return slices.ContainsFunc(srcs, func(s source) bool { return s.link.Origin.Class >= User == users && holds(&s) })
	}
	for _, v := range text.Values(label) {
		if !some(true, func(s *source) bool { return text.Says(s.ix.text, v.Text) }) {
			return nil
		}
	}
	for _, w := range m.opts.Cache.index(label).stems {
		has := func(s *source) bool { return s.ix.hasWord(w.word) }
		if some(false, has) && !some(true, has) {
			return nil
		}
	}
	return out
}

// maxSources bounds the further sources of one record, and maxNames what its origin
// names of them, in bytes.
const (
	maxSources = 256
	maxNames   = 512
)

// nameAll makes a record with external content name every source that it may be
// from. Which of several comes first is no reason to name it alone: whoever quotes
// another's words would pick whose name stands over theirs. A source that holds all
// that is external in the text is enough to explain it; where there is none, all that
// hold a part are named. The lineage gets them all.
func (m *Memory) nameAll(r *Record) {
	if m.opts.Lineage != Overlap {
		return
	}
	ix := m.opts.Cache.index(r.Text)
	srcs := m.sources()
	held := make([]int, len(srcs)) // how many spans it holds
	spans := 0                     // that any external source holds
	lost := len(ix.spans) == 0     // a span is found nowhere: a model may have put any of the window in other words
	for _, span := range ix.spans {
		in, found := 0, false
		for i, s := range srcs {
			if !s.holds(ix, span) {
				continue
			}
			if found = true; s.link.Origin.Class == External {
				held[i]++
				in = 1
			}
		}
		spans += in
		lost = lost || !found
	}
	whole := !lost && slices.Contains(held, spans)
	var names []Origin
	more := 0
	for _, n := range []bool{true, false} {
		for i, s := range srcs {
			may := held[i] > 0 || lost && i < len(m.window) && s.link.Origin.Class == External
			if !may || (held[i] == spans) != n {
				continue
			}
			o := s.link.Origin
			if (n || !whole) && !slices.Contains(names, o) && len(names) <= maxSources {
				names = append(names, o)
			}
			if more < maxSources && !slices.ContainsFunc(r.Lineage, func(l Link) bool { return l.Origin == o }) {
				r.Lineage = append(r.Lineage, s.link)
				more++
			}
		}
	}
	if len(names) > 0 {
		r.Origin = oneOrigin(names)
	}
}

// oneOrigin is the origin of what may be from any of several.
func oneOrigin(all []Origin) Origin {
	out := all[0]
	var names []string
	for _, o := range all {
		if o.Medium != out.Medium {
			out.Medium = ""
		}
		if name := cmp.Or(o.Source, unnamed); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		out.Source = text.Clip(strings.Join(names, ", "), maxNames)
	}
	return out
}

// located names the segments that a true lineage comes from, by their origin: the
// oracle knows the case, not the session. Without the segment nobody could tell
// whether the user asked to keep it.
func (m *Memory) located(l Lineage) Lineage {
	out := slices.Clone(l)
	for i := range out {
		k := &out[i]
		for j := range m.window {
			s := &m.window[j]
			if k.Segment == 0 && k.Record == "" && s.Origin.Class == k.Origin.Class &&
				(k.Origin.Class != External || s.Origin.Source == k.Origin.Source) {
				k.Segment = s.ID
			}
		}
	}
	return out
}

// argumentLineage is the lineage of a tool call's argument: what says the value, in
// whatever spelling. What the user says in this session is the user's, whoever says it
// too, and so is what stands in a memory of his.
//
// A value that nobody says as it is may be put together. Words are the user's where one
// thing that he said has them all, else from all that have a part of them; a value with
// none of them the model made up. An address, an account or another value that is right
// only as a whole may also be from whatever is in sight: half of a mailbox in the user's
// words makes it no mailbox of his.
func (m *Memory) argumentLineage(a *Arg) Lineage {
	ix := m.opts.Cache.index(a.Value)
	srcs := m.sources()
	whole := !m.opts.WholeTurns && onlyWhole(a)
	var out Lineage
	if whole {
		for _, s := range srcs {
			if text.Says(s.ix.text, a.Value) {
				if s.link.Origin.Class >= User {
					return Lineage{s.link}
				}
				out = out.with(s.link)
			}
		}
		if out != nil {
			return out
		}
		if l := built(ix, srcs, a.Value); l != nil {
			return l
		}
	} else if l := coveredByUser(ix, srcs, true); l != nil {
		return l
	}
	for _, s := range srcs {
		for _, span := range ix.spans {
			if s.holds(ix, span) {
				out = out.with(s.link)
				break
			}
		}
	}
	if whole {
		for _, l := range m.leastLink() {
			out = out.with(l)
		}
	}
	return out
}

// built is the lineage of a web address that was put together of the user's words alone,
// on a host that he names as it is; nil for any other.
func built(ix *index, srcs []source, address string) (out Lineage) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	host := -1
	for i, s := range srcs {
		if s.link.Origin.Class >= User && text.Says(s.ix.text, u.Host) {
			host = i
			break
		}
	}
	if host < 0 {
		return nil
	}
	out = Lineage{srcs[host].link}
	for _, span := range ix.spans {
		i := slices.IndexFunc(srcs, func(s source) bool { return s.link.Origin.Class >= User && s.holds(ix, span) })
		if i < 0 {
			return nil
		}
		out = out.with(srcs[i].link)
	}
	return out
}

// onlyWhole reports whether an argument's value is right only as a whole. Where no type
// says what it is, its form does.
func onlyWhole(a *Arg) bool {
	switch strings.Trim(a.Type, "[]") {
	case "account", "mailbox", "phone", "url", "host", "code":
		return true
	case "":
		vs := text.Values(a.Value)
		if len(vs) != 1 || vs[0].Text != a.Value {
			return false
		}
		switch vs[0].Kind {
		case text.Account, text.Email, text.Phone, text.URL, text.Host, text.IP:
			return true
		}
	}
	return false
}

// coveredByUser is the link to the one thing of the user's that holds every span,
// nil if there is none. What they say in this session comes before records.
func coveredByUser(ix *index, srcs []source, records bool) Lineage {
	if len(ix.spans) == 0 {
		return nil
	}
next:
	for _, s := range srcs {
		if s.link.Origin.Class < User || s.link.Segment == 0 && !records {
			continue
		}
		for _, span := range ix.spans {
			if !s.holds(ix, span) {
				continue next
			}
		}
		return Lineage{s.link}
	}
	return nil
}

func (l Lineage) with(k Link) Lineage {
	for _, have := range l {
		if have.Segment == k.Segment && have.Record == k.Record {
			return l
		}
	}
	return append(l, k)
}

// sources are the segments of the window, and after them what recall brought in.
func (m *Memory) sources() []source {
	if n := len(m.window); len(m.srcs) != n+len(m.recalled) || m.inWindow != n {
		m.srcs, m.inWindow = slices.Grow(m.srcs[:0], n+len(m.recalled)), n
		for i := range m.window {
			s := &m.window[i]
			if i == len(m.indexes) {
				m.indexes = append(m.indexes, m.opts.Cache.index(s.Text))
			}
			m.srcs = append(m.srcs, source{Link{Segment: s.ID, Origin: s.Origin}, m.indexes[i]})
		}
		for i := range m.recalled {
			r := &m.recalled[i]
			if r.ix == nil {
				r.ix = m.opts.Cache.index(r.text)
			}
			m.srcs = append(m.srcs, source{Link{Record: r.id, Origin: r.origin}, r.ix})
		}
	}
	return m.srcs
}

// entered is what recall brought into the context.
type entered struct {
	id, text string
	origin   Origin
	ix       *index // of text, once it was asked for
}

// leastLink is the least trusted of what is in sight, the window and what was recalled;
// the first of equals.
func (m *Memory) leastLink() Lineage {
	var least *Link
	srcs := m.sources()
	for i := range srcs {
		if l := &srcs[i].link; least == nil || l.Origin.Less(least.Origin) {
			least = l
		}
	}
	if least == nil {
		return nil
	}
	return Lineage{*least}
}
