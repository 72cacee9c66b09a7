package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"partnerapi/domain"
)

// ReplicaConns is how many connections a process may have to the standby of WithReplica:
// for two reports, the figures of metrics, and an export.
const ReplicaConns = 4

const (
	// replayWithin is how long a snapshot may wait for the standby to have replayed what
	// the primary had written before.
	replayWithin = 5 * time.Second
	// replayPause is the pause between two checks of it.
	replayPause = 10 * time.Millisecond
	// replicaRest is how long a standby that could not be used is left alone.
	replicaRest = 10 * time.Second
)

// replica is a standby of the database. It is safe for concurrent use.
type replica struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	mu    sync.Mutex
	state ReplicaState
	// rests is until when it is left alone.
	rests time.Time
}

// ReplicaState is what is known of the standby.
type ReplicaState struct {
	// Used says that it could be used at the last check; else Fault says why not. Before the first
	// check neither is set.
	Used  bool
	Fault error
	// AsOf is the time up to which it is known to have all changes; zero if unknown.
	AsOf time.Time
}

// WithReplica sets the postgres:// URL of a standby that FromReplica may read. It logs when
// the standby begins to be used, and when it is left alone.
func WithReplica(url string, log *slog.Logger) Option {
	return func(o *options) { o.replica, o.replicaLog = url, log }
}

// Replica is the state of the standby; false without one.
func (d *DB) Replica() (ReplicaState, bool) {
	if d.replica == nil {
		return ReplicaState{}, false
	}
	d.replica.mu.Lock()
	defer d.replica.mu.Unlock()
	return d.replica.state, true
}

type replicaKey struct{}

// FromReplica runs do, whose snapshots (Snapshot, ReservedSnapshot) are read from the
// standby of WithReplica if it can be used: if it is a standby of this database, and has
// replayed within 5 seconds, or within the bound of the snapshot, what the primary had
// written when the snapshot was asked for. So they miss nothing that was committed before.
// A standby that cannot be used is left alone for 10 seconds. Everything but snapshots
// goes to the primary, as do they without a standby.
//
// Where the standby fails in the middle, as by a conflict with what it replays, do runs
// again on the primary: it must begin anew then.
func (d *DB) FromReplica(ctx context.Context, do func(ctx context.Context) error) error {
	if d.replica == nil {
		return do(ctx)
	}
	var used bool
	err := do(context.WithValue(ctx, replicaKey{}, &used))
	var refused *pgconn.PgError
	if !used || ctx.Err() != nil || !domain.IsCode(err, domain.Unavailable) && !errors.As(err, &refused) {
		return err
	}
	d.replica.note(ctx, d.Now(), time.Time{}, fmt.Errorf("read the standby: %w", reason(err)))
	return do(ctx)
}

// CheckReplica returns an error if the standby cannot be used now; it waits as a snapshot
// does. feedback says whether the standby tells the primary which rows it still reads
// (hot_standby_feedback), so that these are not cleaned up under a long snapshot.
func (d *DB) CheckReplica(ctx context.Context) (feedback bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	at, err := d.position(ctx)
	if err != nil {
		return false, err
	}
	conn, _, err := d.replica.reach(ctx, at)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, "SELECT current_setting('hot_standby_feedback')::boolean").Scan(&feedback)
	return feedback, err
}

// standby returns a connection to the standby, which has replayed what the primary had
// written before the call; nil where ctx does not ask for the standby, or it cannot be
// used within that time.
func (d *DB) standby(ctx context.Context, within time.Duration) *pgxpool.Conn {
	used, ok := ctx.Value(replicaKey{}).(*bool)
	began := d.Now()
	if !ok || d.replica.atRest(began) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	at, err := d.position(bounded)
	if err != nil {
		return nil // the snapshot on the primary reports what is wrong with it
	}
	conn, replayed, fault := d.replica.reach(bounded, at)
	switch {
	case fault == nil:
		replayed = began
	case ctx.Err() != nil:
		return nil
	}
	d.replica.note(ctx, d.Now(), replayed, fault)
	*used = *used || conn != nil
	return conn
}

// position is a place in the log of changes of a server's database.
type position struct {
	system   int64 // made with the server's data, and copied to its standbys
	database uint32
	timeline int // counts promotions
	lsn      string
}

