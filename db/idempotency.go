package db

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type outcomeRow struct {
	bun.BaseModel `bun:"table:idempotency_records,alias:r"`

	KeyID          domain.KeyID
	IdempotencyKey string
	RequestHash    []byte
	Status         int
	Body           []byte
	SealID         *uuid.UUID
	SealedBody     []byte
	CreatedAt      time.Time
}

// outcome is what the row records.
func (r *outcomeRow) outcome() domain.Outcome {
	out := domain.Outcome{Status: r.Status, Body: r.Body}
	if r.SealID != nil {
		out.Body, out.Sealed, out.SealedFor = nil, r.SealedBody, r.SealID.String()
	}
	return out
}

// record says in the row what a request was answered with.
func (r *outcomeRow) record(out domain.Outcome) error {
	r.Status, r.Body = out.Status, out.Body
	if out.Sealed == nil {
		return nil
	}
	id, err := uuid.Parse(out.SealedFor)
	if err != nil {
		return fmt.Errorf("record an outcome that is sealed for %q: %w", out.SealedFor, err)
	}
	r.Body, r.SealID, r.SealedBody = []byte{}, &id, out.Sealed
	return nil
}

// reserved is the status of a row of a request that is under way.
const reserved = 0

// Once makes a request idempotent: its work runs at most once per caller and
// Idempotency-Key, the outcome is recorded in the work's own transaction, and a
// retry gets it back (decisions 3.11). hash identifies the request; Conflict when
// the key was used with another, or while the first is still running.
func (d *DB) Once(
	ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error) {
	return d.once(ctx, tryKey, key, hash, work)
}

// Finish is Once for the request that holds the key by Reserve. Other requests lock
// the key for a moment, to look at it: Finish waits for them, so that the holder is
// never refused for the sake of a duplicate that will be refused, too.
func (d *DB) Finish(
	ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error) {
	return d.once(ctx, waitForKey, key, hash, work)
}

func (d *DB) once(
	ctx context.Context, lock keyLock, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
) (outcome domain.Outcome, err error) {
	err = d.Tx(ctx, func(ctx context.Context) error {
		caller := domain.CallerFrom(ctx).Key
		recorded, err := d.claim(ctx, lock, caller, key, hash)
		if err != nil {
			return err
		}
		if recorded != nil {
			outcome = recorded.outcome()
			return nil
		}

		if outcome, err = work(ctx); err != nil {
			return err
		}
		row := outcomeRow{KeyID: caller, IdempotencyKey: key, RequestHash: hash, CreatedAt: d.Now()}
		if err := row.record(outcome); err != nil {
			return err
		}
		return d.putOutcome(ctx, row)
	})
	if err != nil {
		return domain.Outcome{}, err
	}
	return outcome, nil
}

func (d *DB) putOutcome(ctx context.Context, row outcomeRow) error {
	_, err := pg.Exec(ctx, d, "record an outcome", pg.SQL(`
		? ON CONFLICT (key_id, idempotency_key) DO UPDATE SET
			(request_hash, status, body, seal_id, sealed_body, created_at) = (excluded.request_hash, excluded.status,
			excluded.body, excluded.seal_id, excluded.sealed_body, excluded.created_at)`, pg.Insert(row)))
	return err
}

// Reserve begins a request whose work is partly done outside of a transaction: it
// returns the outcome that is to be replayed, or else takes the Idempotency-Key
// until Finish records an outcome for the same request or release is called, which
// gives the key back where none was recorded. Where neither happens, as the
// process died, the key is free after ReservedFor. The errors are those of Once.
func (d *DB) Reserve(ctx context.Context, key string, hash []byte) (recorded *domain.Outcome, release func(), err error) {
	caller := domain.CallerFrom(ctx).Key
	err = d.Tx(ctx, func(ctx context.Context) error {
		row, err := d.lookOutcome(ctx, tryKey, caller, key, hash)
		switch {
		case err != nil:
			return err
		case row != nil && row.Status == reserved:
			return errStillRunning()
		case row != nil:
			recorded = new(row.outcome())
			return nil
		}
		return d.putOutcome(ctx, outcomeRow{
			KeyID: caller, IdempotencyKey: key, RequestHash: hash, Status: reserved, Body: []byte{}, CreatedAt: d.Now(),
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return recorded, func() { d.giveBack(context.WithoutCancel(ctx), caller, key, hash) }, nil
}

// giveBack frees a reserved key. Where that fails, it is free after a while.
func (d *DB) giveBack(ctx context.Context, caller domain.KeyID, key string, hash []byte) {
	_, _ = pg.Exec(ctx, d, "give an idempotency key back", pg.SQL(`
		DELETE FROM idempotency_records WHERE key_id = ? AND idempotency_key = ? AND request_hash = ? AND status = ?`,
		caller, key, hash, reserved))
}

// claim takes the key for this transaction and returns the outcome that is to be
// replayed, nil for none.
func (d *DB) claim(
	ctx context.Context, lock keyLock, caller domain.KeyID, key string, hash []byte,
) (*outcomeRow, error) {
	row, err := d.lookOutcome(ctx, lock, caller, key, hash)
	if err != nil || row == nil || row.Status == reserved { // by Reserve, for this request
		return nil, err
	}
	return row, nil
}

func errStillRunning() error {
	return &domain.Error{
		Code: domain.Conflict, Message: "a request with this Idempotency-Key is still running", RetryAfter: time.Second,
	}
}

// keyLock is a statement that locks an Idempotency-Key for a transaction, and returns
// whether it did.
type keyLock string

const (
	tryKey keyLock = "SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))"
	// The function returns no value.
	waitForKey keyLock = "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 0)) IS NOT NULL"
)

// lookOutcome locks the key for this transaction and returns what is recorded of
// the request, or that it is under way; nil for neither. The lock and the look are
// two statements: the second one sees what was committed before the lock was free.
func (d *DB) lookOutcome(
	ctx context.Context, lock keyLock, caller domain.KeyID, key string, hash []byte,
) (*outcomeRow, error) {
	free, err := pg.One[bool](ctx, d, "claim an idempotency key", pg.Prepared(pg.SQL(string(lock), caller.UUID()+"/"+key)))
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, errStillRunning()
	}
	rows, err := pg.All[outcomeRow](ctx, d, "look for an outcome", pg.Prepared(
		pg.From("idempotency_records AS r").Columns(pg.Columns[outcomeRow]()).
			Where("r.key_id = ? AND r.idempotency_key = ? AND r.created_at > ?", caller, key, d.Now().Add(-domain.OutcomeLife))))
	switch {
	case err != nil || len(rows) == 0:
		return nil, err
	case rows[0].Status == reserved && !rows[0].CreatedAt.After(d.Now().Add(-domain.ReservedFor)):
		return nil, nil // its process died
	case !bytes.Equal(rows[0].RequestHash, hash):
		return nil, domain.ErrConflict("", "this Idempotency-Key was used with another request")
	default:
		return &rows[0], nil
	}
}
