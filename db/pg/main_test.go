package pg_test

import (
	"context"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var empty = dbtest.Schema{Name: "pg", Key: "empty", Apply: func(context.Context, string) error { return nil }}

func open(t testing.TB, opts ...pg.Option) *pg.DB {
	t.Helper()
	return openAt(t, dbtest.URL(t, empty), opts...)
}

func openAt(t testing.TB, url string, opts ...pg.Option) *pg.DB {
	t.Helper()
	d, err := pg.Open(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func exec(t testing.TB, d *pg.DB, text string, args ...any) int {
	t.Helper()
	n, err := pg.Exec(t.Context(), d, "run a statement", pg.SQL(text, args...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
