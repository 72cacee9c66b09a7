package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// nobody is where no server listens: only root could.
const nobody = "127.0.0.1:1"

var noTables = dbtest.Schema{Name: "doctorempty", Apply: func(context.Context, string) error { return nil }}

// expected is what a check is to find with some flags.
type expected struct {
	check, args string // args are separated by |
	status      verdict
	words       string // separated by |
}

// assert makes the check, after those that connect to the database where it needs one. It
// wants no secret in a finding: those of the tests are "sesame".
func (want expected) assert(t *testing.T, databaseURL string) {
	t.Helper()
	args := []string{"--data-dir=" + t.TempDir()}
	if databaseURL != "" {
		args = append(args, "--database-url="+databaseURL)
	}
	if want.args != "" {
		args = append(args, strings.Split(want.args, "|")...)
	}
	var c Command
	parser, err := kong.New(&c, kong.Vars{"listen": "127.0.0.1:0", "workers": "4"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	e := &examination{ServeFlags: c.ServeFlags, env: cli.Env{Err: io.Discard}, program: parser.Model, shut: func() error { return nil }}
	defer func() { _ = e.shut() }()
	e.redis = func(_ context.Context, url string) (at string, written, err error) {
		if strings.Contains(url, "replica") {
			return url, errors.New("READONLY"), nil
		}
		return "", nil, errors.New("refused")
	}
	needs := checks[slices.IndexFunc(checks, func(c check) bool { return c.name == want.check })].needs
	var found finding
	for _, c := range checks {
		if c.name == want.check {
			found = e.runCheck(t.Context(), c)
		} else if c.name == "database" && needs >= needsDatabase || c.name == "migrations" && needs == needsTables {
			e.runCheck(t.Context(), c)
		}
	}
	if text := found.String(); strings.Contains(text, "sesame") || strings.Contains(text, "ses%61me") {
		t.Errorf("%v shows a secret: %s", args, text)
	}
	if found.Status != "" && ((found.Status == passed) != (found.Remedy == "") || found.Found == "") {
		t.Errorf("%+v: what is to mend goes with a warning or a failure", found)
	}
	assertFinding(t, found, want.status, strings.Split(want.words, "|")...)
}

// session takes no mail: one that is begun is a fault.
type session struct{ smtp.Session }

func (session) Reset()        {}
func (session) Logout() error { return nil }

// mailServer is the URL of a mail server that wants no mail.
func mailServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return session{}, nil }))
	server.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "smtp://" + listener.Addr().String()
}

