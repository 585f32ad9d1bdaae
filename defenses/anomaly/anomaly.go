package anomaly

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/text"
)

// The defaults of our own mode.
const (
	DefaultK               = 5    // neighbours of the density signal
	DefaultQuantile        = 0.95 // one ordinary record in twenty lies beyond it
	DefaultMinObservations = 20   // fewer ordinary records than this judge nothing
	DefaultMaxBaseline     = 200  // ordinary records that are kept
	maxOwn                 = 32   // trusted records of the trial that are added
	maxK                   = 64
)

// Options configure our own mode. The zero value has the defaults.
type Options struct {
	// Z calls a record an outlier where its distance from the centre is at least
	// this many standard deviations beyond the ordinary mean. 0 uses the
	// calibrated Quantile instead.
	Z               float64
	K               int
	Quantile        float64
	MinObservations int
	MaxBaseline     int
}

func (o Options) withDefaults() (Options, error) {
	o.K, o.Quantile = cmp.Or(o.K, DefaultK), cmp.Or(o.Quantile, DefaultQuantile)
	o.MinObservations = cmp.Or(o.MinObservations, DefaultMinObservations)
	o.MaxBaseline = cmp.Or(o.MaxBaseline, DefaultMaxBaseline)
	switch {
	case o.K < 1 || o.K > maxK:
		return o, fmt.Errorf("anomaly: k is %d: from 1 to %d", o.K, maxK)
	case !(o.Quantile > 0 && o.Quantile < 1):
		return o, fmt.Errorf("anomaly: quantile is %v: between 0 and 1", o.Quantile)
	case !(o.Z >= 0):
		return o, fmt.Errorf("anomaly: z is %v: not below 0", o.Z)
	case o.MinObservations < 2 || o.MaxBaseline < o.MinObservations:
		return o, fmt.Errorf("anomaly: at least 2 observations, and no more than the baseline of %d holds", o.MaxBaseline)
	}
	return o, nil
}

// Findings of the write gate.
const (
	CheckOutlier      = "embedding_outlier"   // far from the centre of ordinary records
	CheckSparse       = "sparse_neighborhood" // no ordinary record near
	CheckCollision    = "cross_cluster"       // nearer to records of another origin than to those of its own
	CheckInsufficient = "insufficient_baseline"
)

// Register adds the defense anomaly.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name:     "anomaly",
		Screens:  []defenses.Place{defenses.Write},
		Argument: "memgar|z=Z+k=K+quantile=Q",
		Idea:     "embedding outlier, sparse neighbourhood, cross-cluster collision, calibrated on ordinary records",
		Tunables: []defenses.Tunable{
			{Key: "z", About: "standard deviations beyond the ordinary mean from which a record is an outlier",
				Argument: func(v string) string { return "z=" + v }},
			{Key: "quantile", About: "share of ordinary records that lie within, between 0 and 1",
				Argument: func(v string) string { return "quantile=" + v }},
			{Key: "k", About: "neighbours of the density signal, 1 to 64", Argument: func(v string) string { return "k=" + v }},
		},
		Cost: "no model calls; one embedding and 200 dot products a write, about 10 µs; state: 200 vectors a run, 32 a trial",
	}, func(argument string, env defenses.Env) (defenses.Defense, error) {
		if argument == "memgar" {
			return NewCompatible(env), nil
		}
		o, err := parseOptions(argument)
		if err != nil {
			return nil, err
		}
		return New(o, env)
	})
}

func parseOptions(s string) (Options, error) {
	var o Options
	if s == "" {
		return o, nil
	}
	for part := range strings.SplitSeq(s, "+") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "z":
			o.Z, err = strconv.ParseFloat(value, 64)
		case "quantile":
			o.Quantile, err = strconv.ParseFloat(value, 64)
		case "k":
			o.K, err = strconv.Atoi(value)
		default:
			return o, fmt.Errorf("anomaly: unknown option %q: memgar, or z=, k=, quantile= joined by +", part)
		}
		if err != nil {
			return o, fmt.Errorf("anomaly: %s is %q: a number", key, value)
		}
	}
	return o, nil
}

