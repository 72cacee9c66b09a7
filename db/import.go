package db

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file and the others called import_… apply what a platform says of its objects
// (decisions 10). A batch is of records of one kind, each of another object, and is
// applied in a transaction: what a record names of an object that is there is set, an
// object that is not there is made, and a record that says nothing new writes
// nothing. What is imported as new writes no events and sends no mail; what changes
// does as it would through the API.

// Records is a kind of objects of which an import applies records, and an export reads
// them. They are pointers to values of one type of package domain.
type Records interface {
	// Object is what lines call the kind.
	Object() string
	// Type is that of the records.
	Type() reflect.Type
	// Import applies a batch of records of different objects in one transaction, and
	// returns what became of each, in their order. It takes the same number of statements
	// for any number of records, but where its kind says otherwise, and must not be called
	// in a transaction.
	Import(ctx context.Context, d *DB, batch []any) ([]domain.ImportResult, error)
	// Export reads what an import can take, as records: all clients' objects or those of
	// one partner's, archived ones too, in the order of their keys or their creation. What
	// the service derives is not in them. It reads by a cursor, in the transaction of ctx,
	// without which it fails (Snapshot).
	Export(ctx context.Context, d *DB, partner domain.PartnerID) iter.Seq2[any, error]
}

const (
	// importLock is the advisory lock of the process that imports.
	importLock = "import"
	// importTries is how often a batch is tried that clashes with other writers.
	importTries = 5
)

// Importing runs fn unless another process is importing, and reports whether it ran.
// It needs four connections of the pool, and no transaction around it.
func (d *DB) Importing(ctx context.Context, fn func(context.Context) error) (bool, error) {
	return d.TryAdvisoryLock(ctx, importLock, fn)
}

// TryImport runs fn in one transaction, and rolls back what it did whether it succeeds
// or not. Imports of records work in it at savepoints, one at a time.
func (d *DB) TryImport(ctx context.Context, fn func(context.Context) error) error {
	return d.DryRun(ctx, func(ctx context.Context) error { return fn(context.WithValue(ctx, tryingKey{}, true)) })
}

type tryingKey struct{}

// trying reports whether what ctx's transaction does is rolled back in the end.
func trying(ctx context.Context) bool { return ctx.Value(tryingKey{}) != nil }

// staleBatch is of how many clients a transaction marks the summaries.
const staleBatch = 500

// StaleSummaries marks the summaries as stale of the clients with users who changed
// since a moment: the next reads make them again. It must not be called in a
// transaction.
func (d *DB) StaleSummaries(ctx context.Context, since time.Time) error {
	for last := (domain.ClientID{}); ; {
		var batch []domain.ClientID
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			c.Lock(ClientLocks)
			batch, err = pg.All[domain.ClientID](ctx, c, "lock clients with stale summaries", pg.SQL(`
				SELECT c.id FROM clients AS c WHERE c.id > ?0 AND EXISTS (
					SELECT 1 FROM users AS u WHERE u.client_id = c.id AND u.updated_at >= ?1)
				ORDER BY c.id LIMIT ?2 FOR NO KEY UPDATE`, last, since, staleBatch))
			if err != nil {
				return err
			}
			_, err = pg.Exec(ctx, c, "mark summaries as stale", pg.SQL(
				"UPDATE clients SET summarized_at = least(summarized_at, ?1) WHERE id = ANY(?0::uuid[])",
				pg.IDs(batch), c.At.Add(-2*domain.SummaryAge)))
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1]
	}
}

// importBatch applies a batch of records in a change, again where it clashes with
// what others write meanwhile. The results are in the order of the batch, refused
// where apply says nothing.
func importBatch(
	ctx context.Context, d *DB, batch []any,
	apply func(ctx context.Context, c *Change, results []domain.ImportResult) error,
) ([]domain.ImportResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		results := make([]domain.ImportResult, len(batch))
		err := d.Savepoint(ctx, func(ctx context.Context) error {
			return d.Change(ctx, func(ctx context.Context, c *Change) error { return apply(ctx, c, results) })
		})
		if err == nil {
			return results, nil
		}
		if try == importTries || !pg.Retryable(err) && !pg.UniqueViolation(err) && !domain.IsCode(err, domain.Conflict) {
			return nil, err
		}
	}
}

// latest is the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sortedUnique sorts ids and drops those that are there twice.
func sortedUnique[K domain.Kind](ids []domain.ID[K]) []domain.ID[K] {
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}
