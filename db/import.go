package db

import (
	"context"
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
// or not. The methods that import work in it at savepoints, one at a time.
func (d *DB) TryImport(ctx context.Context, fn func(context.Context) error) error {
	return d.Trial(ctx, func(ctx context.Context) error { return fn(context.WithValue(ctx, tryingKey{}, true)) })
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
func importBatch[T any](
	ctx context.Context, d *DB, batch []T,
	apply func(c *Change, ctx context.Context, batch []T, results []domain.ImportResult) error,
) ([]domain.ImportResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		results := make([]domain.ImportResult, len(batch))
		err := d.Savepoint(ctx, func(ctx context.Context) error {
			return d.Change(ctx, func(ctx context.Context, c *Change) error { return apply(c, ctx, batch, results) })
		})
		if err == nil {
			return results, nil
		}
		if try == importTries || !pg.Retryable(err) && !pg.Twice(err) && !domain.IsCode(err, domain.Conflict) {
			return nil, err
		}
	}
}

// mapped are rows by their keys.
func mapped[Row any, K comparable](rows []Row, key func(*Row) K) map[K]Row {
	by := make(map[K]Row, len(rows))
	for i := range rows {
		by[key(&rows[i])] = rows[i]
	}
	return by
}

// referredClient is a client that records refer to.
type referredClient struct {
	ID        domain.ClientID
	PartnerID domain.PartnerID
	Archived  bool
	// There tells it from a client that is not there.
	There bool
}

// clientsCalled reads those of the clients that are there.
func (c *Change) clientsCalled(
	ctx context.Context, ids []domain.ClientID,
) (map[domain.ClientID]referredClient, error) {
	rows, err := pg.All[referredClient](ctx, c, "look for clients", pg.SQL(`
		SELECT id, partner_id, archived_at IS NOT NULL AS archived, true AS there FROM clients
		WHERE id = ANY(?::uuid[])`, pg.IDs(sortedUnique(ids))))
	return mapped(rows, func(r *referredClient) domain.ClientID { return r.ID }), err
}

// clientRef is a reference to a client, and userRef one to a user.
type clientRef = domain.Field[domain.Ref[domain.ClientKind]]

type userRef = domain.Field[domain.Ref[domain.UserKind]]

// refsOf are the ids in a field of records, zero where a record has none.
func refsOf[Record any, K domain.Kind](batch []Record, in func(*Record) domain.Field[domain.Ref[K]]) []domain.ID[K] {
	ids := make([]domain.ID[K], len(batch))
	for i := range batch {
		ids[i] = in(&batch[i]).Value.ID
	}
	return ids
}

// missing is the refusal of a new object that lacks a field.
func missing(field string) domain.ImportResult { return domain.RefuseImport("%s is missing", field) }

// noSuch is the refusal of a record whose field refers to what is not there.
func noSuch(field, noun string) domain.ImportResult {
	return domain.RefuseImport("%s: %s", field, domain.NoSuchObject(noun))
}

// takenBy is the refusal of a record that names what another object has, by which it
// says that.
func takenBy[K domain.Kind](field string, other domain.ID[K]) domain.ImportResult {
	r := domain.RefuseImport("%s: the %s %s has it already", field, other.Noun(), domain.RefTo(other))
	r.Clashes = true
	return r
}

// cannotChange is the refusal of a record that says another thing than before of
// what stays as it is.
func cannotChange(field string) domain.ImportResult {
	return domain.RefuseImport("%s cannot be changed", field)
}

func refused(err error) domain.ImportResult { return domain.RefuseImport("%s", err) }

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
