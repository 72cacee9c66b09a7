package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// Runner is a DB, or a type that embeds one.
type Runner interface {
	run(ctx context.Context, fn func(*pgx.Conn) error) error
	withName(ctx context.Context, action string) context.Context
	execMode(q Query) pgx.QueryExecMode
	TranslateError(action string, err error) error
}

// All runs a query, in the transaction of ctx if there is one, and returns its rows. Row is a struct whose fields
// correspond to the columns as in a Bun model, or the type of a single column. action is the statement's name, for
// errors and tracers.
func All[Row any](ctx context.Context, r Runner, action string, q Query) ([]Row, error) {
	return readRows[Row](ctx, r, action, q, 0)
}

// readRows is All with the expected number of rows, for which it allocates memory.
func readRows[Row any](ctx context.Context, r Runner, action string, q Query, expected int) (rows []Row, err error) {
	text, values := render(q)
	err = r.run(ctx, func(conn *pgx.Conn) error {
		result, err := conn.Query(r.withName(ctx, action), text, append([]any{r.execMode(q)}, values...)...)
		if err != nil {
			return err
		}
		defer result.Close()
		rows, err = scan(result, make([]Row, 0, expected))
		return err
	})
	return rows, r.TranslateError(action, err)
}

// One runs a query like All and returns its first row. If there is none, the error wraps ErrNoRow.
func One[Row any](ctx context.Context, r Runner, action string, q Query) (row Row, err error) {
	rows, err := readRows[Row](ctx, r, action, q, 1)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", action, ErrNoRow)
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// ErrNoRow reports that a query returned no row.
var ErrNoRow = errors.New("there is no such row")

// Find is One for an object with a noun. If there is no row, it returns NotFound.
func Find[Row any](ctx context.Context, r Runner, noun string, q Query) (Row, error) {
	row, err := One[Row](ctx, r, "read a "+noun, q)
	if errors.Is(err, ErrNoRow) {
		err = domain.ErrNotFound(noun)
	}
	return row, err
}

// Exec runs a statement, in the transaction of ctx if there is one, and returns the number of rows that it changed.
func Exec(ctx context.Context, r Runner, action string, q Query) (changed int, err error) {
	text, values := render(q)
	err = r.run(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(r.withName(ctx, action), text, append([]any{r.execMode(q)}, values...)...)
		changed = int(tag.RowsAffected())
		return err
	})
	return changed, r.TranslateError(action, err)
}

// Run runs a statement whose number of changed rows the caller does not need.
func Run(ctx context.Context, r Runner, action string, q Query) error {
	_, err := Exec(ctx, r, action, q)
	return err
}

// RunOr is Run, but returns none if the statement changed no row.
func RunOr(ctx context.Context, r Runner, none error, action string, q Query) error {
	changed, err := Exec(ctx, r, action, q)
	if err == nil && changed == 0 {
		return none
	}
	return err
}

// Copy inserts n rows into a table with COPY, in the transaction of ctx if there is one. row returns the values of the
// row with an index, from 0, in the order of the columns. It costs the server half as much as an INSERT of many rows.
func Copy(ctx context.Context, r Runner, action, table string, columns []string, n int, row func(int) []any) error {
	err := r.run(ctx, func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(r.withName(ctx, action), pgx.Identifier{table}, columns,
			pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
		return err
	})
	return r.TranslateError(action, err)
}

// Existing returns the ids for which a table has a row. from is all that precedes the condition on the id, as in
// "courses WHERE" or "clients WHERE archived_at IS NULL AND". action is the statement's name.
func Existing[K domain.Kind](
	ctx context.Context, r Runner, action, from string, ids []domain.ID[K],
) (map[domain.ID[K]]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := All[domain.ID[K]](ctx, r, action, SQL("SELECT id FROM "+from+" id = ANY(?::uuid[])", IDs(ids)))
	return Index(found, func(id *domain.ID[K]) (domain.ID[K], bool) { return *id, true }), err
}

// PreferIndexes makes the later statements of the transaction find rows by indexes. It is for staging tables, whose
// statistics are out of date while they grow: PostgreSQL would otherwise read the whole table each time.
func PreferIndexes(ctx context.Context, r Runner) error {
	return Run(ctx, r, "look rows up by their keys", SQL(`
		SELECT set_config(name, 'off', true)
		FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan']) AS name`))
}
