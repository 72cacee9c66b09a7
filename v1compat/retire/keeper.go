package retire

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/db/pg"
)

const (
	// pollEvery is how often the state is read without a notification: the longest delay of a
	// change whose notification is lost.
	pollEvery = 10 * time.Second
	// readTimeout bounds how long reading the state may take. With pollEvery and pg.Relisten it
	// is well below the 30 seconds in which changes act everywhere (decisions 11.6).
	readTimeout = 5 * time.Second
)

// Keeper holds the state of the retirement in memory, for the requests of a process.
type Keeper struct {
	store *Store
	state atomic.Pointer[State]
	// readings numbers the readings from 1; stateReading, guarded by mu, is that of the reading which returned state.
	readings     atomic.Int64
	mu           sync.Mutex
	stateReading int64
	// observe is called after each reading of Watch, with its error or nil; for tests.
	observe func(error)
}

// NewKeeper returns a Keeper with the current state. Only Watch and Refresh update it.
func NewKeeper(ctx context.Context, s *Store) (*Keeper, error) {
	k := &Keeper{store: s, observe: func(error) {}}
	return k, k.Refresh(ctx)
}

// State returns the state that was read last.
func (k *Keeper) State() *State { return k.state.Load() }

// Store returns where the state is kept.
func (k *Keeper) Store() *Store { return k.store }

// Refresh reads the state now. On an error the last state stays.
func (k *Keeper) Refresh(ctx context.Context) error {
	reading := k.readings.Add(1) // so that setState keeps the later of two
	state, err := k.store.Load(ctx)
	if err == nil {
		k.setState(reading, state)
	}
	return err
}

// setState sets the state that a reading returned, and returns the previous state. If that is of a later reading, it
// stays, and setState returns state, as if nothing had changed.
func (k *Keeper) setState(reading int64, state *State) (before *State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if reading < k.stateReading {
		return state
	}
	k.stateReading = reading
	return k.state.Swap(state)
}

// Watch follows the state: it listens, on its own connection, for changes by any process, and reads the state at
// each change and every ten seconds. While the database cannot be reached the last state stays; a lost connection is
// logged and retried. It returns when the context is done.
func (k *Keeper) Watch(ctx context.Context, log *slog.Logger) {
	k.store.db.Follow(ctx, channel, pollEvery, func(pg.ListenEvent) error {
		if err := k.read(ctx, log); err != nil {
			return err
		}
		k.observe(nil)
		return nil
	}, func(err error) {
		k.observe(err)
		log.WarnContext(ctx, "cannot read changes to the retirement of v1; the last known state applies", "error", err)
	})
}

// read reads the state on a connection that requests do not use, and logs a change. On an error the last state stays.
func (k *Keeper) read(ctx context.Context, log *slog.Logger) error {
	var state *State
	reading := k.readings.Add(1) // so that setState keeps the later of two
	err := k.store.db.ReservedSnapshot(ctx, readTimeout, func(ctx context.Context) (err error) {
		state, err = k.store.load(ctx, k.store.clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	if previous := k.setState(reading, state); !reflect.DeepEqual(previous, state) {
		sunset := "none"
		if state.Announcement != nil {
			sunset = FormatTime(state.Announcement.Sunset)
		}
		log.InfoContext(ctx, "the retirement of v1 has changed", "announced", state.Announcement != nil, "sunset", sunset,
			"ended", state.EndedAt != nil, "phases", state.Settings.Len(), "brownouts", len(state.Windows),
			"new_keys", state.PhaseOfNewKeys(), "rehearsals", len(state.Rehearsals))
	}
	return nil
}
