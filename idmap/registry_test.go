package idmap

import (
	"database/sql"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

func TestNumbersFollowCreation(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	// One statement, whose rows come in another order than they were created.
	exec(t, db, `INSERT INTO clients (id, created_at) VALUES
		('01000000-0000-0000-0000-000000000003', '2026-01-01'),
		('01000000-0000-0000-0000-000000000001', '2026-01-02'),
		('01000000-0000-0000-0000-000000000004', '2026-01-02'),
		('01000000-0000-0000-0000-000000000002', '2026-01-01')`)
	if got, want := state(t, db, Client), "1=b 2=c 3=a 4=d"; got != want {
		t.Errorf("registry is %s, want %s", got, want)
	}
	// Every kind is a space of its own.
	for kind := range tables {
		create(t, db, kind, 9)
		want := int64(1)
		if kind == Client {
			want = 5
		}
		if got := number(t, r, kind, 9); got != want {
			t.Errorf("the new %s has number %d, want %d", kind, got, want)
		}
	}
}

func TestDeletedObjectsLeaveTombstones(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	create(t, db, Collection, 1, 2, 3)
	remove(t, db, Collection, 2)
	create(t, db, Collection, 4)
	if got, want := state(t, db, Collection), "1=a 2=b✝ 3=c 4=d"; got != want {
		t.Fatalf("registry is %s, want %s", got, want)
	}
	ids, _, err := r.IDs(t.Context(), []NumberKey{{Collection, 2}})
	if err != nil || len(ids) != 0 {
		t.Errorf("a tombstone resolves to %v, %v", ids, err)
	}
	if got := number(t, r, Collection, 2); got != 2 {
		t.Errorf("the deleted collection, that a policy may still name, has number %d, want its last", got)
	}
	// A cascade and a TRUNCATE are deletions too.
	exec(t, db, `UPDATE collections SET client_id = (SELECT id FROM clients)
		WHERE id = '01000000-0000-0000-0000-000000000003'`)
	remove(t, db, Client, 1)
	if got, want := state(t, db, Collection), "1=a 2=b✝ 3=c✝ 4=d"; got != want {
		t.Errorf("after a cascade the registry is %s, want %s", got, want)
	}
	exec(t, db, `TRUNCATE collections`)
	if got, want := state(t, db, Collection), "1=a✝ 2=b✝ 3=c✝ 4=d✝"; got != want {
		t.Errorf("after a truncate the registry is %s, want %s", got, want)
	}
}

func TestCreatorsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	first, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback()
	create(t, first, Client, 1)
	second, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	// Would this wait for the first, it would do so for ever: let it fail.
	exec(t, second, `SET LOCAL lock_timeout = '1ms'`)
	create(t, second, Client, 2)
	if err := second.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := first.Rollback(); err != nil {
		t.Fatal(err)
	}
	create(t, db, Client, 3)
	if got, want := state(t, db, Client), "2=b 3=c"; got != want {
		t.Errorf("registry is %s, want %s: a gap where the first was rolled back", got, want)
	}
	if got := number(t, r, Client, 1); got != 0 {
		t.Errorf("a client that never was has number %d", got)
	}
}

// lives fails unless the live rows of the registry are one for each client, and
// its numbers all different (which the primary key holds).
func lives(t *testing.T, db *sql.DB) {
	t.Helper()
	var without, astray, total int
	err := db.QueryRow(`SELECT
		(SELECT count(*) FROM clients c WHERE 1 <> (SELECT count(*) FROM id_registry r
			WHERE r.kind = 'client' AND r.id = c.id AND r.retired_at IS NULL)),
		(SELECT count(*) FROM id_registry r WHERE r.kind = 'client' AND r.retired_at IS NULL
			AND NOT EXISTS (SELECT FROM clients c WHERE c.id = r.id)),
		(SELECT count(*) FROM clients)`).Scan(&without, &astray, &total)
	if err != nil {
		t.Fatal(err)
	}
	if without != 0 || astray != 0 || total == 0 {
		t.Errorf("of %d clients %d have not one number; %d numbers have no client", total, without, astray)
	}
}