// TestChecks: what each check says of flags, with a database that is as it should be.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	office := mailServer(t)
	here := w.Pool().Config().ConnString()
	file := filepath.Join(t.TempDir(), "file")
	w.Must(os.WriteFile(file, nil, 0o600))
	const public = "--public-url=https://api.example.com"
	timeouts := here + map[bool]string{true: "&", false: "?"}[strings.Contains(here, "?")] + "options=" + strings.ReplaceAll(
		url.QueryEscape("-c statement_timeout=30s -c lock_timeout=5s -c idle_session_timeout=1h -c synchronous_commit=off"), "+", "%20")
	for _, want := range []expected{
		{"flags", "--mail-from=nobody", failed, "--mail-from"},
		{"flags", "--public-url=example.com", failed, "--public-url"},
		{"flags", "--smtp-url=http://someone:sesame@mail.example.com", failed, "--smtp-url"},
		{"flags", "--smtp-url=smtp://someone:12/sesame@mail.example.com", failed, "--smtp-url"},
		{"flags", "--report-store=ftp://someone:sesame@example.com", failed, "--report-store"},
		{"flags", "--report-store=s3://store?endpoint=https%3A%2F%2Fsomeone%3Asesame%40example.com&token=sesame", failed, "--report-store"},
		{"flags", "--encryption-key=sesame", failed, "--encryption-key"},
		{"flags", "--report-font=/nowhere/font.ttf", failed, "--report-font"},
		{"flags", "--trusted-proxies=proxy", failed, "--trusted-proxies"},
		{"flags", "--workers=0", failed, "--workers"},
		{"flags", "--public-url=https://someone:sesame@example.com", failed, "--public-url"},
		{"flags", "--public-url=https://someone:ses ame@example.com", failed, "--public-url"},
		{"flags", "--listen=127.0.0.1:8080|--metrics-listen=127.0.0.1:8080", failed, "--metrics-listen"},
		{"pooler", "", passed, "PostgreSQL itself"},
		{"connections", "--connections=1000", failed, "serve may open 10|--connections"},
		{"timeouts", "", passed, ""},
		{"timeouts", "--database-url=" + timeouts, warned,
			"statement_timeout = 30s|lock_timeout = 5s|idle_session_timeout = 1h|ALTER ROLE"},
		{"durability", "--database-url=" + timeouts, warned, "synchronous_commit = off"},
		{"cell", "--cell=02|--cell-count=4", failed, "has partners|--cell"},
		{"cell", "--cell=00|--cell-count=4", passed, "00"},
		{"mail", public + "|--smtp-url=smtp://someone:sesame@" + nobody, failed, "refused|--smtp-url"},
		{"mail", public + "|--smtp-url=" + office + "?starttls=required", failed, "STARTTLS|--smtp-url"},
		{"mail", public + "|--smtp-url=" + strings.Replace(office, "//", "//someone:sesame@", 1), failed, "authentication|--smtp-url"},
		{"mail", "--smtp-url=" + office, passed, "nothing was sent"},
		{"mail", "", warned, "files|--smtp-url"},
		{"public url", "--smtp-url=" + office, failed, "only this machine|--public-url"},
		{"public url", "--public-url=http://api.example.com", warned, "not encrypted|https"},
		{"public url", "--listen=0.0.0.0:8080", warned, "0.0.0.0:8080|other machines|--public-url"},
		{"public url", "--listen=[::]:8080|--smtp-url=" + office, failed, "links in emails|--public-url"},
		{"public url", "", passed, "this machine only"},
		{"trusted proxies", "--trusted-proxies=0.0.0.0/0", warned, "every address"},
		{"trusted proxies", public, warned, "proxy"},
		{"demonstration", "--demo", warned, "publicly known API keys"},
		{"webhooks", "--webhook-allow-private", warned, "private|--webhook-allow-private"},
		{"metrics", public, warned, "everyone|--metrics-listen"},
		{"metrics", "", passed, "this machine only"},
		{"redis", "--redis-url=redis://away", failed, "refused|--redis-url"},
		{"redis", "--redis-url=redis://replica", failed, "READONLY|primary|--redis-url"},
		{"data directory", "--data-dir=" + file, failed, "--data-dir"},
		{"report store", "--report-store=file://" + file, failed, file + "|--report-store"},
		{"demonstration", "", passed, "off"},
		{"demo data", "", "", ""},
	} {
		want.assert(t, here)
	}
	w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, networks, demo, created_at)
		SELECT gen_random_uuid(), id, 'demo', 'pk_demo', 'demo', true, '{read}', '{}', true, now() FROM partners LIMIT 1`)
	expected{"demo data", "", warned, "--demo filled this database|start with --demo"}.assert(t, here)
	expected{"demo data", "--demo", "", ""}.assert(t, here)
}

// TestDatabases: what keeps a database from being served.
func TestDatabases(t *testing.T) {
	t.Parallel()
	empty := dbtest.URL(t, noTables)
	dir := filepath.Join(t.TempDir(), "data")
	const unwritable = "/proc" // even for root
	for _, want := range []expected{
		{"database", "--database-url=postgres://someone:sesame@" + nobody + "/x", failed, "refused|--database-url"},
		{"database", "--database-url=postgres://someone:ses%61me@127.0.0.1:port/x", failed, "database URL|--database-url"},
		{"database", "--database-url=" + strings.Replace(empty, "@", "sesame@", 1), failed, "password|--database-url"},
		{"database", "--database-url=host=127.0.0.1 port=1 user=someone password=sesame dbname=x", failed, "refused|--database-url"},
		{"database", "--database-url=host=127.0.0.1 port=one user=someone password = sesame", failed, "database URL|--database-url"},
		{"database", "--database-url=postgresq://someone:sesame@127.0.0.1/x?sslmode=disable", failed, "database URL|--database-url"},
		{"database", "--database-url=host=127.0.0.1,password=sesame", failed, "database URL|separated by spaces"},
		{"database", "--database-url=host=127.0.0.1 port=1 dbname=y;password=sesame", failed, "database URL|separated by spaces"},
		{"migrations", "--database-url=postgres://someone:sesame@" + nobody + "/x", "", ""},
		{"database", "--data-dir=" + dir, warned, "serve creates an embedded one|" + dir},
		{"data directory", "--data-dir=" + dir, warned, dir + " does not exist"},
		{"report store", "", passed, "serve creates"},
		{"report store", "--data-dir=" + unwritable, failed, "serve cannot create " + filepath.Join(unwritable, "reports") + "|--data-dir"},
		{"report store", "--report-store=file://" + unwritable + "/a/b", failed, "serve cannot create|--report-store"},
		{"data directory", "--data-dir=" + unwritable + "/a/b", failed, "serve cannot create|--data-dir"},
		{"database", "--data-dir=" + unwritable, failed, "serve cannot create " + filepath.Join(unwritable, "postgres") + "|--data-dir"},
		{"report store", "--report-store=host=127.0.0.1,password=sesame", failed, "password=xxxxx|--report-store"},
		{"flags", "--webhook-ca=/redis:/u:sesame@cache", failed, "u:xxxxx@cache"},
		{"data directory", "--data-dir=" + dir + "/redis:/u:sesame@cache", warned, "u:xxxxx@cache"},
		{"report store", "--report-store=file://" + dir, warned, dir + " does not exist|--report-store"},
		// No embedded database is promised where none can start.
		{"database", "--postgres-bin=" + t.TempDir(), failed, "--postgres-bin|--database-url"},
		{"migrations", "--database-url=" + empty, warned, "do not exist|serve migrates the tables"},
		{"migrations", "--no-migrate|--database-url=" + empty, failed, "partnerapi migrate"},
	} {
		want.assert(t, "")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("doctor made the data directory, or the store: %v", err)
	}
	for change, want := range map[string]expected{
		"INSERT INTO schema_migrations (version_id, is_applied) VALUES (9999, true)": {"migrations", "", failed, "newer version"},
		"DELETE FROM schema_migrations":                                              {"migrations", "", warned, "do not exist"},
		"ALTER TABLE schema_migrations RENAME TO migrations":                         {"migrations", "", failed, "before 1.0|docs/versions.md"},
	} {
		w := worldtest.New(t)
		w.Exec(change)
		at := w.Pool().Config().ConnString()
		want.assert(t, at)
		expected{"encryption key", "", "", ""}.assert(t, at) // nothing is said of other tables
	}
}

// TestRolesAndEncodings verifies that a role that may write all rows and advance all sequences is enough, and one that
// lacks a right is told what to run. Another encoding than UTF8 fails in an empty database, and else is a warning.
func TestRolesAndEncodings(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	own, err := url.Parse(w.Pool().Config().ConnString())
	w.Must(err)
	for rights, want := range map[string]expected{
		"SELECT":                         {"role", "", failed, "doctor_|lacks rights on|clients|users|GRANT SELECT, INSERT"},
		"SELECT, INSERT, UPDATE, DELETE": {"role", "", passed, "not a superuser"},
	} {
		name := "doctor_" + strings.ToLower(rand.Text()[:10])
		w.Exec("CREATE ROLE " + name + " LOGIN PASSWORD 'sesame'")
		defer func() { w.Exec("DROP OWNED BY " + name); w.Exec("DROP ROLE " + name) }()
		w.Exec("GRANT USAGE ON SCHEMA public TO " + name)
		w.Exec("GRANT " + rights + " ON ALL TABLES IN SCHEMA public TO " + name)
		w.Exec("GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA public TO " + name)
		at := *own
		at.User = url.UserPassword(name, "sesame")
		want.assert(t, at.String())
		w.Exec("CREATE SEQUENCE " + name)
		w.Exec("GRANT USAGE ON SEQUENCE " + name + " TO " + name)
		expected{"role", "", failed, "lacks rights on|" + name + "|GRANT USAGE, UPDATE ON ALL SEQUENCES"}.assert(t, at.String())
		w.Exec("REVOKE SELECT ON schema_migrations FROM " + name)
		expected{"migrations", "", failed, "lacks a right on the table schema_migrations|the check role"}.assert(t, at.String())
		w.Exec("DROP SEQUENCE " + name)
	}
	other := *own
	other.Path = "/ascii_" + strings.ToLower(rand.Text()[:8])
	w.Exec("CREATE DATABASE " + other.Path[1:] + " ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
	defer w.Exec("DROP DATABASE " + other.Path[1:] + " WITH (FORCE)")
	expected{"database", "", failed, "SQL_ASCII|createdb --encoding=UTF8"}.assert(t, other.String())
	conn, err := pgx.Connect(t.Context(), other.String())
	w.Must(err)
	_, err = conn.Exec(t.Context(), "CREATE TABLE schema_migrations ()")
	w.Must(errors.Join(err, conn.Close(t.Context())))
	expected{"database", "", warned, "SQL_ASCII|restore a dump|docs/operating.md"}.assert(t, other.String())
}

// TestFirstCell: an empty database can become any cell.
func TestFirstCell(t *testing.T) {
	t.Parallel()
	expected{"cell", "--cell=02|--cell-count=4", passed, "02"}.assert(t, dbtest.URL(t, worldtest.Schema))
}

// TestSurroundings is not parallel: it sets variables.
func TestSurroundings(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	expected{"flags", "", failed, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc|http/protobuf"}.assert(t, "")
}

// TestKeysOfSecrets: the key has to be that of the stored secrets.
func TestKeysOfSecrets(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	at := w.Pool().Config().ConnString()
	expected{"encryption key", "", warned, "none|partnerapi encryption-key"}.assert(t, at)
	older, newer := seal.NewKey(), seal.NewKey()
	keys, err := seal.ParseKeys(older)
	w.Must(err)
	w.Must(database.CheckKeys(t.Context(), w.DB, keys, false))
	client := w.AddClient()
	sealed, err := keys.Seal([]byte("x"), seal.Context("directory", client.UUID()))
	w.Must(err)
	w.Exec(`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
		VALUES ($1, 'google', '{}', $2, 'infinity', now(), now())`, client, sealed)
	for _, want := range []expected{
		{"encryption key", "--encryption-key=" + older, passed, ""},
		{"encryption key", "--encryption-key=" + newer, failed, "another encryption key"},
		{"encryption key", "--encryption-key=" + newer + "," + older, warned, "rotate"},
		{"encryption key", "", failed, "there is no key"},
	} {
		want.assert(t, at)
	}
}

// TestSharedEmails verifies that users and admins of a client whose addresses have the same key are named, and no others.
func TestSharedEmails(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	url := w.Pool().Config().ConnString()
	expected{"email addresses", "", passed, "no client"}.assert(t, url)
	client, other := w.AddClient(), w.AddClient()
	first, second := w.AddUser(client, domain.RoleStandard, 1), w.AddUser(client, domain.RoleStandard, 1)
	w.Exec("UPDATE users SET email = 'straße@example.com', created_at = '2020-01-01' WHERE id = $1", second)
	w.Exec("UPDATE users SET email = 'strasse@example.com' WHERE id IN ($1, $2)", first, w.AddUser(other, domain.RoleStandard, 1))
	admins := []domain.AdminID{db.NewID[domain.AdminKind](), db.NewID[domain.AdminKind]()}
	for i, email := range []string{"νίκος@example.com", "νίκοσ@example.com"} {
		w.Add("admins", fixture.Row{"id": admins[i], "partner_id": w.Partner, "client_id": client, "email": email, "name": "A", "role": "admin", "created_at": worldtest.Noon})
	}
	_, err := w.SettleEmails(t.Context())
	w.Must(err)
	for _, words := range []string{
		second.String() + " (straße@example.com) and " + first.String() + " (strasse@example.com) of " + client.String(),
		admins[1].String() + " (νίκοσ@example.com)", "by an import",
	} {
		expected{"email addresses", "", warned, words}.assert(t, url)
	}
	w.Exec("UPDATE users SET email = 'other@example.com' WHERE id = $1", second)
	w.Exec("UPDATE admins SET email = 'other@example.com' WHERE id = $1", admins[0])
	expected{"email addresses", "", passed, "no client"}.assert(t, url)
}

// TestEndingKeys: a key that ends within 30 days is named, and no other.
func TestEndingKeys(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	url := w.Pool().Config().ConnString()
	for _, c := range []struct {
		name   string
		within time.Duration
		want   expected
	}{
		{"ended", -time.Hour, expected{"api keys", "", passed, "none expires"}},
		{"later", domain.KeyEndsSoon + time.Hour, expected{"api keys", "", passed, "none expires"}},
		{"soon", domain.KeyEndsSoon - time.Hour, expected{"api keys", "", warned, "(soon, of |keys create"}},
	} {
		end := time.Now().Add(c.within)
		_, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: c.name, Scopes: []domain.Scope{domain.Read}, ExpiresAt: &end})
		w.Must(err)
		c.want.assert(t, url)
	}
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, gen_random_uuid(), id, 'https://hook.example', '{}', 'active', now(), now(), '' FROM api_keys`)
	expected{"api keys", "", warned, "with whk_|keys rotate"}.assert(t, url)
	w.Exec("UPDATE api_keys SET revoked_at = now() WHERE name = 'soon'")
	w.Exec("DELETE FROM webhooks")
	expected{"api keys", "", passed, "none expires"}.assert(t, url)
}

