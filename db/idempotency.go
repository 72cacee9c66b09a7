package db

import (
	"bytes"
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type outcomeRow struct {
	bun.BaseModel `bun:"table:idempotency_records"`

	KeyID          domain.KeyID
	IdempotencyKey string
	RequestHash    []byte
	Status         int
	Body           []byte
	CreatedAt      time.Time
}

// Once runs a request's work at most once per caller and Idempotency-Key: the
// outcome is recorded in the work's own transaction, and a repetition gets it
// back. hash identifies the request; Conflict when the key was used with
// another, or while the first is still running.
func (d *DB) Once(ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error)) (domain.Outcome, error) {
	caller := domain.CallerFrom(ctx).Key
	var outcome domain.Outcome
	err := d.Tx(ctx, func(ctx context.Context) error {
		replay, err := d.claim(ctx, caller, key, hash)
		if err != nil {
			return err
		}
		if replay != nil {
			outcome = *replay
			return nil
		}
		if outcome, err = work(ctx); err != nil {
			return err
		}
		row := outcomeRow{KeyID: caller, IdempotencyKey: key, RequestHash: hash, Status: outcome.Status, Body: outcome.Body, CreatedAt: d.Now()}
		_, err = d.conn(ctx).NewInsert().Model(&row).
			On("CONFLICT (key_id, idempotency_key) DO UPDATE").
			Set("request_hash = EXCLUDED.request_hash, status = EXCLUDED.status, body = EXCLUDED.body, created_at = EXCLUDED.created_at").
			Exec(ctx)
		return d.bad("record an outcome", err)
	})
	return outcome, err
}

// claim takes the key for this transaction and returns the outcome that is to
// be replayed, if there is one.
func (d *DB) claim(ctx context.Context, caller domain.KeyID, key string, hash []byte) (*domain.Outcome, error) {
	var free bool
	err := d.conn(ctx).NewRaw("SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))", caller.UUID()+"/"+key).Scan(ctx, &free)
	if err != nil {
		return nil, d.bad("claim an idempotency key", err)
	}
	if !free {
		return nil, &domain.Error{Code: domain.Conflict, Message: "a request with this Idempotency-Key is still running", RetryAfter: time.Second}
	}
	var rows []outcomeRow
	err = d.conn(ctx).NewSelect().Model(&rows).
		Where("key_id = ? AND idempotency_key = ? AND created_at > ?", caller, key, d.Now().Add(-domain.OutcomeLife)).Scan(ctx)
	switch {
	case err != nil:
		return nil, d.bad("look for an outcome", err)
	case len(rows) == 0:
		return nil, nil
	case !bytes.Equal(rows[0].RequestHash, hash):
		return nil, domain.ErrConflict("", "this Idempotency-Key was used with another request")
	}
	return &domain.Outcome{Status: rows[0].Status, Body: rows[0].Body}, nil
}