// churn makes clients from the first on, three in each of n transactions; every
// fourth of these is rolled back, and after each other one client is deleted.
func churn(t *testing.T, db *sql.DB, first, n int) {
	for i := range n {
		at := first + 3*i
		tx, err := db.Begin()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := tx.Exec(`INSERT INTO clients SELECT v::uuid, now() FROM unnest($1::text[]) AS v`,
			[]string{anyID(object(at)).UUID(), anyID(object(at + 1)).UUID(), anyID(object(at + 2)).UUID()}); err != nil {
			t.Error(err)
		}
		if i%4 == 3 {
			tx.Rollback()
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if _, err := db.Exec(`DELETE FROM clients WHERE id = $1::text::uuid`, anyID(object(at+1)).UUID()); err != nil {
			t.Error(err)
		}
	}
}

// TestMigrateRunsOnce: any number of processes may migrate at once.
func TestMigrateRunsOnce(t *testing.T) {
	t.Parallel()
	address := databaseURL(t, false)
	var processes sync.WaitGroup
	for range 5 {
		process := openURL(t, address)
		processes.Go(func() {
			if err := Migrate(t.Context(), process); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	db := openURL(t, address).SQL()
	create(t, db, Policy, 4)
	if got, want := state(t, db, Policy), "1=d"; got != want {
		t.Errorf("registry is %s, want %s", got, want)
	}
}

// TestLookUpsProbe: numbers are looked up by one probe of the key each, also in a
// registry that was just filled, of whose size the statistics know nothing.
func TestLookUpsProbe(t *testing.T) {
	t.Parallel()
	db, _ := registry(t)
	exec(t, db, `ALTER TABLE id_registry SET (autovacuum_enabled = false)`)
	exec(t, db, `INSERT INTO clients SELECT gen_random_uuid(), now() FROM generate_series(1, 5000)`)
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			exec(t, db, `ANALYZE id_registry`)
		}
		for query, want := range map[string]string{
			selectIDs: "(kind = w.kind) AND (number = w.number)", selectNumbers: "(kind = w.kind) AND (id = w.id)",
		} {
			keys := map[string]any{selectIDs: []int32{1, 2}, selectNumbers: []string{anyID(object(1)).UUID(), anyID(object(2)).UUID()}}[query]
			text := strings.Join(list(t, db, "EXPLAIN "+query, []string{"client", "client"}, keys), "\n")
			if !strings.Contains(text, want) || strings.Contains(text, "Seq Scan") {
				t.Errorf("analyzed %v: %s", analyzed, text)
			}
		}
	}
}

// asMigration runs a script as the service runs its migrations.
func asMigration(t *testing.T, db *sql.DB, script []byte) {
	t.Helper()
	migrations, err := goose.NewProvider(goose.DialectPostgres, db, fstest.MapFS{"00001_script.sql": {Data: script}},
		goose.WithTableName("migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDropLeavesNothing(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Report, 1)
	script, err := os.ReadFile("drop.sql")
	if err != nil {
		t.Fatal(err)
	}
	asMigration(t, db, script)
	exec(t, db, string(script)) // there is nothing left to drop
	for _, table := range tables {
		exec(t, db, `INSERT INTO `+table+` VALUES (gen_random_uuid(), now())`)
		exec(t, db, `DELETE FROM `+table)
	}
	left := list(t, db, `SELECT relname::text FROM pg_class WHERE relname ~ '^(id_?(registry|map)|v1_)|_id_unique$'
		UNION ALL SELECT proname FROM pg_proc WHERE proname ~ '^id_?(registry|map)'
		UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal`)
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := Migrate(t.Context(), r.db); err != nil {
		t.Errorf("a registry after the drop: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Collection, 1, 2)
	remove(t, db, Collection, 2)
	v2 := kindInfos[Collection].show(object(1))
	for _, text := range []string{"1", v2, anyID(object(1)).UUID(), strings.ToUpper(anyID(object(1)).UUID())} {
		entries, err := r.Describe(t.Context(), Collection, text)
		want := "collection 1 " + v2 + " " + anyID(object(1)).UUID() + " live"
		if err != nil || len(entries) != 1 || entries[0].String() != want {
			t.Errorf("%s is %v, %v; want %s", text, entries, err, want)
		}
	}
	entries, err := r.Describe(t.Context(), Collection, "2")
	if err != nil || len(entries) != 1 || !strings.Contains(entries[0].String(), "tombstone since 20") {
		t.Errorf("the deleted one is %v, %v", entries, err)
	}
	if entries, err := r.Describe(t.Context(), Collection, "3"); err != nil || len(entries) != 0 {
		t.Errorf("an unknown number is %v, %v", entries, err)
	}
	for _, text := range []string{"", "x", "col_", "cli" + v2[3:], "99999999999"} {
		if _, err := r.Describe(t.Context(), Collection, text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
	if _, err := ParseKind("user"); err == nil {
		t.Error("user is a kind")
	}
}
