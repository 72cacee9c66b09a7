package pg

import (
	"context"
	"fmt"
	"iter"

	"partnerapi/domain"
)

// EachBatch is the number of rows that Each fetches, and holds in memory, at a time.
const EachBatch = 2000

// Each runs a query by a cursor in the transaction of ctx, and yields its rows, converted as by All. It fails without a
// transaction. The query runs each time that the sequence is ranged over. Other statements may run between two rows. An
// error is yielded last, with a zero row.
func Each[Row any](ctx context.Context, r Runner, action string, q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var none Row
		// The statements are unrepeated: the cursor's name is part of their texts.
		cursor := fmt.Sprintf("rows_%x", [16]byte(NewID[domain.EventKind]()))
		if err := Run(ctx, r, action, unrepeated{SQL("DECLARE "+cursor+" NO SCROLL CURSOR FOR ?", q)}); err != nil {
			yield(none, err)
			return
		}
		// An error is ignored: the end of the transaction closes the cursor too.
		defer func() { _, _ = Exec(ctx, r, action, unrepeated{SQL("CLOSE " + cursor)}) }()

		fetch := unrepeated{SQL(fmt.Sprintf("FETCH %d FROM %s", EachBatch, cursor))}
		for {
			rows, err := readRows[Row](ctx, r, action, fetch, EachBatch)
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
