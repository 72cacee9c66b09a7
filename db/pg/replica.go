package pg

import (
	"cmp"
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

// ReplicaConns is the maximum number of connections of a process to the standby of WithReplica: for two reports, the
// figures of metrics, and an export.
const ReplicaConns = 4

const (
	// replayWithin is how long a snapshot may wait until the standby has replayed what the primary wrote before.
	replayWithin = 5 * time.Second
	// replayPause is the pause between two checks of the replay.
	replayPause = 10 * time.Millisecond
	// replicaRest is how long a standby that could not be used is not tried again.
	replicaRest = 10 * time.Second
)

// replica is a standby of the database. It is safe for concurrent use.
type replica struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	mu    sync.Mutex
	state ReplicaState
	// rests is the time until which it is not tried again, by Elapsed.
	rests time.Duration
}

// ReplicaState is the known state of the standby.
type ReplicaState struct {
	// Used is true if the standby could be used at the last check. Otherwise Fault is the reason. Before the first
	// check neither is set.
	Used  bool
	Fault error
	// AsOf is the time up to which the standby is known to have all changes; zero if unknown.
	AsOf time.Time
}

// WithReplica sets the postgres:// URL of a standby from which FromReplica may read. The log gets a line when the
// standby becomes usable or unusable.
func WithReplica(url string, log *slog.Logger) Option {
	return func(o *options) { o.replica, o.replicaLog = url, log }
}

// Replica returns the state of the standby, and false if there is none.
func (d *DB) Replica() (ReplicaState, bool) {
	if d.replica == nil {
		return ReplicaState{}, false
	}
	d.replica.mu.Lock()
	defer d.replica.mu.Unlock()
	return d.replica.state, true
}

type replicaKey struct{}

// FromReplica runs do. Its snapshots read from the standby of WithReplica if that is of this database and replays,
// within 5 seconds or the shorter limit of a ReservedSnapshot, everything that the primary had written when the
// snapshot began. So a snapshot has all changes that were committed before. Other snapshots, and all other statements,
// use the primary. A standby that cannot be used is not tried again for 10 seconds.
//
// If do used the standby, any Unavailable or error of PostgreSQL that it returns, such as a conflict with replay,
// counts as a failure of the standby. Unless ctx ended, do then runs again, from the beginning, on the primary.
func (d *DB) FromReplica(ctx context.Context, do func(ctx context.Context) error) error {
	if d.replica == nil {
		return do(ctx)
	}
	var used bool
	err := do(context.WithValue(ctx, replicaKey{}, &used))
	_, refused := errors.AsType[*pgconn.PgError](err)
	standbyFailed := used && (refused || domain.IsCode(err, domain.Unavailable))
	if !standbyFailed || ctx.Err() != nil {
		return err
	}
	cause := cmp.Or(domain.AsError(err).Cause, err)
	d.replica.recordCheck(ctx, d.Elapsed(), time.Time{} /* unknown */, fmt.Errorf("read the standby: %w", cause))
	return do(ctx)
}

// CheckReplica returns an error if the standby of WithReplica cannot be used. Like a snapshot, it waits for the replay.
// feedback reports whether hot_standby_feedback is on, with which the primary keeps rows that the standby still reads.
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

// standby waits until the standby has replayed everything that the primary had written before the call, and returns a
// connection to it. It returns nil if ctx is not of FromReplica, if the standby failed shortly before (atRest), or if
// it cannot be used within the given time. It notes the result, unless ctx ended, and its use for FromReplica.
func (d *DB) standby(ctx context.Context, within time.Duration) *pgxpool.Conn {
	used, ok := ctx.Value(replicaKey{}).(*bool)
	began := d.Now()
	if !ok || d.replica.atRest(d.Elapsed()) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	at, err := d.position(bounded)
	if err != nil {
		return nil // the primary failed: the snapshot on it will return the error
	}
	conn, replayed, fault := d.replica.reach(bounded, at)
	switch {
	case fault == nil:
		replayed = began // the standby has everything that was committed before
	case ctx.Err() != nil:
		return nil
	}
	d.replica.recordCheck(ctx, d.Elapsed(), replayed, fault)
	*used = *used || conn != nil
	return conn
}

