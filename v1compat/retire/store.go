package retire

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Store keeps the retirement of v1 in the database. Its tables are those of idmap's
// migrations.
//
// Each method that changes something is one transaction, which locks the one row of
// v1_state before it reads what holds: so whatever runs at a time, each change is
// held against the rules as the one before it left things. An error that says what
// rule a change breaks is for an operator to read.
type Store struct {
	db    *sql.DB
	clock domain.Clock
}

// NewStore returns a store on the database, by the clock; nil is the system's.
func NewStore(db *sql.DB, clock domain.Clock) *Store {
	if clock == nil {
		clock = domain.SystemClock{}
	}
	return &Store{db, clock}
}

// channel is what a change notifies.
const channel = "v1_retirement"

// Load reads how far the retirement is.
func (s *Store) Load(ctx context.Context) (*State, error) { return load(ctx, s.db, s.clock) }

// beginner is a database or a connection to it.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// load reads a state of one moment.
func load(ctx context.Context, from beginner, clock domain.Clock) (*State, error) {
	tx, err := from.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, failed("read the retirement of v1", err)
	}
	defer tx.Rollback()
	facts, err := read(ctx, tx, clock.Now())
	if err != nil {
		return nil, failed("read the retirement of v1", err)
	}
	return NewState(facts), nil
}

// failed is the error of a statement, Unavailable where the database cannot be
// reached.
func failed(doing string, err error) error {
	if away := pg.Unavailable(doing, err); away != nil {
		return away
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// read reads the facts in a transaction. What is long over is left out, and what a
// clock that is a little behind this one does not count as over is not.
func read(ctx context.Context, tx *sql.Tx, now time.Time) (f Facts, err error) {
	var announced, sunset, ended sql.NullTime
	var release sql.NullString
	err = tx.QueryRowContext(ctx, `SELECT announced_at, sunset_at, ended_at, served_release FROM v1_state`).
		Scan(&announced, &sunset, &ended, &release)
	if err != nil {
		return f, err
	}
	f.Announcement = Announcement{utc(announced), utc(sunset)}
	f.EndedAt, f.Release = utc(ended), release.String
	if f.Settings, err = readSettings(ctx, tx, now.Add(-skew)); err != nil {
		return f, err
	}
	f.Windows, err = readWindows(ctx, tx)
	return f, err
}

// skew is how far the clocks of processes may be apart.
const skew = time.Hour

func utc(t sql.NullTime) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

func readSettings(ctx context.Context, tx *sql.Tx, since time.Time) (list []Setting, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, key_id::text, partner_id::text, phase, until FROM v1_phases
		WHERE until IS NULL OR until > $1 ORDER BY id`, since)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Setting
		var key, partner sql.Null[string]
		var until sql.NullTime
		if err := rows.Scan(&s.ID, &key, &partner, &s.Phase, &until); err != nil {
			return nil, err
		}
		if key.Valid {
			err = s.Key.Scan(key.V)
		}
		if partner.Valid {
			err = cmp.Or(err, s.Partner.Scan(partner.V))
		}
		if err != nil {
			return nil, err
		}
		s.Until = utc(until)
		list = append(list, s)
	}
	return list, rows.Err()
}

func readWindows(ctx context.Context, tx *sql.Tx) (list []Window, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, start_at, for_seconds, every_seconds, windows, array_to_string(keys, ',')
		FROM v1_brownouts ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var w Window
		var long, every int64
		var keys string
		if err := rows.Scan(&w.ID, &w.Start, &long, &every, &w.Count, &keys); err != nil {
			return nil, err
		}
		w.Start = w.Start.UTC()
		w.For, w.Every = time.Duration(long)*time.Second, time.Duration(every)*time.Second
		for text := range strings.SplitSeq(keys, ",") {
			if text == "" {
				continue
			}
			key, err := domain.ParseUUID[domain.KeyKind](text)
			if err != nil {
				return nil, err
			}
			w.Keys = append(w.Keys, key)
		}
		list = append(list, w)
	}
	return list, rows.Err()
}

// change runs fn, by the clock's time, on what holds and no one else changes
// meanwhile, and tells the processes that serve v1 when it is done.
func (s *Store) change(ctx context.Context, doing string, fn func(tx *sql.Tx, holds *State, now time.Time) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return failed(doing, err)
	}
	defer tx.Rollback() // after a commit without effect
	if _, err := tx.ExecContext(ctx, `SELECT FROM v1_state FOR UPDATE`); err != nil {
		return failed(doing, err)
	}
	now := s.clock.Now()
	facts, err := read(ctx, tx, now)
	if err != nil {
		return failed(doing, err)
	}
	if err := fn(tx, NewState(facts), now); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `NOTIFY `+channel); err != nil {
		return failed(doing, err)
	}
	if err := tx.Commit(); err != nil {
		return failed(doing, err)
	}
	return nil
}

// exec runs a statement of a change.
func exec(ctx context.Context, tx *sql.Tx, doing, query string, args ...any) error {
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return failed(doing, err)
	}
	return nil
}
