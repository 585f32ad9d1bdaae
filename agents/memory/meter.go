package memory

import (
	"context"
	"time"
)

// Meter collects what the gate of one trial spends outside its own code: time on
// the way to a defense in another process, and model calls. A gate reports it
// by [AddWire] and [AddModelCalls], through whatever chain it stands in. It
// belongs to the trial's goroutine.
type Meter struct {
	// ModelCalls and Tokens are what the defense asked of a model so far.
	ModelCalls, Tokens int

	wire time.Duration // since it was last taken
}

type meterKey struct{}

// WithMeter returns a context whose gate calls are metered. The same Meter
// belongs into [Options], so that events have the time on the wire apart.
func WithMeter(ctx context.Context) (context.Context, *Meter) {
	m := new(Meter)
	return context.WithValue(ctx, meterKey{}, m), m
}

// AddWire says that so much of a gate call's time was not the defense's own.
func AddWire(ctx context.Context, d time.Duration) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok && d > 0 {
		m.wire += d
	}
}

// AddModelCalls says that the defense asked a model so many times, for so many
// tokens.
func AddModelCalls(ctx context.Context, calls, tokens int) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.ModelCalls += calls
		m.Tokens += tokens
	}
}

// split takes the time on the wire out of that of a gate call.
func (m *Meter) split(took time.Duration) (own, wire time.Duration) {
	if m == nil {
		return took, 0
	}
	wire = min(m.wire, took)
	m.wire = 0
	return took - wire, wire
}