// position is a position in the write-ahead log of a database.
type position struct {
	system   int64 // the system identifier: initdb creates it, and standbys copy it
	database uint32
	timeline int // increases with each promotion
	lsn      string
}

// position writes a message to the primary's log and returns its position there, with the timeline. All earlier commits
// are before it, also asynchronous ones: its own commit flushes them. It does not wait for a synchronous standby.
func (d *DB) position(ctx context.Context) (at position, err error) {
	err = d.pool.QueryRow(d.withName(ctx, "mark a position for the standby"), `
		WITH session AS MATERIALIZED (SELECT set_config('synchronous_commit', 'local', true)),
			mark AS MATERIALIZED (SELECT pg_logical_emit_message(true, 'partnerapi', '') AS lsn FROM session)
		SELECT (SELECT system_identifier FROM pg_control_system()),
			(SELECT oid FROM pg_database WHERE datname = current_database()),
			('x' || left(pg_walfile_name(lsn), 8))::bit(32)::integer /* the timeline, in hex */, lsn::text FROM mark`,
	).Scan(&at.system, &at.database, &at.timeline, &at.lsn)
	return at, err
}

// serverState is the state of a server relative to a position of the primary.
type serverState struct {
	position
	recovers bool // it is in recovery, so a standby
	replayed bool // it has replayed up to the position
	// last is the commit time of the last replayed transaction; nil for none.
	last *time.Time
}

// errBehind reports that a standby has not replayed up to a position.
var errBehind = errors.New("the standby did not replay the primary's writes in time")

// fault returns the reason why a server in this state cannot be read instead of the primary, or nil.
func (s serverState) fault(at position) error {
	switch {
	case !s.recovers:
		return errors.New("the server is not a standby")
	case s.system != at.system || s.database != at.database:
		return errors.New("the server is a standby of another database")
	case s.timeline != at.timeline:
		return fmt.Errorf("the standby is on timeline %d, but the primary is on %d", s.timeline, at.timeline)
	case !s.replayed:
		return errBehind
	}
	return nil
}

// reach waits until the standby has replayed up to a position, or until ctx ends, and returns a connection to it.
// Otherwise fault is the reason why it cannot be read. last is the commit time of its last replayed transaction, or
// zero if unknown.
func (r *replica) reach(ctx context.Context, at position) (conn *pgxpool.Conn, last time.Time, fault error) {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, last, fmt.Errorf("reach the standby: %w", err)
	}
	for {
		s, err := serverStateOf(ctx, conn, at)
		switch {
		case err == nil:
			fault, last = s.fault(at), Or(s.last, last)
		case fault == nil: // otherwise err is only the end of ctx during the wait
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

// serverStateOf returns the state of the server of a connection. Its timeline is the newest one in its control file.
func serverStateOf(ctx context.Context, conn *pgxpool.Conn, at position) (s serverState, err error) {
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

// atRest reports whether the standby is not to be tried yet.
func (r *replica) atRest(elapsed time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return elapsed < r.rests
}

// recordCheck stores the result of a check, and logs it if the state changed. replayed is the time up to which the
// standby has all changes. After a fault the standby is not tried for replicaRest, and its connections are closed,
// because the URL may later lead to another server.
func (r *replica) recordCheck(ctx context.Context, elapsed time.Duration, replayed time.Time, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.state
	r.state = ReplicaState{Used: fault == nil, Fault: fault, AsOf: before.AsOf}
	if replayed.After(before.AsOf) {
		r.state.AsOf = replayed
	}
	if fault == nil {
		if !before.Used {
			r.log.InfoContext(ctx, "the standby is in use")
		}
		return
	}
	r.rests = elapsed + replicaRest
	r.pool.Reset()
	if before.Fault == nil {
		r.log.WarnContext(ctx, "the standby is skipped, and the primary is read instead", "error", fault)
	}
}
