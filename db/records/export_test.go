package records

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
)

// ImportAll applies records of a kind.
func ImportAll[T any](ctx context.Context, d *db.DB, of Kind, batch []T) ([]domain.ImportResult, error) {
	records := make([]any, len(batch))
	for i := range batch {
		records[i] = &batch[i]
	}
	return of.Import(ctx, d, records)
}
