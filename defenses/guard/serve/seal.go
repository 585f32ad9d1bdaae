package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/memtox/memtox/defenses/guard/seal"
	"github.com/memtox/memtox/defenses/guard/store"
)

// Defaults of a [Sealer].
const (
	DefaultSealEvery = 15 * time.Minute
	DefaultSealAfter = 256
)

// Sealer seals the store of a server by itself, so that no more of its journal than was
// said stands behind the last sealed snapshot. Decisions go on meanwhile.
type Sealer struct {
	Store    *store.History
	Signer   note.Signer
	Verifier note.Verifier
	// Every is the time after which what has changed is sealed, After the number of
	// changes. 0 does not look at it.
	Every time.Duration
	After int
	Now   func() time.Time // nil is time.Now
	// Told is called after each sealing and each that failed; nil for none.
	Told func(Sealing)

	mu     sync.Mutex
	last   Sealing
	failed uint64
	ledger *seal.Ledger
}

// Sealing is what became of one sealing.
type Sealing struct {
	At       time.Time `json:"at"`
	Snapshot string    `json:"snapshot,omitempty"`
	Entries  uint64    `json:"entries"` // of the journal that were sealed, that of the snapshot included
	// Left says that another process left them behind: one that was killed, say. They
	// were verified before.
	Left bool  `json:"left,omitempty"`
	Err  error `json:"-"`
}

// Status is how the store stands.
type Status struct {
	Entries  uint64  `json:"entries"`          // of the journal
	Unsealed uint64  `json:"unsealed_entries"` // behind the last sealed snapshot
	Failed   uint64  `json:"failed_sealings"`
	Last     Sealing `json:"last_sealing"` // of this process
}

// Begin verifies and seals what another process has left behind. From then on the store
// signs its head. A store that is not sound is an error that wraps
// [seal.ErrIntegrity].
func (s *Sealer) Begin(ctx context.Context) error {
	if s.Now == nil {
		s.Now = time.Now
	}
	s.ledger = seal.NewLedger(s.Store)
	sealed, last, err := s.stands(ctx)
	if err != nil || last > sealed {
		if err == nil {
			err = s.sound(ctx, sealed)
		}
		if err != nil {
			return fmt.Errorf("what was left unsealed: %w", err)
		}
	}
	if err := s.Store.Sign(s.Signer.Sign); err != nil {
		return err
	}
	if last > sealed || sealed == 0 {
		// A store that was never sealed is, empty or not: with a key beside it, it would
		// look as if its seals had been taken out.
		return s.seal(ctx, last > sealed)
	}
	return nil
}

// sound verifies the store; one that was never sealed has no signature yet.
func (s *Sealer) sound(ctx context.Context, sealed uint64) error {
	v := s.Verifier
	if sealed == 0 {
		v = nil
	}
	found, err := s.ledger.Verify(ctx, v, nil)
	if err == nil && !found.OK() {
		err = fmt.Errorf("%w: %s", seal.ErrIntegrity, found.Problems[0].Note)
	}
	return err
}

// stands returns the last entries of the journal that are sealed and that there are.
func (s *Sealer) stands(ctx context.Context) (sealed, last uint64, err error) {
	if sealed, err = s.ledger.Sealed(ctx); err == nil {
		last, err = s.Store.Last(ctx)
	}
	return sealed, last, err
}

func (s *Sealer) seal(ctx context.Context, left bool) error {
	sealed, _, err := s.stands(ctx)
	done := Sealing{At: s.Now(), Left: left}
	if err == nil {
		var snap store.Snapshot
		if snap, err = store.NewCurator(s.Store, Agent, s.Now).Snapshot(ctx, "", seal.Attended); err == nil {
			done.Snapshot, done.Entries = snap.ID, snap.Seq-sealed
			_, err = s.ledger.Seal(ctx, s.Signer, s.Verifier)
		}
	}
	done.Err = err
	s.mu.Lock()
	if err != nil {
		s.failed++
	} else {
		s.last = done
	}
	s.mu.Unlock()
	if s.Told != nil {
		s.Told(done)
	}
	return err
}

// Run seals until ctx is over, and once more then, what there is. It looks at the store
// each second; after a sealing that failed, a minute later.
func (s *Sealer) Run(ctx context.Context) {
	var due time.Time // for what has changed; zero while nothing has
	var wait time.Time
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		over := false
		select {
		case <-ctx.Done():
			ctx, over = context.WithoutCancel(ctx), true
		case <-tick.C:
		}
		now := time.Now()
		if now.Before(wait) && !over {
			continue
		}
		sealed, last, err := s.stands(ctx)
		switch {
		case err == nil && last == sealed:
			due = time.Time{}
		case err == nil && due.IsZero() && s.Every > 0:
			due = now.Add(s.Every)
		}
		changes := s.After > 0 && last >= sealed+uint64(s.After)
		if err != nil || last > sealed && (over || changes || s.Every > 0 && !now.Before(due)) {
			if err = s.seal(ctx, false); err != nil {
				wait = now.Add(time.Minute)
			}
			due = time.Time{}
		}
		if over {
			return
		}
	}
}

// Status says how the store stands.
func (s *Sealer) Status(ctx context.Context) (Status, error) {
	sealed, last, err := s.stands(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Entries: last, Unsealed: last - min(last, sealed), Failed: s.failed, Last: s.last}, err
}
