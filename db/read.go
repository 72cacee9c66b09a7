package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// The reads that most requests consist of are built by Bun like all others,
// but sent with placeholders in the place of values and scanned by pgx: their
// texts are then the same each time, which PostgreSQL need not parse again, and
// their rows come in binary form. It halves what a read costs.

// binds are the values of such a query.
type binds []any

// add takes a value and returns its placeholder.
func (b *binds) add(value any) bun.Safe {
	if v, ok := value.(driver.Valuer); ok {
		if plain, err := v.Value(); err == nil {
			value = plain
		}
	}
	*b = append(*b, value)
	return bun.Safe("$" + strconv.Itoa(len(*b)))
}

// addAll takes values and returns their placeholders.
func (b *binds) addAll(values []any) []any {
	placeholders := make([]any, len(values))
	for i, value := range values {
		placeholders[i] = b.add(value)
	}
	return placeholders
}

// How a query is planned.
const (
	// planOnce keeps one plan per connection: for reads by key and others whose
	// plan no value changes.
	planOnce = pgx.QueryExecModeCacheStatement
	// planEach plans for the values: a page's best plan depends on its client.
	planEach = pgx.QueryExecModeCacheDescribe
)

// readOne reads the single row of a query; sql.ErrNoRows where there is none.
func readOne[Row any](ctx context.Context, d *DB, query string, values binds) (row Row, err error) {
	rows, err := read[Row](ctx, d, query, values, planOnce, 1)
	if err != nil {
		return row, err
	}
	if len(rows) == 0 {
		return row, sql.ErrNoRows
	}
	return rows[0], nil
}

// read runs a query that was built with placeholders for the values, and scans
// its rows, of which some are expected, into the fields of Row's Bun model.
func read[Row any](ctx context.Context, d *DB, query string, values binds, plan pgx.QueryExecMode, expected int) (rows []Row, err error) {
	table := d.bun.Table(reflect.TypeFor[Row]())
	err = d.driver(ctx, func(conn *pgx.Conn) error {
		answer, err := conn.Query(ctx, query, append([]any{plan}, values...)...)
		if err != nil {
			return err
		}
		defer answer.Close()
		rows, err = scan(table, answer, make([]Row, 0, expected))
		return err
	})
	return rows, err
}

// scan appends the rows of an answer to those that are there.
func scan[Row any](table *schema.Table, answer pgx.Rows, rows []Row) ([]Row, error) {
	var row, empty Row
	columns := answer.FieldDescriptions()
	targets := make([]any, len(columns))
	for i, column := range columns {
		field := table.LookupField(column.Name)
		if field == nil {
			return nil, fmt.Errorf("%s has no column %s", table.TypeName, column.Name)
		}
		targets[i] = field.Value(reflect.ValueOf(&row).Elem()).Addr().Interface()
	}
	for answer.Next() {
		row = empty // so that nothing is shared with the row before
		if err := answer.Scan(targets...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, answer.Err()
}

// prepareTypes makes a connection read times in UTC, whatever the machine's
// zone, and hand ids over as the 16 bytes that they came in.
func prepareTypes(_ context.Context, conn *pgx.Conn) error {
	types := conn.TypeMap()
	types.RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	types.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: plainUUID{}})
	return nil
}

// plainUUID is the codec of UUIDs, but for scanners, which would get the text.
type plainUUID struct{ pgtype.UUIDCodec }

// DecodeDatabaseSQLValue returns the value for a scanner, which copies it.
func (u plainUUID) DecodeDatabaseSQLValue(types *pgtype.Map, oid uint32, format int16, src []byte) (driver.Value, error) {
	if format == pgtype.BinaryFormatCode && src != nil {
		return src, nil
	}
	return u.UUIDCodec.DecodeDatabaseSQLValue(types, oid, format, src)
}

// driver runs fn on the connection of the transaction of ctx, or on one of the
// pool, and again on another where that one turned out to be dead.
func (d *DB) driver(ctx context.Context, fn func(*pgx.Conn) error) error {
	if tx, ok := ctx.Value(txKey{}).(transaction); ok {
		return raw(tx.conn.Conn, fn)
	}
	for tries := 1; ; tries++ {
		conn, err := d.bun.DB.Conn(ctx)
		if err != nil {
			return err
		}
		err = raw(conn, fn)
		if closed := conn.Close(); err == nil && closed != nil && !errors.Is(closed, sql.ErrConnDone) {
			err = closed
		}
		if tries == 3 || err == nil || !pgconn.SafeToRetry(err) {
			return err
		}
	}
}

func raw(conn *sql.Conn, fn func(*pgx.Conn) error) error {
	return conn.Raw(func(driver any) error { return fn(driver.(*stdlib.Conn).Conn()) })
}