// New returns the defense in our own mode, fitted on env.Knowledge once for the
// whole run, by its first trial.
//
// A record that is an outlier in a sparse neighbourhood is quarantined; an
// outlier elsewhere, or one that collides with another cluster, is staged
// (usable as context until somebody decides); a sparse neighbourhood alone is a
// finding. Clusters are source classes.
func New(o Options, env defenses.Env) (defenses.Defense, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	embed := env.Embedder()
	known := sample(env.Knowledge, o.MaxBaseline)
	var base fitted[*baseline]
	return defenses.Func(func(ctx context.Context, _ memory.View) (memory.Gate, error) {
		b, err := base.get(ctx, embed, known, func(vectors [][]float32) *baseline { return fit(o, known, vectors) })
		if err != nil {
			return nil, err
		}
		return &gate{base: b, trial: ctx, embed: embed, sims: make([]float32, b.n)}, nil
	}), nil
}

// fitted is what is learnt from ordinary records. The first trial learns it, for a
// server may have to be asked: where that fails, so does the trial, and the next one
// asks again.
type fitted[T any] struct {
	sync.Mutex
	known bool
	value T
}

// batch is how many ordinary records are embedded by one request.
const batch = 64

func (f *fitted[T]) get(ctx context.Context, embed memory.Embed, of []memory.Record, fit func([][]float32) T) (T, error) {
	f.Lock()
	defer f.Unlock()
	if f.known {
		return f.value, nil
	}
	var vectors [][]float32
	for part := range slices.Chunk(of, batch) {
		texts := make([]string, len(part))
		for i := range part {
			texts[i] = part[i].Text
		}
		v, err := embed(ctx, texts)
		if err != nil {
			return f.value, fmt.Errorf("anomaly: embedding the ordinary records: %w", err)
		}
		vectors = append(vectors, v...)
	}
	f.value, f.known = fit(vectors), true
	return f.value, nil
}

type gate struct {
	memory.Open
	base  *baseline
	embed memory.Embed
	sims  []float32
	own   [][]float32 // trusted records of this trial
	extra []float32
	last  []float32 // the vector of text
	text  string

	trial context.Context // of embedding what was committed
	owed  []string        // what was, and could not be embedded: no verdict is given without it
}

func (g *gate) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return memory.Verdict{}, err
	}
	if p.Op == memory.Remove {
		return memory.Verdict{}, nil
	}
	b := g.base
	if b.n < b.opts.MinObservations {
		return memory.Verdict{Unsure: true, Findings: []memory.Finding{{Check: CheckInsufficient,
			Note: fmt.Sprintf("%d ordinary records, %d are needed", b.n, b.opts.MinObservations)}}}, nil
	}
	for ; len(g.owed) > 0; g.owed = g.owed[1:] {
		v, err := g.vector(ctx, g.owed[0])
		if err != nil {
			return memory.Verdict{}, err
		}
		g.join(v)
	}
	v, err := g.vector(ctx, p.Record.Text)
	if err != nil {
		return memory.Verdict{}, err
	}
	if len(v) != b.dim || !unit(v) {
		return memory.Verdict{Unsure: true, Findings: []memory.Finding{{Check: CheckInsufficient,
			Note: "the content has no embedding"}}}, nil
	}
	b.similarities(v, g.sims)
	g.extra = g.extra[:0]
	for _, o := range g.own {
		g.extra = append(g.extra, text.Dot(v, o))
	}
	far := distance(v, b.center)
	near := b.sparse(g.sims, g.extra, -1)
	outlier := b.beyond(b.distances, far)
	if b.opts.Z > 0 {
		outlier = b.sd > 0 && (far-b.mean)/b.sd >= b.opts.Z
	}
	sparse := b.beyond(b.sparsity, near)
	collides := false
	if m, ok := b.margin(g.sims, p.Record.Origin.Class); ok && m > 0 {
		collides = b.beyond(b.margins[p.Record.Origin.Class], m)
	}
	out := memory.Verdict{HasScore: true}
	if b.sd > 0 {
		out.Score = (far - b.mean) / b.sd
	}
	add := func(check, note string, x float64) {
		out.Findings = append(out.Findings, memory.Finding{Check: check,
			Note: note + " " + strconv.FormatFloat(x, 'f', 3, 64)})
	}
	if outlier {
		add(CheckOutlier, "distance from the centre", far)
	}
	if sparse {
		add(CheckSparse, "mean distance to the nearest ordinary records", near)
	}
	if collides {
		add(CheckCollision, "of class "+p.Record.Origin.Class.String()+"; mean distance to the nearest", near)
	}
	switch {
	case outlier && sparse:
		out.Action = memory.Quarantine
	case outlier || collides:
		out.Action = memory.Defer
	}
	return out, nil
}