// position returns that of the primary, behind everything that was committed before, even
// without waiting for the disk: the mark flushes that too. It does not wait for a synchronous
// standby.
func (d *DB) position(ctx context.Context) (at position, err error) {
	err = d.pool.QueryRow(d.named(ctx, "mark a position for the standby"), `
		WITH session AS MATERIALIZED (SELECT set_config('synchronous_commit', 'local', true)),
			mark AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'partnerapi', '') AS lsn FROM session)
		SELECT (SELECT system_identifier FROM pg_control_system()),
			(SELECT oid FROM pg_database WHERE datname = current_database()),
			('x' || left(pg_walfile_name(lsn), 8))::bit(32)::integer, lsn::text FROM mark`,
	).Scan(&at.system, &at.database, &at.timeline, &at.lsn)
	return at, err
}

// standing is the state of a server relative to a position.
type standing struct {
	position
	recovers, replayed bool
	// last is the commit time of the last replayed transaction; nil for none.
	last *time.Time
}

// errBehind says that a standby has not replayed up to a position yet.
var errBehind = errors.New("the standby has not replayed in time what the primary had written")

// fault is why a server in this state cannot be read instead of the primary; nil
// where it can.
func (s standing) fault(at position) error {
	switch {
	case !s.recovers:
		return errors.New("the server is no standby")
	case s.system != at.system || s.database != at.database:
		return errors.New("the server is a standby of another database")
	case s.timeline != at.timeline:
		return fmt.Errorf("the standby is of timeline %d, and the primary of %d", s.timeline, at.timeline)
	case !s.replayed:
		return errBehind
	}
	return nil
}

// reach returns a connection to the standby once it has replayed up to a position, for which
// it waits until ctx ends; fault is why it cannot be read. last is the commit time of its last
// replayed transaction, if known.
func (r *replica) reach(ctx context.Context, at position) (conn *pgxpool.Conn, last time.Time, fault error) {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, last, fmt.Errorf("reach the standby: %w", err)
	}
	for {
		s, err := standingOf(ctx, conn, at)
		switch {
		case err == nil:
			fault, last = s.fault(at), Or(s.last, last)
		case fault == nil: // else the wait has ended, and fault says what was waited for
			fault = err
		}
		if fault == nil {
			return conn, last, nil
		}
		if err != nil || !errors.Is(fault, errBehind) || domain.Pause(ctx, replayPause) != nil {
			conn.Release()
			return nil, last, fault
		}
	}
}

// standingOf asks the server of a connection. Its timeline is the newest that it has
// noted on its disk.
func standingOf(ctx context.Context, conn *pgxpool.Conn, at position) (s standing, err error) {
	err = conn.QueryRow(ctx, `
		SELECT pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
			(SELECT oid FROM pg_database WHERE datname = current_database()),
			(SELECT greatest(c.timeline_id, r.min_recovery_end_timeline)
				FROM pg_control_checkpoint() AS c, pg_control_recovery() AS r),
			coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false), pg_last_xact_replay_timestamp()`, at.lsn,
	).Scan(&s.recovers, &s.system, &s.database, &s.timeline, &s.replayed, &s.last)
	if err != nil {
		err = fmt.Errorf("ask the standby: %w", err)
	}
	return s, err
}

func (r *replica) atRest(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.rests)
}

// note keeps the result of a check, and logs it if it is new. A server that cannot be used is
// left alone, and its connections are closed: the URL may lead to another one after that.
func (r *replica) note(ctx context.Context, now, replayed time.Time, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.state
	r.state = ReplicaState{Used: fault == nil, Fault: fault, AsOf: before.AsOf}
	if replayed.After(before.AsOf) {
		r.state.AsOf = replayed
	}
	if fault == nil {
		if !before.Used {
			r.log.InfoContext(ctx, "the standby is read")
		}
		return
	}
	r.rests = now.Add(replicaRest)
	r.pool.Reset()
	if before.Fault == nil {
		r.log.WarnContext(ctx, "the standby is left alone, and the primary read", "error", fault)
	}
}

// reason returns the cause that callers do not see, or err if it has none.
func reason(err error) error {
	if cause := domain.AsError(err).Cause; cause != nil {
		return cause
	}
	return err
}
