package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// Runner is a DB, or what embeds one.
type Runner interface {
	run(ctx context.Context, fn func(*pgx.Conn) error) error
	named(ctx context.Context, doing string) context.Context
	planOf(q Query) pgx.QueryExecMode
	TranslateError(doing string, err error) error
}

// All runs a query in the transaction of ctx, if there is one, and returns its
// rows. Row is a struct whose fields name the columns as a Bun model does, or
// the type of the one column. doing says in errors what was being done.
func All[Row any](ctx context.Context, r Runner, doing string, q Query) ([]Row, error) {
	return some[Row](ctx, r, doing, q, 0)
}

// some is All with the expected number of rows.
func some[Row any](ctx context.Context, r Runner, doing string, q Query, expected int) (rows []Row, err error) {
	var s statement
	q.write(&s)
	err = r.run(ctx, func(conn *pgx.Conn) error {
		answer, err := conn.Query(r.named(ctx, doing), s.sql(), append([]any{r.planOf(q)}, s.args...)...)
		if err != nil {
			return err
		}
		defer answer.Close()
		rows, err = scan(answer, conn.TypeMap(), make([]Row, 0, expected))
		return err
	})
	return rows, r.TranslateError(doing, err)
}

// One runs a query and returns its single row. If there is none, the error is ErrNoRow,
// wrapped.
func One[Row any](ctx context.Context, r Runner, doing string, q Query) (row Row, err error) {
	rows, err := some[Row](ctx, r, doing, q, 1)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", doing, ErrNoRow)
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// ErrNoRow says that a query gave no row.
var ErrNoRow = errors.New("there is no such row")

// Find is One for the object of a noun: NotFound where there is none.
func Find[Row any](ctx context.Context, r Runner, noun string, q Query) (Row, error) {
	row, err := One[Row](ctx, r, "read a "+noun, q)
	if errors.Is(err, ErrNoRow) {
		err = domain.ErrNotFound(noun)
	}
	return row, err
}

// Exec runs a statement and returns how many rows it changed.
func Exec(ctx context.Context, r Runner, doing string, q Query) (changed int, err error) {
	var s statement
	q.write(&s)
	err = r.run(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(r.named(ctx, doing), s.sql(), append([]any{r.planOf(q)}, s.args...)...)
		changed = int(tag.RowsAffected())
		return err
	})
	return changed, r.TranslateError(doing, err)
}

// Copy adds n rows to a table in the transaction of ctx: row returns the values of
// row i, from 0, in the order of the columns. It costs the server half of what an INSERT
// of many rows does.
func Copy(ctx context.Context, r Runner, doing, table string, columns []string, n int, row func(int) []any) error {
	err := r.run(ctx, func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(r.named(ctx, doing), pgx.Identifier{table}, columns,
			pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
		return err
	})
	return r.TranslateError(doing, err)
}

// Existing returns which ids are those of rows that meet a condition: from is the table and
// ends in AND or WHERE, as in "clients WHERE archived_at IS NULL AND".
func Existing[K domain.Kind](
	ctx context.Context, r Runner, what, from string, ids []domain.ID[K],
) (map[domain.ID[K]]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := All[domain.ID[K]](ctx, r, what, SQL("SELECT id FROM "+from+" id = ANY(?::uuid[])", IDs(ids)))
	return Index(found, func(id *domain.ID[K]) (domain.ID[K], bool) { return *id, true }), err
}

// PreferIndexes makes the rest of the transaction find rows by indexes. The statistics of a
// staging table lag behind its growth; by them PostgreSQL would read it whole each time.
func PreferIndexes(ctx context.Context, r Runner) error {
	_, err := Exec(ctx, r, "look rows up by their keys", SQL(`
		SELECT set_config(name, 'off', true)
		FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan']) AS name`))
	return err
}
