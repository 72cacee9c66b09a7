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

// copy adds rows to a table; columns are its columns, parted by blanks, whose order is
// that of the values.
func (w *writer) copy(ctx context.Context, table, columns string, rows iter.Seq[[]any]) {
	if w.err != nil {
		return
	}
	next, stop := iter.Pull(rows)
	defer stop()
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{table}, strings.Fields(columns), pgx.CopyFromFunc(func() ([]any, error) {
		row, _ := next()
		return row, nil
	}))
	if err != nil {
		w.err = fmt.Errorf("copy into %s: %w", table, err)
	}
}

// exec executes a statement that does something to what was copied.
func (w *writer) exec(ctx context.Context, what, query string, args ...any) {
	if w.err != nil {
		return
	}
	if _, err := w.tx.Exec(ctx, query, args...); err != nil {
		w.err = fmt.Errorf("%s: %w", what, err)
	}
}

// each are the rows of a list.
func each[T any](list []T, row func(T) []any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for _, x := range list {
			if !yield(row(x)) {
				return
			}
		}
	}
}

// perClient are the rows of what each client has.
func perClient[T any](clients []*client, of func(*client) []T, row func(*client, T) []any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for _, c := range clients {
			for _, x := range of(c) {
				if !yield(row(c, x)) {
					return
				}
			}
		}
	}
}

// perUser are the rows of what each user has.
func perUser[T any](clients []*client, of func(*user) []T, row func(c *client, u *user, x *T) []any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for _, c := range clients {
			for _, u := range c.users {
				for list, i := of(u), 0; i < len(list); i++ {
					if !yield(row(c, u, &list[i])) {
						return
					}
				}
			}
		}
	}
}

// flat are the parts of all of a list.
func flat[P, T any](list []P, of func(P) []T) (all []T) {
	for _, x := range list {
		all = append(all, of(x)...)
	}
	return all
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
