//go:build slow

package migrate_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/doctor"
	"partnerapi/db/migrate"
)

// releaseBefore is a dump (pg_dump --rows-per-insert=500) of a demonstration at
// migration 51, with few of its mails.
const releaseBefore = "testdata/release_51.sql.gz"

// loadOfBefore is what the release before sends, each in a transaction: reads and writes
// with the counts that go with them.
var loadOfBefore = [][]string{
	{`SELECT id, name, industry, external_id, users_active, users_inactive, average_score, framework_ids, updated_at
		FROM clients WHERE archived_at IS NULL ORDER BY created_at, id LIMIT 100`},
	{`SELECT id, email, first_name, last_name, role, status, score, next_due_on FROM users
		WHERE client_id = (SELECT id FROM clients ORDER BY id LIMIT 1) ORDER BY created_at, id LIMIT 100`},
	{`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score,
			created_at, updated_at)
		SELECT client_id, n, n || '@example.com', 'A', 'B', 'a b', status, role, preferred_language, source, score, now(), now()
		FROM (SELECT * FROM users WHERE status = 'active' ORDER BY id LIMIT 1) AS u, gen_random_uuid() AS n`,
		`UPDATE clients SET users_active = users_active + 1
			WHERE id = (SELECT client_id FROM users WHERE status = 'active' ORDER BY id LIMIT 1)`,
		`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id)
			SELECT now(), id, id, 'pk_live_x', 'users.create', 'POST', '/v2/users', 'r' FROM partners LIMIT 1`},
	{`INSERT INTO clients (id, partner_id, name, name_key, created_at, updated_at, summarized_at)
		SELECT n, id, n::text, n::text, now(), now(), now() FROM (SELECT id FROM partners ORDER BY id LIMIT 1) AS p, gen_random_uuid() AS n`,
		`UPDATE partners SET client_count = client_count + 1 WHERE id = (SELECT id FROM partners ORDER BY id LIMIT 1)`},
	{`INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at)
		SELECT id, gen_random_uuid(), gen_random_uuid() || '@example.com', 'admin', now(), now() + interval '7 days' FROM clients ORDER BY id LIMIT 1`},
	{`UPDATE clients SET industry = 'Retail', updated_at = now() WHERE id = (SELECT id FROM clients ORDER BY id DESC LIMIT 1)`},
	{`SELECT count(*) FROM phishing_results AS r JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id`,
		`SELECT count(*) FROM assignments`},
}

// TestUpgradeUnderLoad: the migrations that are new run beside the release before, of
// which nothing fails, and all counts are right afterwards.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, noTables)
	restore(t, url, releaseBefore)
	d, err := db.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := &worldtest.World{DB: d, T: t}

	done := make(chan struct{})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for n := 0; ; n++ {
				transaction(w, loadOfBefore[n%len(loadOfBefore)])
				select {
				case <-done:
					if n >= 3*len(loadOfBefore) {
						return
					}
				default:
				}
			}
		})
	}
	applied, err := migrate.Up(t.Context(), d)
	close(done)
	users.Wait()
	w.Must(err)

	if have, want, err := migrate.SchemaVersion(t.Context(), d); err != nil || have != want || len(applied.Applied) == 0 {
		t.Errorf("at %d of %d, applied %v: %v", have, want, applied.Applied, err)
	}
	if wrong, err := doctor.Recount(t.Context(), d); err != nil || len(wrong) != 0 {
		t.Errorf("wrong counts: %v, %v", wrong, err)
	}
	if wrong, err := doctor.RecountDue(t.Context(), d); err != nil || len(wrong) != 0 {
		t.Errorf("what was due to be recounted: %v, %v", wrong, err)
	}
}

// transaction runs statements in one transaction, none of which may fail.
func transaction(w *worldtest.World, statements []string) {
	tx, err := w.SQL().BeginTx(context.Background(), nil)
	if err != nil {
		w.T.Error(err)
		return
	}
	defer tx.Rollback()
	for _, sql := range statements {
		if _, err := tx.Exec(sql); err != nil {
			w.T.Errorf("%s: %v", sql, err)
			return
		}
	}
	if err := tx.Commit(); err != nil {
		w.T.Error(err)
	}
}

// restore runs the dump in a compressed file.
func restore(t *testing.T, url, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.PgConn().Exec(t.Context(), string(script)).Close(); err != nil {
		t.Fatal(err)
	}
}
