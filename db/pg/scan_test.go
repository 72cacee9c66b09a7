package pg_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// thing has a field of every kind that rows have.
type thing struct {
	bun.BaseModel `bun:"table:things,alias:t"`

	ID     domain.ClientID
	Maker  *domain.UserID
	Name   string
	Role   domain.Role
	Note   *string
	Small  int
	Middle int
	Large  int
	Rate   float64
	On     bool
	Tags   []string `bun:"tags,array"`
	Points []int    `bun:"points,array"`
	Day    domain.Date
	Due    *domain.Date
	At     time.Time
	Later  *time.Time
	Count  *int
	Blob   []byte
	part
}

type part struct{ Shown bool }

const things = `CREATE TABLE things (id uuid, maker uuid, name text, role text, note text, small smallint, middle integer,
	large bigint, rate float8, "on" boolean, tags text[], points smallint[], day date, due date, at timestamptz,
	later timestamptz, count integer, blob bytea, shown boolean)`

const thingsOf = `SELECT t.id, t.maker, t.name, t.role, t.note, t.small, t.middle, t.large, t.rate, t."on", t.tags, t.points,
	t.day, t.due, t.at, t.later, t.count, t.blob, t.shown FROM things AS t`

// TestNullZero: a field that is marked nullzero is zero where its column is NULL.
func TestNullZero(t *testing.T) {
	type marked struct {
		Name string    `bun:"name,nullzero"`
		At   time.Time `bun:"at,nullzero"`
		Size int
	}
	got, err := pg.One[marked](t.Context(), open(t), "read a thing", pg.SQL(
		"SELECT NULL::text AS name, NULL::timestamptz AS at, 3 AS size"))
	if err != nil || got != (marked{Size: 3}) {
		t.Errorf("read %+v, %v", got, err)
	}
}

// TestScan: values of every type arrive, NULL where a field can hold it.
func TestScan(t *testing.T) {
	d := open(t)
	exec(t, d, things)
	exec(t, d, `INSERT INTO things VALUES
		('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', 'Grüße', 'finance', '', -32768, -2147483648,
			-9223372036854775808, -0.5, true, '{"","a,b",NULLS}', '{1,-2}', '0001-01-02', '9999-12-31', '1969-12-31T23:59:59.999999Z',
			'2026-06-15T12:00:00.000001+02:00', 0, '\x00ff', true),
		('00000000-0000-0000-0000-000000000003', NULL, '', 'standard', NULL, 32767, 2147483647, 9223372036854775807, 'infinity', false,
			'{}', NULL, NULL, NULL, '2000-01-01T00:00:00Z', NULL, NULL, NULL, false)`)
	maker, note, count := domain.UserID{15: 2}, "", 0
	first, last := domain.Date{}.AddDays(1), domain.DateOf(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
	later := time.Date(2026, 6, 15, 10, 0, 0, 1000, time.UTC)
	want := []thing{{
		ID: domain.ClientID{15: 1}, Maker: &maker, Name: "Grüße", Role: "finance", Note: &note, Small: -1 << 15, Middle: -1 << 31, Large: -1 << 63,
		Rate: -0.5, On: true, Tags: []string{"", "a,b", "NULLS"}, Points: []int{1, -2}, Day: first, Due: &last,
		At: time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC), Later: &later, Count: &count, Blob: []byte{0, 255}, part: part{Shown: true},
	}, {
		ID: domain.ClientID{15: 3}, Role: "standard", Small: 1<<15 - 1, Middle: 1<<31 - 1, Large: 1<<63 - 1, Tags: []string{},
		At: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
	}}
	for range 2 { // with a layout that is made, and with one that is known
		for _, q := range []pg.Query{pg.SQL(thingsOf), pg.Prepared(pg.SQL(thingsOf))} {
			got, err := pg.All[thing](t.Context(), d, "read things", q)
			if err != nil {
				t.Fatal(err)
			}
			got[1].Rate = 0
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read %+v\nwant %+v", got, want)
			}
		}
	}
}

