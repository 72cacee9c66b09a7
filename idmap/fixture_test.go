package idmap

import (
	"context"
	"database/sql"
	"encoding/binary"
	"strings"
	"testing"
)

// execer is a database, a transaction or a connection.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, on execer, query string, args ...any) {
	t.Helper()
	if _, err := on.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// registry opens a migrated database of the test's own.
func registry(t testing.TB) (*sql.DB, *Registry) {
	t.Helper()
	d := openURL(t, databaseURL(t, true))
	return d.SQL(), New(d, 1000)
}

// object returns the id of the n-th object, n from 1.
func object(n int) (id UUID) {
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	id[0] = 1
	return id
}

// create inserts objects n, each in its own statement, so that they get the
// next numbers in that order.
func create(t testing.TB, on execer, kind Kind, ns ...int) {
	t.Helper()
	for _, n := range ns {
		exec(t, on, `INSERT INTO `+tables[kind]+` (id, created_at) VALUES ($1::text::uuid, now())`, anyID(object(n)).UUID())
	}
}

func remove(t testing.TB, on execer, kind Kind, n int) {
	t.Helper()
	exec(t, on, `DELETE FROM `+tables[kind]+` WHERE id = $1::text::uuid`, anyID(object(n)).UUID())
}

// list reads the lines that a query gives.
func list(t testing.TB, db *sql.DB, query string, args ...any) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// state is the registry as text: for each number of the kind the object n that
// has it, with a cross where it is a tombstone.
func state(t testing.TB, db *sql.DB, kind Kind) string {
	t.Helper()
	return strings.Join(list(t, db, `SELECT number || '=' || chr(96 + get_byte(uuid_send(id), 15))
		|| CASE WHEN retired_at IS NULL THEN '' ELSE '✝' END
		FROM id_registry WHERE kind = $1 ORDER BY number`, kind.String()), " ")
}

// number returns the number of object n, 0 if it has none.
func number(t testing.TB, r *Registry, kind Kind, n int) int64 {
	t.Helper()
	key := IDKey{kind, object(n)}
	found, err := r.Numbers(t.Context(), []IDKey{key})
	if err != nil {
		t.Fatal(err)
	}
	return found[key]
}
