package external

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/memtox/memtox/internal/remote"
)

// maxID keeps ids within the integers that every JSON library reads exactly.
const maxID = 1 << 53

// closeGrace is how long a guard may take to end once its input is closed.
const closeGrace = 2 * time.Second

// program is a guard on standard input and output. It serves many trials at
// once: answers find their questions by id.
type program struct {
	child *remote.Child

	mu    sync.Mutex
	open  map[uint64]chan *Answer // asked, be it that nobody waits any more
	heard time.Time               // of the last answer
	done  [256]uint64             // the last ids that were answered, for messages
	count int
}

func startProgram(o remote.ProcessOptions) (*program, error) {
	p := &program{open: make(map[uint64]chan *Answer), heard: time.Now()}
	o.Line = p.line
	var err error
	p.child, err = remote.Start(o)
	return p, err
}

func (p *program) lost() <-chan struct{} { return p.child.Done() }
func (p *program) why() error            { return p.child.Err() }

func (p *program) close(err error) {
	if err != nil {
		p.child.Fail(err)
	}
	p.child.Close(closeGrace)
}

func (p *program) send(ctx context.Context, q *Request) (func(context.Context) (*Answer, error), error) {
	answer := make(chan *Answer, 1)
	p.mu.Lock()
	// Ids are drawn, so that no guard can answer a question before it is asked.
	for q.ID == 0 || p.open[q.ID] != nil {
		q.ID = rand.Uint64N(maxID)
	}
	p.open[q.ID] = answer
	p.mu.Unlock()
	line, err := remote.Line(q)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	if err := p.child.Send(ctx, line); err != nil {
		p.missed(ctx, sent)
		return nil, err
	}
	return func(ctx context.Context) (*Answer, error) {
		select {
		case a := <-answer:
			return a, nil
		default:
		}
		select {
		case a := <-answer:
			return a, nil
		case <-p.child.Done():
			select {
			case a := <-answer: // it answered, then it ended
				return a, nil
			default:
			}
			return nil, p.child.Err()
		case <-ctx.Done():
			p.missed(ctx, sent)
			return nil, context.Cause(ctx)
		}
	}, nil
}

// missed notes a question that nobody waits for any more. A guard that has answered
// nothing since it was asked, in all its time, hangs, and is ended; else only this
// answer is late.
func (p *program) missed(ctx context.Context, sent time.Time) {
	p.mu.Lock()
	hangs := p.heard.Before(sent)
	p.mu.Unlock()
	if late := context.Cause(ctx); hangs && isLate(late) {
		p.child.Fail(fmt.Errorf("it hangs: %w", late))
	}
}

// line takes one line that the guard wrote.
func (p *program) line(b []byte) error {
	a, err := readAnswer(b)
	if err != nil {
		return &violation{fmt.Sprintf("it wrote a line that is no answer: %s (%v)",
			remote.Quote(string(b[:min(len(b), 300)])), err)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, ok := p.open[a.ID]
	switch {
	case ok:
		delete(p.open, a.ID)
		answer <- a
	case a.ID != 0 && slices.Contains(p.done[:], a.ID):
		return &violation{fmt.Sprintf("it answered question %d twice", a.ID)}
	default:
		return &violation{fmt.Sprintf("it answered a question with the id %d, which nobody has asked", a.ID)}
	}
	p.heard = time.Now()
	p.done[p.count%len(p.done)] = a.ID
	p.count++
	return nil
}