// TestScanRefuses: what a field cannot hold is an error that names the column.
func TestScanRefuses(t *testing.T) {
	d := open(t)
	for query, says := range map[string]string{
		"SELECT NULL::text AS name":                       "name",
		"SELECT NULL::uuid AS id":                         "id",
		"SELECT NULL::integer AS small":                   "small",
		"SELECT NULL::timestamptz AS at":                  "at",
		"SELECT 'infinity'::timestamptz AS at":            "Infinity",
		"SELECT '-infinity'::date AS day":                 "infinite",
		"SELECT '{a,NULL}'::text[] AS tags":               "tags",
		"SELECT 'a'::text AS small":                       "small",
		"SELECT 1 AS unknown":                             "has no column unknown",
		"SELECT 1/0 AS small":                             "division by zero",
		"SELECT small FROM (VALUES (1), (NULL)) v(small)": "small",
	} {
		if _, err := pg.All[thing](t.Context(), d, "read", pg.SQL(query)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := pg.All[int](t.Context(), d, "read", pg.SQL("SELECT 1, 2")); err == nil {
		t.Error("two columns fit in a number")
	}
	if n, err := pg.All[int](t.Context(), d, "read", pg.SQL("SELECT generate_series(1, 3)")); err != nil || len(n) != 3 || n[2] != 3 {
		t.Errorf("read %v, %v", n, err)
	}
	if n, err := pg.One[*time.Time](t.Context(), d, "read", pg.SQL("SELECT NULL::timestamptz")); err != nil || n != nil {
		t.Errorf("read %v, %v", n, err)
	}
}

// BenchmarkScan reads rows as Page does, by Bun's query builder and scanner, and by hand
// with the driver alone. architecture.md has its figures.
func BenchmarkScan(b *testing.B) {
	d := open(b)
	exec(b, d, things)
	exec(b, d, `INSERT INTO things SELECT gen_random_uuid(), gen_random_uuid(), 'Name ' || n, 'standard', 'A note', 1, 2, 3, 4.5, true,
		'{}', NULL, '2026-06-15', NULL, now(), NULL, 1, NULL, true FROM generate_series(1, 500) AS n`)
	byBun := bun.NewDB(stdlib.OpenDBFromPool(d.Pool()), pgdialect.New())
	b.Cleanup(func() {
		if err := byBun.Close(); err != nil {
			b.Error(err)
		}
	})
	run := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("pg", func() error {
		_, err := pg.All[thing](b.Context(), d, "read", pg.Prepared(pg.SQL(thingsOf)))
		return err
	})
	run("pg, one row", func() error {
		_, err := pg.One[thing](b.Context(), d, "read", pg.Prepared(pg.SQL(thingsOf+" WHERE t.name = ?", "Name 7")))
		return err
	})
	run("Bun", func() error {
		var all []thing
		return byBun.NewSelect().Model(&all).Scan(b.Context())
	})
	run("Bun, one row", func() error {
		var one thing
		return byBun.NewSelect().Model(&one).Where("t.name = ?", "Name 7").Scan(b.Context())
	})
	run("by hand", func() error {
		rows, err := d.Pool().Query(b.Context(), thingsOf, pgx.QueryExecModeCacheStatement)
		if err != nil {
			return err
		}
		defer rows.Close()
		var all []thing
		for rows.Next() {
			var t thing
			var id, maker [16]byte
			var due *time.Time
			var day time.Time
			err := rows.Scan(&id, &maker, &t.Name, (*string)(&t.Role), &t.Note, &t.Small, &t.Middle, &t.Large, &t.Rate, &t.On, &t.Tags, &t.Points,
				&day, &due, &t.At, &t.Later, &t.Count, &t.Blob, &t.Shown)
			if err != nil {
				return err
			}
			t.ID, t.Maker = id, (*domain.UserID)(&maker)
			all = append(all, t)
		}
		if len(all) == 0 {
			return errors.New("no rows")
		}
		return rows.Err()
	})
}
