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

func (r *outcomeRow) outcome() domain.Outcome {
	out := domain.Outcome{Status: r.Status, Body: r.Body}
	if r.SealID != nil {
		out.Body, out.Sealed, out.SealedFor = nil, r.SealedBody, r.SealID.String()
	}
	return out
}

// setOutcome sets the answer of the request in the row.
func (r *outcomeRow) setOutcome(out domain.Outcome) error {
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

// reserved is the status of a row whose request is in progress.
const reserved = 0

// Once makes a request idempotent: its work runs at most once per caller and
// Idempotency-Key, and records its outcome in the same transaction. A retry gets that
// outcome (decisions 3.11). hash identifies the request; Conflict when the key was used with
// another request, or while the first is in progress.
func (d *DB) Once(
	ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error) {
	return d.once(ctx, tryKey, key, hash, work)
}

// Finish is Once for the request that reserved the key. It waits where a duplicate has
// locked the key to read its record, so that the holder never gets a Conflict.
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
		recorded, err := d.lockOutcome(ctx, lock, caller, key, hash)
		if err != nil {
			return err
		}
		if recorded != nil && recorded.Status != reserved { // else by Reserve, for this request
			outcome = recorded.outcome()
			return nil
		}

		if outcome, err = work(ctx); err != nil {
			return err
		}
		row := outcomeRow{KeyID: caller, IdempotencyKey: key, RequestHash: hash, CreatedAt: d.Now()}
		if err := row.setOutcome(outcome); err != nil {
			return err
		}
		return d.storeOutcome(ctx, row)
	})
	if err != nil {
		return domain.Outcome{}, err
	}
	return outcome, nil
}

func (d *DB) storeOutcome(ctx context.Context, row outcomeRow) error {
	_, err := pg.Exec(ctx, d, "record an outcome", pg.SQL(`
		? ON CONFLICT (key_id, idempotency_key) DO UPDATE SET
			(request_hash, status, body, seal_id, sealed_body, created_at) = (excluded.request_hash, excluded.status,
			excluded.body, excluded.seal_id, excluded.sealed_body, excluded.created_at)`, pg.Insert(row)))
	return err
}

// Reserve begins a request that works outside of a transaction first. It returns the
// recorded outcome, or else reserves the Idempotency-Key until Finish records the outcome of
// the same request. release frees the key if none was recorded. If the process dies, the key
// is free after ReservedFor. The errors are those of Once.
func (d *DB) Reserve(ctx context.Context, key string, hash []byte) (recorded *domain.Outcome, release func(), err error) {
	caller := domain.CallerFrom(ctx).Key
	err = d.Tx(ctx, func(ctx context.Context) error {
		row, err := d.lockOutcome(ctx, tryKey, caller, key, hash)
		switch {
		case err != nil:
			return err
		case row != nil && row.Status == reserved:
			return errStillRunning()
		case row != nil:
			recorded = new(row.outcome())
			return nil
		}
		return d.storeOutcome(ctx, outcomeRow{
			KeyID: caller, IdempotencyKey: key, RequestHash: hash, Status: reserved, Body: []byte{}, CreatedAt: d.Now(),
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return recorded, func() { // on an error the key is free after ReservedFor
		_, _ = pg.Exec(context.WithoutCancel(ctx), d, "free an idempotency key", pg.SQL(`
			DELETE FROM idempotency_records WHERE key_id = ? AND idempotency_key = ? AND request_hash = ? AND status = ?`,
			caller, key, hash, reserved))
	}, nil
}

func errStillRunning() error {
	return &domain.Error{
		Code: domain.Conflict, Message: "a request with this Idempotency-Key is still running", RetryAfter: time.Second,
	}
}

// keyLock is a statement that locks an Idempotency-Key for a transaction, and returns
// whether it succeeded.
type keyLock string

const (
	tryKey keyLock = "SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))"
	// The function returns no value.
	waitForKey keyLock = "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 0)) IS NOT NULL"
)

// lockOutcome locks the key for this transaction and returns the record of the request, or
// its reservation; nil for neither. It takes two statements: the second one sees what was
// committed before the lock was free.
func (d *DB) lockOutcome(
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
