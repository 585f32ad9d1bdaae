package external

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// verdict reads a judgement strictly: what is not a clear answer is an error and
// never an allow.
func (j *Judgement) verdict() (memory.Verdict, error) {
	var v memory.Verdict
	if j.Action == "" {
		return v, errors.New("the answer has no action: one of allow, redact, defer, quarantine, block")
	}
	if err := v.Action.UnmarshalText([]byte(text.Clip(j.Action, 40))); err != nil {
		return v, fmt.Errorf("the answer: %w", err)
	}
	if j.Value != nil && (v.Action == memory.Redact || v.Action == memory.Defer) {
		v.Text = *j.Value
	}
	if v.Action == memory.Redact && j.Value == nil {
		return v, errors.New("the answer redacts without a value: say what stands in the place of the content")
	}
	if len(j.Signature) > maxSignature || len(j.SignedBy) > maxCheck {
		return v, fmt.Errorf("the answer's signature is longer than %d bytes, or its signed_by than %d", maxSignature,
			maxCheck)
	}
	v.Held, v.Scope, v.Signature, v.SignedBy, v.Unsure = j.Held && v.Action == memory.Defer, j.Scope, j.Signature,
		j.SignedBy, j.Unsure
	if j.Score != nil {
		v.Score, v.HasScore = *j.Score, true
	}
	v.Findings = j.findings()
	return v, nil
}

func (j *Judgement) decision() (memory.Decision, error) {
	v, err := j.verdict()
	v.Held, v.Signature, v.SignedBy = false, nil, "" // nothing is stored
	return memory.Decision{Verdict: v, Rank: j.Rank, Attribute: j.Attribute}, err
}

func (j *Judgement) findings() []memory.Finding {
	n := min(max(len(j.Detectors), len(j.Reasons)), maxFindings)
	if n == 0 {
		return nil
	}
	out := make([]memory.Finding, n)
	for i := range out {
		out[i].Check = "reason" // a reason that no detector stands by
		if i < len(j.Detectors) {
			out[i].Check = identifier(j.Detectors[i])
		}
		if i < len(j.Reasons) {
			out[i].Note = text.Clip(strings.ToValidUTF8(j.Reasons[i], "\uFFFD"), maxNote)
		}
		if i < len(j.Spans) && j.Spans[i][0] >= 0 && j.Spans[i][1] >= j.Spans[i][0] {
			out[i].Start, out[i].End = j.Spans[i][0], j.Spans[i][1]
		}
		if i < len(j.Refused) {
			out[i].Argument, out[i].Value = text.Clip(j.Refused[i][0], maxCheck), text.Clip(j.Refused[i][1], maxNote)
		}
	}
	return out
}

// identifier is a detector's id as rows can hold it: they join ids by semicolons.
func identifier(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ';' || r == '\uFFFD' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(s, "_"))
	if s == "" {
		return "unnamed"
	}
	return text.Clip(s, maxCheck)
}

// JudgementOf is a verdict in the words of the protocol.
func JudgementOf(v *memory.Verdict) Judgement {
	j := Judgement{Action: v.Action.String(), Held: v.Held, Scope: v.Scope, Signature: v.Signature, SignedBy: v.SignedBy,
		Unsure: v.Unsure}
	if v.HasScore {
		j.Score = &v.Score
	}
	if v.Action == memory.Redact || v.Action == memory.Defer && v.Text != "" {
		j.Value = &v.Text
	}
	spans, refused := false, false
	for _, f := range v.Findings {
		j.Detectors = append(j.Detectors, f.Check)
		j.Reasons = append(j.Reasons, f.Note)
		j.Spans = append(j.Spans, [2]int{f.Start, f.End})
		j.Refused = append(j.Refused, [2]string{f.Argument, f.Value})
		spans, refused = spans || f.End > 0, refused || f.Argument != ""
	}
	if !refused {
		j.Refused = nil
	}
	if !spans {
		j.Spans = nil
	}
	return j
}

// JudgementOfDecision is a decision in the words of the protocol.
func JudgementOfDecision(d *memory.Decision) Judgement {
	j := JudgementOf(&d.Verdict)
	j.Rank, j.Attribute = d.Rank, d.Attribute
	return j
}
