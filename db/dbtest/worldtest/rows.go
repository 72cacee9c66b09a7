package worldtest

import (
	"context"
	"testing"

	"partnerapi/db"
)

// Rows writes and reads rows of a test's database in plain SQL. A statement that fails stops the test.
type Rows struct {
	t testing.TB
	d *db.DB
}

// RowsOf returns the Rows of a database.
func RowsOf(t testing.TB, d *db.DB) Rows { return Rows{t, d} }

// Exec runs a statement.
func (r Rows) Exec(query string, args ...any) {
	r.t.Helper()
	if _, err := r.d.SQL().ExecContext(context.Background(), query, args...); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

// Scan reads one row.
func (r Rows) Scan(query string, args []any, into ...any) {
	r.t.Helper()
	if err := r.d.SQL().QueryRowContext(context.Background(), query, args...).Scan(into...); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

// Number returns the number that a query selects.
func (r Rows) Number(query string, args ...any) (n int) {
	r.t.Helper()
	r.Scan(query, args, &n)
	return n
}

// Text returns the text that a query selects.
func (r Rows) Text(query string, args ...any) (text string) {
	r.t.Helper()
	r.Scan(query, args, &text)
	return text
}

// Must stops the test on an error.
func (r Rows) Must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
