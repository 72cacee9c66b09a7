package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// outcomeRow is a row of idempotency_records: an outcome, or a reservation (Reserve).
type outcomeRow struct {
	bun.BaseModel `bun:"table:idempotency_records,alias:r"`

	KeyID          domain.KeyID
	IdempotencyKey string
	RequestHash    []byte
	CanonicalHash  []byte
	Status         int
	Body           []byte
	SealID         *uuid.UUID
	SealedBody     []byte
	CreatedAt      time.Time
}

// setDigest sets the digests of the row's request.
func (r *outcomeRow) setDigest(request domain.RequestDigest) {
	r.RequestHash, r.CanonicalHash = request.Exact, canonicalHash(request.Exact, request.Canonical)
}

// isOf reports whether the row is of the request. A row that release 1.0 wrote has no CanonicalHash, or that of a request
// which it replaced; such a row is of the same request if it has the same RequestHash, as in release 1.0.
func (r *outcomeRow) isOf(request domain.RequestDigest) bool {
	return bytes.Equal(r.RequestHash, request.Exact) ||
		bytes.Equal(r.CanonicalHash, canonicalHash(r.RequestHash, request.Canonical))
}

// canonicalHash returns the CanonicalHash of a row. It depends on the row's RequestHash, so that it is void once release
// 1.0 has replaced that.
func canonicalHash(requestHash, canonical []byte) []byte {
	sum := sha256.Sum256(slices.Concat(requestHash, canonical))
	return sum[:]
}

func (r *outcomeRow) outcome() domain.Outcome {
	out := domain.Outcome{Status: r.Status, Body: r.Body}
	if r.SealID != nil {
		out.Body, out.Sealed, out.SealedFor = nil, r.SealedBody, r.SealID.String()
	}
	return out
}

// setOutcome sets the row's response to out. It returns an error if out is sealed for something other than a UUID.
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

// reserved is the status of a row that Reserve inserted: its request is in progress.
const reserved = 0

// Once makes a request idempotent: it runs work at most once per caller and Idempotency-Key, and records the outcome in
// the same transaction. A retry gets the recorded outcome (decisions 3.11). Once returns Conflict if the key was used with
// another request, or while the first request is in progress.
func (d *DB) Once(
	ctx context.Context, key string, request domain.RequestDigest, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error) {
	return d.runOnce(ctx, tryKey, key, request, work)
}

// Finish runs work for the request that has reserved the key (Reserve), and records the outcome in the same
// transaction. It waits while a duplicate request locks the key. If a retry has recorded an outcome, it returns that.
func (d *DB) Finish(
	ctx context.Context, key string, request domain.RequestDigest, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error) {
	return d.runOnce(ctx, waitForKey, key, request, work)
}