// TestKeylessWebhooks verifies that webhooks whose key has ended are named, with the remedy, and no others: those that
// background work has disabled, and those that it has still to disable.
func TestKeylessWebhooks(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	url := w.Pool().Config().ConnString()
	for _, name := range []string{"revoked", "expired", "soon"} {
		_, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: name, Scopes: []domain.Scope{domain.Read}})
		w.Must(err)
	}
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, gen_random_uuid(), id, 'https://hook.example/' || name, '{}', 'active', now(), now(), '' FROM api_keys`)
	expected{"api keys", "", passed, "none expires"}.assert(t, url)
	w.Exec("UPDATE api_keys SET revoked_at = '2026-03-01' WHERE name = 'revoked'")
	w.Exec("UPDATE api_keys SET expires_at = now() - interval '1 hour' WHERE name = 'expired'")
	w.Exec("UPDATE api_keys SET expires_at = now() + interval '10 days' WHERE name = 'soon'")
	for range 2 { // before and after the background work follows the keys
		var revoked, expired, soon domain.WebhookID
		w.Scan("SELECT (SELECT id FROM webhooks WHERE url LIKE '%/revoked'), (SELECT id FROM webhooks WHERE url LIKE '%/expired'), "+
			"(SELECT id FROM webhooks WHERE url LIKE '%/soon')", nil, &revoked, &expired, &soon)
		expected{"api keys", "", warned, "with " + soon.String() + "; |" + revoked.String() + " (of |was revoked on 2026-03-01|" +
			expired.String() + " (of |expired on |keys rotate PREFIX|PATCH with status active"}.assert(t, url)
		_, err := outbox.FollowKeys(t.Context(), w.DB)
		w.Must(err)
	}
	w.Exec("UPDATE api_keys SET expires_at = NULL WHERE name = 'soon'")
	w.Exec("UPDATE webhooks SET key_id = (SELECT id FROM api_keys WHERE name = 'soon'), status = 'active' WHERE url LIKE '%/revoked'")
	w.Exec("UPDATE webhooks SET status = 'disabled', disabled_reason = 'failures' WHERE url LIKE '%/expired'")
	expected{"api keys", "", passed, "none expires"}.assert(t, url)
}

// TestBacklogs: work of each kind that is late is named, and that a process does is not.
func TestBacklogs(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	w.AddClient()
	for _, change := range []string{
		"INSERT INTO events (client_id, id, type, created_at, recorded_at) " +
			"SELECT id, gen_random_uuid(), 'user.created', now(), now() - interval '1 hour' FROM clients",
		"INSERT INTO outbox (client_id, id, kind, urgency, due_at, lease) " +
			"SELECT id, gen_random_uuid(), 'mail', 1, now() - interval '2 hours', gen_random_uuid() FROM clients",
		"INSERT INTO periodic_jobs (kind, lease, due_at) VALUES ('report_care', gen_random_uuid(), now() - interval '3 hours')",
		"INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at, lease, leased_until) " +
			"SELECT id, gen_random_uuid(), 'running', 'api', now(), now(), gen_random_uuid(), now() - interval '1 hour' FROM clients",
	} {
		w.Exec(change)
	}
	expected{"background work", "", warned, "events to publish|emails to send|1 jobs|1 directory syncs|partnerapi work"}.
		assert(t, w.Pool().Config().ConnString())
}

// TestRecounts: wrong counts are named and corrected, and are then right.
func TestRecounts(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	w.AddUser(w.AddClient(), domain.RoleStandard, 500)
	w.Exec("UPDATE partners SET client_count = 99")
	w.Exec("UPDATE clients SET users_active = 1000")
	for _, tt := range []struct {
		json bool
		says []string
	}{
		{false, []string{
			`recounted: clients of partners {"id" : "`, `was (99), now (1`, `recounted: users of clients {"id" : "`,
			"2 stored counts were wrong and corrected; all others are correct\n",
		}},
		{true, []string{`{"corrected":[]}` + "\n"}},
	} {
		var out strings.Builder
		c := Command{Recount: true, JSON: tt.json}
		c.DatabaseURL = w.Pool().Config().ConnString()
		w.Must(c.Run(t.Context(), cli.Env{Out: &out, Err: io.Discard}, nil, nil))
		for _, want := range tt.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, &out)
			}
		}
	}
}
