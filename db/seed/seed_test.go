package seed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// demoSchema is worldtest.Schema with the demonstration of noon in it. Its key is of this
// process: the demonstration changes with the code.
var demoSchema = dbtest.Schema{Name: "seeddemo", Key: rand.Text(), Apply: func(ctx context.Context, url string) error {
	if err := worldtest.Schema.Apply(ctx, url); err != nil {
		return err
	}
	d, err := db.Open(url, db.WithClock(domain.NewManualClock(noon)))
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = Demo(ctx, d)
	return err
}}

// noon is the time of all tests but those that say otherwise: a year after a
// leap day, so that windows of months end on a day that this year lacks.
var noon = time.Date(2029, 2, 28, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, schema dbtest.Schema, now time.Time) *db.DB {
	t.Helper()
	d, err := db.Open(dbtest.URL(t, schema), db.WithClock(domain.NewManualClock(now)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// demo opens a database with the demonstration of noon.
func demo(t testing.TB) (*db.DB, DemoKeys) {
	t.Helper()
	return demoAt(t, demoSchema, noon)
}

// demoAt opens a database and has it hold the demonstration of a time.
func demoAt(t testing.TB, schema dbtest.Schema, now time.Time) (*db.DB, DemoKeys) {
	t.Helper()
	d := open(t, schema, now)
	keys, err := Demo(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return d, keys
}

func value[T any](t testing.TB, d *db.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := d.SQL().QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// contents is a checksum of every table that seeding fills, by name.
func contents(t testing.TB, d *db.DB, leaveOut ...string) map[string]string {
	t.Helper()
	tables, err := pg.All[string](t.Context(), d, "list tables", pg.SQL(`SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = 'public' AND table_name NOT IN ('secrets', 'schema_migrations', 'idmap_migrations')`))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	without := "'" + strings.Join(leaveOut, "', '") + "'"
	for _, table := range tables {
		sums[table] = value[string](t, d, fmt.Sprintf(
			`SELECT count(*) || ' rows ' || md5(coalesce(string_agg(line, '' ORDER BY line), ''))
			FROM (SELECT (to_jsonb(t) - ARRAY[%s])::text AS line FROM %s AS t) AS lines`, without, table))
	}
	return sums
}

func wantSame(t *testing.T, a, b map[string]string) {
	t.Helper()
	if len(a) < 20 || len(a) != len(b) {
		t.Fatalf("%d tables and %d", len(a), len(b))
	}
	for table := range a {
		if a[table] != b[table] {
			t.Errorf("%s: %s, then %s", table, a[table], b[table])
		}
	}
}

func TestDemoRefusesOtherData(t *testing.T) {
	t.Parallel()
	d := open(t, worldtest.Schema, noon)
	if err := Large(t.Context(), d, Size{Clients: 1, Users: 3}, nil); err != nil {
		t.Fatal(err)
	}
	before := contents(t, d)
	if _, err := Demo(t.Context(), d); !errors.Is(err, ErrNotEmpty) {
		t.Fatalf("error %v, want %v", err, ErrNotEmpty)
	}
	wantSame(t, before, contents(t, d))
}

func TestLargeSizes(t *testing.T) {
	t.Parallel()
	d := open(t, worldtest.Schema, noon)
	for _, size := range []Size{{Clients: -1}, {Clients: 1, Users: -1}, {Users: 1}} {
		if Large(t.Context(), d, size, nil) == nil {
			t.Errorf("%+v is taken", size)
		}
	}
	for _, size := range []Size{{}, {Clients: 2}, {Clients: 5, Users: 2}, {Clients: 1, Users: 7}} {
		if err := Large(t.Context(), d, size, nil); err != nil {
			t.Errorf("%+v: %v", size, err)
		}
	}
	if n := value[int](t, d, "SELECT count(*) FROM clients"); n != 8 {
		t.Errorf("%d clients", n)
	}
	if n := value[int](t, d, "SELECT count(*) FROM users"); n != 9 {
		t.Errorf("%d users", n)
	}
}

func TestLargeStopsWithItsContext(t *testing.T) {
	t.Parallel()
	d := open(t, worldtest.Schema, noon)
	ctx, cancel := context.WithCancel(t.Context())
	err := Large(ctx, d, Size{Clients: 20, Users: 20000}, func(int, int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if left := value[int](t, d, "SELECT count(*) FROM partners"); left != 0 {
		t.Error("a part was kept")
	}
}
