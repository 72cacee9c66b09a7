//go:build slow

package migrate_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/doctor"
	"partnerapi/db/migrate"
	"partnerapi/v2/v2test"
)

// release is a dump (pg_dump --rows-per-insert=500) of the demonstration as 1.0.0 served
// it, with few of its mails.
const release = "testdata/release_1.0.0.sql.gz"

// next are the migrations of a version after 1.0.0: it adds a column, which the version
// before does not write, and an index.
var next = map[string]string{
	"99001_expand.sql": `-- +goose Up
-- locks: users, ACCESS EXCLUSIVE, a moment
ALTER TABLE users ADD COLUMN nickname text;
INSERT INTO recounts SELECT 'users of clients', now() + interval '1 day' WHERE EXISTS (SELECT FROM partners);
`,
	"99003_index.sql": `-- +goose NO TRANSACTION
-- +goose Up
-- locks: users, SHARE UPDATE EXCLUSIVE, 2 s per million rows
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS users_by_nickname;
CREATE INDEX CONCURRENTLY users_by_nickname ON users (client_id, nickname);
`,
}

// nameUsers fills the new column, a batch in each transaction. It may be repeated.
func nameUsers(ctx context.Context, of *sql.DB) error {
	for {
		done, err := of.ExecContext(ctx, `
			WITH batch AS MATERIALIZED (
				SELECT client_id, id FROM users WHERE nickname IS NULL LIMIT 100 FOR NO KEY UPDATE
			)
			UPDATE users AS u SET nickname = first_name FROM batch AS b WHERE u.client_id = b.client_id AND u.id = b.id`)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); n == 0 || err != nil {
			return err
		}
	}
}

// loadOfRelease is what 1.0.0 sends, each in a transaction: reads and writes
// with the counts that go with them.
var loadOfRelease = [][]string{
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

// TestUpgradeUnderLoad: the migrations of this version and of one after it run beside
// 1.0.0, of which nothing fails, and all counts are right afterwards. 1.0.0, restarted, refuses.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	w := restored(t)
	d := w.DB
	for name, text := range next {
		checkMigration(t, name, text)
	}
	upgrade, err := migrate.NewNext(next)
	w.Must(err)
	upgrade.InGo(99002, migrate.Step{Name: "99002_names.go"}, nameUsers)

	done := make(chan struct{})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for n := 0; ; n++ {
				err := d.Tx(context.Background(), func(ctx context.Context) error {
					for _, text := range loadOfRelease[n%len(loadOfRelease)] {
						if err := w.ExecIn(ctx, text); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					if n >= 3*len(loadOfRelease) {
						return
					}
				default:
				}
			}
		})
	}
	applied, err := upgrade.Up(t.Context(), d)
	close(done)
	users.Wait()
	w.Must(err)

	steps, err := upgrade.Steps(t.Context(), d)
	if n := len(applied); err != nil || n < 3 || !slices.Equal(applied[n-3:], []string{"99001_expand.sql", "99002_names.go", "99003_index.sql"}) ||
		slices.ContainsFunc(steps, func(s migrate.Step) bool { return !s.Applied }) {
		t.Errorf("applied %v, steps %v: %v", applied, steps, err)
	}
	if err := migrate.CheckMigrated(t.Context(), d); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("the version before: %v", err)
	}
	if w.Number("SELECT count(*) FROM users WHERE nickname = first_name") == 0 {
		t.Error("no user has a nickname")
	}
	if wrong, err := doctor.Recount(t.Context(), d); err != nil || len(wrong) != 0 {
		t.Errorf("wrong counts: %v, %v", wrong, err)
	}
	if wrong, err := doctor.RecountDue(t.Context(), d); err != nil || len(wrong) != 0 {
		t.Errorf("what was due to be recounted: %v, %v", wrong, err)
	}
}

// TestReportLinkOfUpgradedClients verifies that clients of 1.0.0 keep the link that reports a simulated email, and that
// clients that 1.0.0 creates after the upgrade do not have it.
func TestReportLinkOfUpgradedClients(t *testing.T) {
	t.Parallel()
	w := restored(t)
	clients := w.Number("SELECT count(*) FROM clients")
	if _, err := migrate.Up(t.Context(), w.DB); err != nil {
		t.Fatal(err)
	}
	w.Exec(`INSERT INTO clients (id, partner_id, name, name_key, created_at, updated_at, summarized_at)
		SELECT gen_random_uuid(), id, 'New', 'new', now(), now(), now() FROM partners ORDER BY id LIMIT 1`)
	if n := w.Number("SELECT count(*) FROM clients WHERE report_link"); n != clients || n == 0 {
		t.Errorf("%d clients have the link, want %d", n, clients)
	}
}

// TestUpgradedCourses verifies that the service's own courses have titles in all languages, unless an import has renamed
// them or given them titles.
func TestUpgradedCourses(t *testing.T) {
	t.Parallel()
	w := restored(t)
	w.Exec(`UPDATE courses SET title = 'Phishing 101' WHERE title = 'Recognizing phishing'`)
	w.Exec(`UPDATE courses SET titles = '{"en": "Report"}', languages = '{en}' WHERE title = 'Reporting an incident'`)
	if _, err := migrate.Up(t.Context(), w.DB); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{
		`titles ?& '{en,es,fr-ca}' AND titles->>'en' = title AND titles->>'es' <> title AND languages = '{en,es,fr-ca}'`: 11,
		`title = 'Phishing 101' AND titles = '{}'`: 1, `titles = '{"en": "Report"}'`: 1,
	} {
		if n := w.Number("SELECT count(*) FROM courses WHERE created_at = '2026-01-01T00:00:00Z' AND " + what); n != want {
			t.Errorf("%d courses have %s, want %d", n, what, want)
		}
	}
}

// TestUpgradedTables: the tables of 1.0.0, upgraded, are those of a new database, but for
// those of v1: no migration that was released has changed since.
func TestUpgradedTables(t *testing.T) {
	t.Parallel()
	d := restored(t).DB
	if _, err := migrate.Up(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	upgraded := readTables(t, d)
	for name, want := range readTables(t, worldtest.New(t).DB) {
		got := upgraded[name]
		if got.Others = ofV1.ReplaceAllString(got.Others, ""); got != want {
			t.Errorf("%s differs:\n%s", name, v2test.Diff(fmt.Sprint(want), fmt.Sprint(got)))
		}
	}
}

// ofV1 matches what v1 adds to the tables of objects.
var ofV1 = regexp.MustCompile(`(?m)^CREATE TRIGGER (?:id_registry|v1)_.*\n|^-- .*\n^CREATE UNIQUE INDEX reports_id_unique .*\n`)

// restored opens a database of 1.0.0.
func restored(t *testing.T) *worldtest.World {
	t.Helper()
	url := dbtest.URL(t, noTables)
	d, err := db.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := worldtest.Of(t, d, nil)
	file, err := os.Open(release)
	w.Must(err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	w.Must(err)
	script, err := io.ReadAll(unpacked)
	w.Must(err)
	conn, err := pgx.Connect(t.Context(), url) // of its own: the script changes its settings
	w.Must(err)
	defer conn.Close(context.Background())
	w.Must(conn.PgConn().Exec(t.Context(), string(script)).Close())
	return w
}
