package seed

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// writer copies rows into tables. After an error it does nothing more; the
// error is the first one.
type writer struct {
	tx  pgx.Tx
	err error
}

// put takes the values of a row, in the order of the columns.
type put func(values ...any)

// copy adds the rows that each puts to a table; columns are its columns,
// parted by blanks.
func (w *writer) copy(ctx context.Context, table, columns string, each func(put)) {
	if w.err != nil {
		return
	}
	rows := func(yield func([]any) bool) {
		more := true
		each(func(values ...any) { more = more && yield(values) })
	}
	next, stop := iter.Pull(iter.Seq[[]any](rows))
	defer stop()
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{table}, strings.Fields(columns), pgx.CopyFromFunc(func() ([]any, error) {
		row, _ := next()
		return row, nil
	}))
	if err != nil {
		w.err = fmt.Errorf("copy into %s: %w", table, err)
	}
}

// uuid is an id as the driver takes one without asking it for its text.
func uuid[K domain.Kind](id domain.ID[K]) [16]byte { return id }

// nullID is NULL for the zero id.
func nullID[K domain.Kind](id domain.ID[K]) any {
	if id.IsZero() {
		return nil
	}
	return uuid(id)
}

// nullTime is NULL for the zero time.
func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// nullDate is NULL for the zero date.
func nullDate(d domain.Date) any {
	if d.IsZero() {
		return nil
	}
	return d.Time()
}

// nullText is NULL for the empty text.
func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}
