package guard

import (
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// maxStrip bounds how often a content is judged again after something was taken
// out of it.
const maxStrip = 8

// strip takes out of a content the sentences that the rules would stop it for and
// judges what is left, until nothing stops it: then it returns that and its
// action, a redaction or a deferral. It returns a block where nothing is left, or
// where what stops the content has no place in it. The findings of the first
// judgement stay the subject's.
func (g *gate) strip(p memory.Proposal) (clean string, left memory.Action, err error) {
	s := &g.subject
	first := append([]Finding(nil), s.findings...)
	defer func() { s.findings, s.Proposal = first, p }()
	clean = p.Record.Text
	for range maxStrip {
		rest, ok := withoutSentences(clean, s.findings)
		if clean = strings.TrimSpace(rest); !ok || clean == "" {
			return "", memory.Block, nil
		}
		next := p
		next.Record.Text = clean
		if err := g.judge(next); err != nil {
			return "", memory.Block, err
		}
		if a := s.action(); !a.Stops() {
			clean, _ = g.redact(clean, s.findings)
			return clean, max(a, memory.Redact), nil
		}
	}
	return "", memory.Block, nil
}

// withoutSentences takes the sentences out for which the rules stop a content. It returns false where one of these has
// no place.
func withoutSentences(s string, fs []Finding) (string, bool) {
	var cut []Finding
	for _, f := range fs {
		if !f.Action.Stops() {
			continue
		}
		if f.key || f.End <= f.Start || f.End > len(s) {
			return "", false
		}
		cut = append(cut, f)
	}
	var b strings.Builder
	at := 0
	for _, sentence := range text.Sentences(s) {
		for _, f := range cut {
			if f.Start < sentence.End && sentence.Start < f.End {
				b.WriteString(s[at:max(at, sentence.Start)])
				at = max(at, sentence.End)
				for at < len(s) && s[at] == ' ' {
					at++ // one gap is enough
				}
				break
			}
		}
	}
	if at == 0 {
		return "", false
	}
	b.WriteString(s[at:])
	return b.String(), true
}
