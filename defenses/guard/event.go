package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"

	"github.com/memtox/memtox/agents/memory"
)

// Event is one decision of the guard, for a log or a trace. It holds no content:
// the hash tells whether two events were about the same.
type Event struct {
	Gate      memory.Moment // write, read or act
	Time      time.Time     // by the trial's clock
	Took      time.Duration // by the machine's
	Trial     uint64
	Principal string
	Route     memory.Route
	Op        memory.Op // of a write
	Record    string    // id; empty for a tool call
	Class     memory.Class
	Bytes     int    // of the content; for a tool call of its arguments
	SHA256    string // of the content, in hexadecimal
	Mode      Mode
	Action    memory.Action // what was answered
	Would     memory.Action // what the rules say: differs in the modes warn and strip
	Findings  []Finding     // without their notes, which may quote
	// Content and Key stand here only where Options.Reveal asks for them; then
	// findings keep their notes.
	Content, Key string
}

// Hook is told of every decision. It must not keep the event.
type Hook func(context.Context, *Event)

// begin is when a decision began, for the hook.
func (g *gate) begin() (t time.Time) {
	if g.hook != nil {
		t = time.Now()
	}
	return t
}

// emit tells the hook, if there is one, of a decision about the subject.
func (g *gate) emit(ctx context.Context, e Event, action memory.Action, began time.Time) {
	if g.hook == nil {
		return
	}
	s := &g.subject
	e.Took = time.Since(began)
	e.Time, e.Trial, e.Mode, e.Action, e.Would = g.view.Now(), g.view.Trial(), g.policy.Mode, action, s.action()
	if e.Gate != memory.AtAct {
		r := &s.Record
		e.Principal, e.Record, e.Class, e.Content, e.Key = r.Principal, r.ID, r.Origin.Class, r.Text, r.Key
	}
	sum := sha256.Sum256([]byte(e.Content))
	e.Bytes, e.SHA256 = len(e.Content), hex.EncodeToString(sum[:])
	e.Findings = slices.Clone(s.findings)
	if !g.reveal {
		e.Content, e.Key = "", ""
		for i := range e.Findings {
			e.Findings[i].Note = ""
		}
	}
	g.hook(ctx, &e)
}

// Slog returns a hook that logs one structured line a decision: what was stopped
// at level Warn, what was found and allowed at Info, the rest at Debug.
func Slog(l *slog.Logger) Hook {
	return func(ctx context.Context, e *Event) {
		level := slog.LevelDebug
		switch {
		case e.Action > memory.Allow || e.Would > memory.Allow:
			level = slog.LevelWarn
		case len(e.Findings) > 0:
			level = slog.LevelInfo
		}
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("gate", e.Gate.String()), slog.String("action", e.Action.String()),
			slog.String("would", e.Would.String()),
			slog.String("mode", string(e.Mode)), slog.String("route", e.Route.String()), slog.String("record", e.Record),
			slog.String("class", e.Class.String()), slog.String("principal", e.Principal), slog.Int("bytes", e.Bytes),
			slog.String("sha256", e.SHA256), slog.Time("at", e.Time), slog.Duration("took", e.Took),
			slog.Uint64("trial", e.Trial),
		}
		if e.Gate == memory.AtWrite {
			attrs = append(attrs, slog.String("op", e.Op.String()))
		}
		if e.Content != "" || e.Key != "" {
			attrs = append(attrs, slog.String("key", e.Key), slog.String("content", e.Content))
		}
		if len(e.Findings) > 0 {
			attrs = append(attrs, slog.Any("findings", findingsValue(e.Findings)))
		}
		l.LogAttrs(ctx, level, "guard decision", attrs...)
	}
}

// findingsValue is the findings as a log shows them.
func findingsValue(fs []Finding) []map[string]string {
	out := make([]map[string]string, len(fs))
	for i, f := range fs {
		out[i] = map[string]string{"on": string(f.On), "check": f.Check, "severity": f.Severity.String(),
			"action": f.Action.String(), "rule": f.Rule}
		if f.Note != "" {
			out[i]["note"] = f.Note
		}
	}
	return out
}
