package pg

import (
	"context"
	"fmt"
	"iter"

	"partnerapi/domain"
)

// EachBatch is how many rows Each reads, and holds in memory, at a time.
const EachBatch = 2000

// Each runs a query by a cursor in the transaction of ctx, and yields its rows as All returns
// them. Without a transaction it fails. The query runs whenever the rows are ranged over, not
// before. Other statements may run between two rows. The error, if any, comes last.
func Each[Row any](ctx context.Context, r Runner, doing string, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var none Row
		cursor := fmt.Sprintf("rows_%x", [16]byte(NewID[domain.EventKind]()))
		if _, err := Exec(ctx, r, doing, once{SQL("DECLARE "+cursor+" NO SCROLL CURSOR FOR ?", q)}); err != nil {
			yield(none, err)
			return
		}
		// The end of the transaction closes it too.
		defer func() { _, _ = Exec(ctx, r, doing, once{SQL("CLOSE " + cursor)}) }()

		fetch := once{SQL(fmt.Sprintf("FETCH %d FROM %s", EachBatch, cursor))}
		for {
			rows, err := some[Row](ctx, r, doing, fetch, EachBatch)
			if err != nil {
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if len(rows) < EachBatch {
				return
			}
		}
	}
}
