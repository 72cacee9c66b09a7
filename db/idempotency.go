package db

import (
	"bytes"
	"context"
	"time"

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
	CreatedAt      time.Time
}

// Once makes a request idempotent: its work runs at most once per caller and
// Idempotency-Key, the outcome is recorded in the work's own transaction, and a
// retry gets it back (decisions 3.11). hash identifies the request; Conflict when
// the key was used with another, or while the first is still running.
func (d *DB) Once(
	ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
) (outcome domain.Outcome, err error) {
	err = d.Tx(ctx, func(ctx context.Context) error {
		caller := domain.CallerFrom(ctx).Key
		recorded, err := d.claim(ctx, caller, key, hash)
		if err != nil {
			return err
		}
		if recorded != nil {
			outcome = domain.Outcome{Status: recorded.Status, Body: recorded.Body}
			return nil
		}

		if outcome, err = work(ctx); err != nil {
			return err
		}
		_, err = pg.Exec(ctx, d, "record an outcome", pg.SQL(`
			? ON CONFLICT (key_id, idempotency_key) DO UPDATE SET (request_hash, status, body, created_at) =
				(excluded.request_hash, excluded.status, excluded.body, excluded.created_at)`,
			pg.Insert(outcomeRow{
				KeyID: caller, IdempotencyKey: key, RequestHash: hash,
				Status: outcome.Status, Body: outcome.Body, CreatedAt: d.Now(),
			})))
		return err
	})
	if err != nil {
		return domain.Outcome{}, err
	}
	return outcome, nil
}

// claim takes the key for this transaction and returns the outcome that is to be
// replayed, nil for none. The lock and the look are two statements: the second one
// sees what was committed before the lock was free.
func (d *DB) claim(ctx context.Context, caller domain.KeyID, key string, hash []byte) (*outcomeRow, error) {
	free, err := pg.One[bool](ctx, d, "claim an idempotency key", pg.Prepared(
		pg.SQL("SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))", caller.UUID()+"/"+key)))
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, &domain.Error{
			Code: domain.Conflict, Message: "a request with this Idempotency-Key is still running", RetryAfter: time.Second,
		}
	}
	rows, err := pg.All[outcomeRow](ctx, d, "look for an outcome", pg.Prepared(
		pg.From("idempotency_records AS r").Columns(pg.Columns[outcomeRow]()).
			Where("r.key_id = ? AND r.idempotency_key = ? AND r.created_at > ?", caller, key, d.Now().Add(-domain.OutcomeLife))))
	switch {
	case err != nil || len(rows) == 0:
		return nil, err
	case !bytes.Equal(rows[0].RequestHash, hash):
		return nil, domain.ErrConflict("", "this Idempotency-Key was used with another request")
	default:
		return &rows[0], nil
	}
}
