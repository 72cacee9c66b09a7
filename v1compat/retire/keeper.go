package retire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// reread is how long a state is used that no change was heard of: the longest
	// that a change is missed where its notification is lost.
	reread = 10 * time.Second
	// readWithin bounds how long reading the state may take. With reread and
	// relisten it is well below the 30 seconds in which changes act everywhere
	// (decisions 11.6).
	readWithin = 5 * time.Second
	// relisten is the pause before a lost connection is retried.
	relisten = time.Second
)

// Keeper has the state of the retirement for the requests of a process.
type Keeper struct {
	store *Store
	state atomic.Pointer[State]
	// observe is called after each time that Watch has read the state, or was not
	// able to; for tests.
	observe func(error)
}

// Keep reads the state, and returns a Keeper that has it. Without Watch or Refresh
// it has that one for good.
func Keep(ctx context.Context, s *Store) (*Keeper, error) {
	k := &Keeper{store: s, observe: func(error) {}}
	return k, k.Refresh(ctx)
}

// State is what was read last.
func (k *Keeper) State() *State { return k.state.Load() }

// Refresh reads the state now. On an error the last one stays.
func (k *Keeper) Refresh(ctx context.Context) error {
	state, err := k.store.Load(ctx)
	if err == nil {
		k.state.Store(state)
	}
	return err
}

// Watch follows the state: it listens, on a connection of its own out of the pool,
// for changes by any process, and reads the state at each, and every ten seconds
// without one. While the database cannot be reached the last state holds; a lost
// connection is logged and retried. It returns when the context is done. The pool
// must be one of pgx's database/sql driver.
func (k *Keeper) Watch(ctx context.Context, log *slog.Logger) {
	for {
		err := k.follow(ctx, log)
		if ctx.Err() != nil {
			return
		}
		k.observe(err)
		log.WarnContext(ctx, "the retirement of v1 cannot be followed; what was read last holds", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(relisten):
		}
	}
}

// follow reads the state, again and again, on one connection until that fails or
// ctx is done.
func (k *Keeper) follow(ctx context.Context, log *slog.Logger) error {
	conn, err := k.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer hangUp(conn)

	for {
		if err := k.read(ctx, conn, log); err != nil {
			return err
		}
		k.observe(nil)
		if err := conn.Raw(func(c any) error { return await(ctx, c) }); err != nil {
			return fmt.Errorf("await a change: %w", err)
		}
	}
}

// listen returns a connection that listens.
func (k *Keeper) listen(ctx context.Context) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	conn, err := k.store.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `LISTEN `+channel); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// hangUp closes a connection that listens, which the pool must not use again.
func hangUp(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// await returns nil at a notification, or when it is time to read without one.
func await(ctx context.Context, driverConn any) error {
	c, ok := driverConn.(*stdlib.Conn)
	if !ok {
		return fmt.Errorf("listen on a %T: not pgx's driver", driverConn)
	}
	waiting, cancel := context.WithTimeout(ctx, reread)
	defer cancel()
	_, err := c.Conn().WaitForNotification(waiting)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// read reads the state on the connection, and logs what changed.
func (k *Keeper) read(ctx context.Context, conn *sql.Conn, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	state, err := load(ctx, conn, k.store.clock)
	if err != nil {
		return err
	}
	before := k.state.Swap(state)
	if !reflect.DeepEqual(before.facts, state.facts) {
		f, sunset := state.facts, "none"
		a, announced := state.Announcement()
		if announced {
			sunset = day(a.Sunset)
		}
		log.InfoContext(ctx, "the retirement of v1 has changed", "announced", announced, "sunset", sunset,
			"ended", !f.EndedAt.IsZero(), "phases", len(f.Settings), "brownouts", len(f.Windows))
	}
	return nil
}