// runOnce locks the key by the statement lock. If an outcome is recorded, it returns that. Otherwise it runs work, and
// records the outcome in the same transaction.
func (d *DB) runOnce(
	ctx context.Context, lock keyLock, key string, request domain.RequestDigest,
	work func(context.Context) (domain.Outcome, error),
) (outcome domain.Outcome, err error) {
	err = d.Tx(ctx, func(ctx context.Context) error {
		caller := domain.CallerFrom(ctx).Key
		recorded, err := d.lockOutcome(ctx, lock, caller, key, request)
		if err != nil {
			return err
		}
		if recorded != nil && recorded.Status != reserved { // reserved: Finish is to replace the row by the outcome
			outcome = recorded.outcome()
			return nil
		}

		if outcome, err = work(ctx); err != nil {
			return err
		}
		row := outcomeRow{KeyID: caller, IdempotencyKey: key, CreatedAt: d.Now()}
		row.setDigest(request)
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

// storeOutcome inserts the record of a key, or replaces it.
func (d *DB) storeOutcome(ctx context.Context, row outcomeRow) error {
	return pg.Run(ctx, d, "record an outcome", pg.SQL(`
		? ON CONFLICT (key_id, idempotency_key) DO UPDATE SET
			(request_hash, canonical_hash, status, body, seal_id, sealed_body, created_at) = (excluded.request_hash,
			excluded.canonical_hash, excluded.status, excluded.body, excluded.seal_id, excluded.sealed_body,
			excluded.created_at)`, pg.Insert(row)))
}

// Reserve begins an idempotent request that has to work outside of a transaction before Finish. It returns the recorded
// outcome, if there is one. Otherwise it reserves the Idempotency-Key until Finish records the outcome of the same
// request; release frees the key if Finish has not recorded one. If the process dies, the key is free after
// domain.ReservedFor. Reserve returns Conflict if the key was used with another request, or its request is in progress.
func (d *DB) Reserve(
	ctx context.Context, key string, request domain.RequestDigest,
) (recorded *domain.Outcome, release func(), err error) {
	caller := domain.CallerFrom(ctx).Key
	err = d.Tx(ctx, func(ctx context.Context) error {
		row, err := d.lockOutcome(ctx, tryKey, caller, key, request)
		switch {
		case err != nil:
			return err
		case row != nil && row.Status == reserved:
			return errStillRunning()
		case row != nil:
			recorded = new(row.outcome())
			return nil
		}
		reservation := outcomeRow{KeyID: caller, IdempotencyKey: key, Status: reserved, Body: []byte{}, CreatedAt: d.Now()}
		reservation.setDigest(request)
		return d.storeOutcome(ctx, reservation)
	})
	if err != nil {
		return nil, nil, err
	}
	return recorded, func() { // after an error the key is free after domain.ReservedFor
		_, _ = pg.Exec(context.WithoutCancel(ctx), d, "free an idempotency key", pg.SQL(`
			DELETE FROM idempotency_records WHERE key_id = ?caller AND idempotency_key = ?key AND request_hash = ?exact AND status = ?reserved`,
			pg.Named{"caller": caller, "key": key, "exact": request.Exact, "reserved": reserved}))
	}, nil
}

// errStillRunning returns the Conflict of a request while another one with its key is in progress.
func errStillRunning() error {
	e := domain.ErrConflict("", "a request with this Idempotency-Key is still running",
		domain.FieldError{Field: "Idempotency-Key", Message: "belongs to a request that is still running"})
	e.RetryAfter = time.Second
	return e
}

// keyLock is a statement that locks an Idempotency-Key until the end of the transaction, and returns whether it did.
type keyLock string

const (
	tryKey keyLock = "SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 0))"
	// IS NOT NULL: the function returns void, not a boolean.
	waitForKey keyLock = "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 0)) IS NOT NULL"
)

// lockOutcome locks the key until the end of the transaction, and returns the record or the reservation of the request.
// It returns nil if there is none, or it has expired, and Conflict if the key is locked or was used with another
// request. The row is read by a second statement, which sees rows committed before the lock was free.
func (d *DB) lockOutcome(
	ctx context.Context, lock keyLock, caller domain.KeyID, key string, request domain.RequestDigest,
) (*outcomeRow, error) {
	free, err := pg.One[bool](ctx, d, "claim an idempotency key", pg.Prepared(pg.SQL(string(lock), caller.UUID()+"/"+key)))
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, errStillRunning()
	}
	now, mayTakeOver := d.ClaimTime(domain.ReservedFor)
	rows, err := pg.All[outcomeRow](ctx, d, "look for an outcome", pg.Prepared(
		pg.From("idempotency_records AS r").ColumnExpr(pg.Columns[outcomeRow]()).
			Apply(pg.Where("r.key_id = ?caller AND r.idempotency_key = ?key AND r.created_at > ?since",
				pg.Named{"caller": caller, "key": key, "since": now.Add(-domain.OutcomeLife)}))))
	switch {
	case err != nil || len(rows) == 0:
		return nil, err
	case rows[0].Status == reserved && !rows[0].CreatedAt.After(now.Add(-domain.ReservedFor)) && mayTakeOver:
		return nil, nil // the process that reserved the key died
	case !rows[0].isOf(request):
		return nil, domain.ErrConflict("", "this Idempotency-Key was used with another request",
			domain.FieldError{Field: "Idempotency-Key", Message: "was used with another request"})
	default:
		return &rows[0], nil
	}
}
