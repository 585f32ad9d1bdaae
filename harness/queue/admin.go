package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/internal/remote"
)

type State struct {
	Queue   string   `json:"queue"`
	RunID   string   `json:"run_id"` // "" where there is none
	Over    bool     `json:"over"`
	Planned int64    `json:"planned"` // trials of the run
	Spans   uint64   `json:"spans"`   // that wait or are worked on
	Busy    int      `json:"busy"`    // of these, that are worked on
	Rows    uint64   `json:"rows"`    // finished trials that the coordinator has not taken yet
	Workers []Status `json:"workers"`
}

// Look says what a queue holds, and listens a moment for workers.
func Look(ctx context.Context, o Options) (*State, error) {
	nc, js, err := o.connect(ctx, "status", time.Second)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	n := namesOf(o.Name)
	c := &Coordinator{Options: o}
	sub, err := nc.Subscribe(n.status, c.hear)
	if err != nil {
		return nil, fmt.Errorf("listening for workers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	s := &State{Queue: o.Name}
	bucket, err := js.KeyValue(ctx, n.bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the queue %s: %w", o.Name, err)
	}
	if a, err := announced(ctx, bucket); err == nil {
		s.RunID, s.Over, s.Planned = a.RunID, a.Over, a.Planned
	}
	if jobs, err := js.Stream(ctx, n.jobs); err == nil {
		var busy uint64
		s.Spans, busy, _ = load(ctx, jobs, "workers")
		s.Busy = int(busy)
	}
	if rows, err := js.Stream(ctx, n.rows); err == nil {
		s.Rows, _, _ = load(ctx, rows, "coordinator")
	}
	if err := remote.Sleep(ctx, statusGap+statusGap/4); err != nil {
		return nil, err
	}
	s.Workers = c.Workers()
	return s, nil
}

// Drain takes back the spans that nobody works on, sends the workers home and
// leaves finished trials where they are, for the coordinator to take when the
// run is resumed. It returns how many spans were taken back.
func Drain(ctx context.Context, o Options) (taken uint64, err error) {
	nc, js, err := o.connect(ctx, "drain", time.Second)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("draining the queue %s: %w", o.Name, err)
		}
	}()
	n := namesOf(o.Name)
	if jobs, err := js.Stream(ctx, n.jobs); err == nil {
		info, err := jobs.Info(ctx)
		if err == nil {
			err = jobs.Purge(ctx)
		}
		if err != nil {
			return 0, err
		}
		taken = info.State.Msgs
	}
	bucket, err := js.KeyValue(ctx, n.bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return taken, nil
	}
	if err != nil {
		return taken, err
	}
	a, err := announced(ctx, bucket)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return taken, nil
	}
	if err != nil {
		return taken, err
	}
	q := &queue{bucket: bucket, note: *a}
	q.note.Over = true
	return taken, q.announce(ctx)
}
