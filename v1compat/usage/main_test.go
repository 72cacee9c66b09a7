package usage

import (
	"log/slog"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// open opens a database of the test's own.
func open(t testing.TB) *pg.DB {
	t.Helper()
	d, err := pg.Open(dbtest.URL(t, idmaptest.Schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// noon is when tests take place.
var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// counter is a Counter whose log is the test's.
func counter(t testing.TB, d *pg.DB, clock domain.Clock) *Counter {
	return New(d, clock, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func key(n byte) domain.KeyID { return domain.KeyID{0: 1, 15: n} }

// flush flushes, and wants it to succeed.
func flush(t testing.TB, c *Counter) {
	t.Helper()
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// all reads every row.
func all(t testing.TB, d *pg.DB) []Row {
	t.Helper()
	list, err := ReadRows(t.Context(), d, domain.Date{}.AddDays(1))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// calls is how many calls of a key the rows hold.
func calls(list []Row, of domain.KeyID) (n int64) {
	for _, r := range list {
		if r.Key == of {
			n += r.Calls
		}
	}
	return n
}

func exec(t testing.TB, d *pg.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.SQL().ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
