package idmap

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
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
	db := openURL(t, databaseURL(t, true))
	return db, New(db, 1000)
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

// state is the registry as text: for each number of the kind the object n that
// has it, with a cross where it is a tombstone.
func state(t testing.TB, db *sql.DB, kind Kind) string {
	t.Helper()
	numbered := make(map[int64]string)
	r := New(db, 0)
	err := r.each(t.Context(), func(rows *sql.Rows) error {
		var number int64
		var id anyID
		var retired bool
		err := rows.Scan(&number, &id, &retired)
		mark := ""
		if retired {
			mark = "✝"
		}
		numbered[number] = fmt.Sprintf("%d=%c%s", number, 'a'-1+rune(id[15]), mark)
		return err
	}, `SELECT number, id, retired_at IS NOT NULL FROM id_registry WHERE kind = $1`, kind.String())
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, number := range slices.Sorted(maps.Keys(numbered)) {
		text += " " + numbered[number]
	}
	return text[min(1, len(text)):]
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