// vector embeds a text, and keeps it for Committed.
func (g *gate) vector(ctx context.Context, s string) ([]float32, error) {
	v, err := g.embed(ctx, []string{s})
	if err != nil {
		return nil, fmt.Errorf("anomaly: embedding the content: %w", err)
	}
	g.last, g.text = v[0], s
	return g.last, nil
}

// Committed implements [memory.Gate]. Only what the user or the operator said
// joins the baseline: else whoever writes twice is ordinary the second time.
func (g *gate) Committed(c memory.Change) {
	if c.Op == memory.Remove || c.Record.Origin.Class < memory.User || !c.Record.State.Visible() ||
		g.base.n < g.base.opts.MinObservations || len(g.own)+len(g.owed) == maxOwn {
		return
	}
	v := g.last
	if g.text != c.Record.Text { // never judged, or redacted on the way
		var err error
		if v, err = g.vector(g.trial, c.Record.Text); err != nil {
			g.owed = append(g.owed, c.Record.Text)
			return
		}
	}
	g.join(v)
}

func (g *gate) join(v []float32) {
	if len(v) == g.base.dim && unit(v) {
		g.own = append(g.own, v)
	}
}

// NewCompatible returns the defense in memgar's mode: a detector observes
// env.Knowledge, clusters are source classes, and severities act as in our own
// mode.
func NewCompatible(env defenses.Env) defenses.Defense {
	embed := env.Embedder()
	var names []string
	for _, r := range env.Knowledge {
		if c := r.Origin.Class.String(); !slices.Contains(names, c) {
			names = append(names, c)
		}
	}
	var detector fitted[*Memgar]
	return defenses.Func(func(ctx context.Context, _ memory.View) (memory.Gate, error) {
		m, err := detector.get(ctx, embed, env.Knowledge, func(vectors [][]float32) *Memgar {
			m := NewMemgar()
			for i, v := range vectors {
				m.Observe(widen(v), env.Knowledge[i].Origin.Class.String())
			}
			return m
		})
		if err != nil {
			return nil, err
		}
		return &compatible{m: m, clusters: names, embed: embed}, nil
	})
}

type compatible struct {
	memory.Open
	m        *Memgar // shared: only read
	clusters []string
	embed    memory.Embed
}

func (g *compatible) Write(ctx context.Context, p memory.Proposal) (memory.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return memory.Verdict{}, err
	}
	if p.Op == memory.Remove {
		return memory.Verdict{}, nil
	}
	vectors, err := g.embed(ctx, []string{p.Record.Text})
	if err != nil {
		return memory.Verdict{}, fmt.Errorf("anomaly: embedding the content: %w", err)
	}
	v := g.m.Score(widen(vectors[0]), p.Record.Origin.Class.String(), g.clusters...)
	if v.Insufficient {
		return memory.Verdict{Unsure: true, Findings: []memory.Finding{{Check: CheckInsufficient, Note: v.Explanation}}}, nil
	}
	out := memory.Verdict{Score: v.Z, HasScore: true}
	if v.Severity != "none" {
		out.Findings = []memory.Finding{{Check: "memgar_" + v.Severity, Note: v.Explanation}}
	}
	switch v.Severity {
	case "high":
		out.Action = memory.Quarantine
	case "medium":
		out.Action = memory.Defer
	}
	return out, nil
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
