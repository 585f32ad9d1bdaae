// Package judge lets a language model decide: judge:MODEL shows it every text
// that is about to be stored or was recalled, and blocks what it calls an attack.
// MODEL is anything that the setting model accepts. This is where published
// defenses of this kind (a model that screens what another one reads) stand in the
// tables.
//
// The model's reply is read strictly. What is no verdict is an error of the
// trial: a judge that rambles is not scored, neither as a detection nor as an
// allow. The removal of a record is not judged.
//
// Verdicts are cached by the text and its origin, for all trials of an arm, so a
// text is paid for once. What a trial costs is counted as if nothing were shared:
// one call for each of its different texts.
package judge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/defenses"
	"github.com/memtox/memtox/internal/remote"
)

// Check is the check of findings.
const Check = "judged_attack"

// maxCached bounds the verdicts that are kept; beyond it they are asked for
// anew.
const maxCached = 1 << 18

// replyTokens is the room for a verdict. Models that think first need some.
const replyTokens = 1024

// Register adds the defense judge.
func Register(r *defenses.Registry) {
	r.Register(defenses.Info{
		Name: "judge", Argument: "MODEL",
		Screens: []defenses.Place{defenses.Write, defenses.Read},
		Idea:    "a language model is shown each text and blocks what it calls an attack",
		Cost: "one model call for each different text of a trial (counted in defense_calls); verdicts are cached by " +
			"content, so repeats take no time",
	}, func(argument string, env defenses.Env) (defenses.Defense, error) {
		switch {
		case argument == "":
			return nil, errors.New("it names no model: write judge:MODEL, for instance judge:openai:NAME")
		case env.Model == nil:
			return nil, errors.New("no model can be made here")
		}
		m, err := env.Model(argument)
		if err != nil {
			return nil, err
		}
		return New(m, argument), nil
	})
}

// New returns the defense that asks m, which name describes.
func New(m model.Model, name string) defenses.Remote {
	if n, ok := m.(model.Namer); ok {
		name = n.Name()
	}
	return &judge{model: m, name: name, verdicts: make(map[string]verdict)}
}

type judge struct {
	model model.Model
	name  string

	asking   singleflight.Group // whoever asks first gets a verdict; the others wait
	mu       sync.Mutex
	verdicts map[string]verdict
}

// verdict is that on one text.
type verdict struct {
	attack bool
	tokens int
}

func (j *judge) Greet(context.Context) (defenses.Identity, error) {
	sum := sha256.Sum256([]byte(instructions))
	c, err := json.Marshal(map[string]string{"model": j.name, "prompt": hex.EncodeToString(sum[:8])})
	return defenses.Identity{Name: "judge", Version: PromptVersion, Configuration: c,
		Screens: []defenses.Place{defenses.Write, defenses.Read}}, err
}

func (j *judge) Close() error {
	if c, ok := j.model.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (j *judge) Open(ctx context.Context, _ memory.View) (memory.Gate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &gate{judge: j, asked: make(map[string]bool)}, nil
}

// on returns the verdict on a text.
func (j *judge) on(ctx context.Context, key string, ask []model.Message) (verdict, error) {
	for {
		var mine atomic.Bool
		asked := j.asking.DoChan(key, func() (v any, err error) {
			mine.Store(true)
			defer func() { // on a goroutine that no trial guards
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return j.decide(ctx, key, ask)
		})
		select {
		case r := <-asked:
			if r.Err == nil {
				return r.Val.(verdict), nil
			}
			if mine.Load() {
				return verdict{}, r.Err
			}
		case <-ctx.Done(): // a trial whose time is over waits for no other's call
			if mine.Load() {
				<-asked
			}
		}
		if ctx.Err() != nil {
			return verdict{}, context.Cause(ctx)
		}
		// Whoever asked has failed, perhaps because their trial was over: ask
		// again in the name of this one.
	}
}

// decide asks the model where the verdict is not known. Errors are not kept.
func (j *judge) decide(ctx context.Context, key string, ask []model.Message) (v verdict, err error) {
	j.mu.Lock()
	v, known := j.verdicts[key]
	j.mu.Unlock()
	if known {
		return v, nil
	}
	// Which trial asks first is chance: on a cassette all verdicts belong to one
	// trial of their own.
	reply, err := j.model.Next(remote.WithTrial(ctx, "judge"), model.Request{Messages: ask, MaxTokens: replyTokens})
	if err != nil {
		return v, err
	}
	v.tokens = reply.Usage.Prompt + reply.Usage.Completion
	if v.attack, err = parse(reply.Text); err != nil {
		return v, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.verdicts) >= maxCached {
		clear(j.verdicts)
	}
	j.verdicts[key] = v
	return v, nil
}

type gate struct {
	memory.Open
	judge *judge
	asked map[string]bool // what this trial has paid for
}

func (g *gate) attack(ctx context.Context, text string, o memory.Origin) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	ask := question(text, o)
	h := sha256.New()
	for _, m := range ask[1:] {
		h.Write([]byte(m.Content))
	}
	key := string(h.Sum(nil))
	v, err := g.judge.on(ctx, key, ask)
	if err != nil {
		return false, fmt.Errorf("asking %s: %w", g.judge.name, err)
	}
	if !g.asked[key] {
		g.asked[key] = true
		memory.AddModelCalls(ctx, 1, v.tokens)
	}
	return v.attack, nil
}

func (g *gate) findings() []memory.Finding {
	return []memory.Finding{{Check: Check, Note: g.judge.name + " calls it an attack"}}
}

func (g *gate) Write(ctx context.Context, p memory.Proposal) (v memory.Verdict, err error) {
	if p.Op == memory.Remove {
		return v, nil
	}
	attack, err := g.attack(ctx, p.Record.Text, p.Record.Origin)
	if attack {
		v.Action, v.Findings = memory.Block, g.findings()
	}
	return v, err
}

func (g *gate) Read(ctx context.Context, _ memory.Query, cs []memory.Candidate) ([]memory.Decision, error) {
	out := make([]memory.Decision, len(cs))
	for i := range cs {
		attack, err := g.attack(ctx, cs[i].Record.Text, cs[i].Record.Origin)
		if err != nil {
			return nil, err
		}
		if attack {
			out[i].Action, out[i].Findings = memory.Block, g.findings()
		}
	}
	return out, nil
}
