package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/emersion/go-smtp"

	"partnerapi/db/dbtest"
)

// doctorFinding is a finding as doctor prints it.
type doctorFinding struct{ Status, Check, Found, Mend string }

// examined runs doctor and returns its findings by check. It wants no secret in
// what is printed: those of the tests are "sesame".
func examined(t *testing.T, code int, args ...string) map[string]doctorFinding {
	t.Helper()
	r := command(t, append([]string{"doctor", "--json", "--listen=127.0.0.1:0"}, args...)...)
	if r.code != code {
		t.Errorf("%v: exit %d, not %d: %s%s", args, r.code, code, r.out, r.err)
	}
	if text := r.out + r.err; strings.Contains(text, "sesame") || strings.Contains(text, "ses%61me") {
		t.Errorf("%v shows a secret: %s", args, text)
	}
	var report struct{ Checks []doctorFinding }
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, r.out, r.err)
	}
	found := map[string]doctorFinding{}
	for _, f := range report.Checks {
		found[f.Check] = f
		if (f.Status == "ok") != (f.Mend == "") || f.Found == "" {
			t.Errorf("%+v: what is to mend goes with a warning or a failure", f)
		}
	}
	return found
}

// closedPort is an address that nothing listens at.
const closedPort = "127.0.0.1:1" // only root could

// mailServer is a real mail server that counts the mails that are begun.
type mailServer struct {
	url   string
	mails atomic.Int64
}

// NewSession begins what a client has to say.
func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }

type mailSession struct{ server *mailServer }

func (*mailSession) Reset()                               {}
func (*mailSession) Logout() error                        { return nil }
func (*mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*mailSession) Data(r io.Reader) error               { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	s.server.mails.Add(1)
	return nil
}

func quietOffice(t *testing.T) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailServer{url: "smtp://" + listener.Addr().String()}
	server := smtp.NewServer(m)
	server.ErrorLog = log.New(io.Discard, "", 0)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return m
}

func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	office := quietOffice(t)
	store := miniredis.RunT(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{
		roleOf(t, databaseFlag(t), "SELECT, INSERT, UPDATE, DELETE"), "--listen=127.0.0.1:0", "--data-dir=" + dir, "--smtp-url=" + office.url, "--public-url=https://api.example.com",
		"--trusted-proxies=10.0.0.0/8", "--metrics-listen=127.0.0.1:0", "--redis-url=redis://" + store.Addr(), "--encryption-key=" + freshKey(t),
		"--report-store=file://" + filepath.Join(dir, "files"),
	}
	for name, f := range examined(t, 0, args...) {
		if f.Status != "ok" && !slices.Contains([]string{"data directory", "connections", "durability"}, name) { // of the machine
			t.Errorf("%s: %+v", name, f)
		}
	}
	lines := must(t, append([]string{"doctor"}, args...)...)
	if n := strings.Count(lines, "\n"); n != 24 || !strings.Contains(lines, "\nok    redis ") {
		t.Errorf("%d lines for 24 checks:\n%s", n, lines)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "files")); err != nil || len(left) != 0 {
		t.Errorf("the store keeps %v (%v)", left, err)
	}
	if n := office.mails.Load(); n != 0 {
		t.Errorf("%d mails were begun", n)
	}
}

func TestDoctorFindsFlags(t *testing.T) {
	t.Parallel()
	for flag, word := range map[string]string{
		"--mail-from=nobody":                                "--mail-from",
		"--public-url=example.com":                          "--public-url",
		"--smtp-url=http://someone:sesame@mail.example.com": "--smtp-url",
		"--report-store=ftp://someone:sesame@example.com":   "--report-store",
		"--encryption-key=sesame":                           "--encryption-key",
		"--report-font=/nowhere/font.ttf":                   "--report-font",
		"--trusted-proxies=proxy":                           "--trusted-proxies",
		"--workers=0":                                       "--workers",
		"--public-url=https://someone:sesame@example.com":   "--public-url",
		"--public-url=https://someone:ses ame@example.com":  "--public-url",
		"--metrics-listen=127.0.0.1:8080":                   "--metrics-listen",
		"--report-store=s3://store?endpoint=https%3A%2F%2Fsomeone%3Asesame%40example.com&token=sesame": "--report-store",
		"--smtp-url=smtp://someone:12/sesame@mail.example.com":                                         "--smtp-url",
	} {
		found := examined(t, 1, databaseFlag(t), "--data-dir="+t.TempDir(), "--listen=127.0.0.1:8080", flag)
		wants(t, found["flags"], "fail", word)
	}
}

func TestDoctorFindsDatabase(t *testing.T) {
	t.Parallel()
	for address, word := range map[string]string{
		"postgres://someone:sesame@" + closedPort + "/x":                "refused",
		"postgres://someone:ses%61me@127.0.0.1:port/x":                  "database URL",
		strings.Replace(dbtest.URL(t, tablesSchema), "@", "sesame@", 1): "password",
		"host=127.0.0.1 port=1 user=someone password=sesame dbname=x":   "refused",
		"host=127.0.0.1 port=one user=someone password = sesame":        "database URL",
		"postgresq://someone:sesame@127.0.0.1/x?sslmode=disable":        "database URL",
	} {
		found := examined(t, 1, "--database-url="+address, "--data-dir="+t.TempDir())
		wants(t, found["database"], "fail", word, "--database-url")
		if f, there := found["migrations"]; there {
			t.Errorf("without a database: %+v", f)
		}
	}
	dir := filepath.Join(t.TempDir(), "data")
	found := examined(t, 0, "--data-dir="+dir)
	wants(t, found["database"], "warn", "serve makes an embedded one", dir)
	wants(t, found["data directory"], "warn", dir+" is not there")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("doctor made the data directory: %v", err)
	}

}

// asciiSchema is a database of another encoding.
var asciiSchema = dbtest.Schema{Name: "commandascii", Apply: func(context.Context, string) error { return nil }}

func TestDoctorFindsEncoding(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, asciiSchema)
	d := opened(t, "--database-url="+url)
	name := "ascii_" + strings.ToLower(rand.Text()[:8])
	if _, err := d.SQL().ExecContext(t.Context(), "CREATE DATABASE "+name+
		" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = d.SQL().ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	found := examined(t, 1, "--database-url="+named(t, url, name), "--data-dir="+t.TempDir())
	wants(t, found["database"], "fail", "SQL_ASCII", "UTF8")
}

func TestDoctorFindsMigrations(t *testing.T) {
	t.Parallel()
	empty := "--database-url=" + dbtest.URL(t, emptySchema)
	dir := "--data-dir=" + t.TempDir()
	wants(t, examined(t, 0, empty, dir)["migrations"], "warn", "not there", "serve brings them up to date")
	wants(t, examined(t, 1, empty, dir, "--no-migrate")["migrations"], "fail", "partnerapi migrate")

	for change, status := range map[string]string{
		"INSERT INTO migrations (version_id, is_applied) VALUES (9999, true)":                "fail",
		"DELETE FROM migrations WHERE version_id = (SELECT max(version_id) FROM migrations)": "warn",
	} {
		flag := databaseFlag(t)
		if _, err := opened(t, flag).SQL().ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		code := map[string]int{"fail": 1, "warn": 0}[status]
		found := examined(t, code, flag, dir)
		wants(t, found["migrations"], status, "version")
		if f, there := found["encryption key"]; there {
			t.Errorf("with other tables: %+v", f)
		}
	}
}

func TestDoctorFindsConnectionsAndClock(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	wants(t, examined(t, 1, flag, dir, "--connections=1000")["connections"], "fail", "serve may open 10", "--connections")

}

// TestDoctorFindsTimeouts: what the role's settings cut off is named.
func TestDoctorFindsTimeouts(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	wants(t, examined(t, 0, flag, dir)["timeouts"], "ok")
	with := flag + map[bool]string{true: "&", false: "?"}[strings.Contains(flag, "?")] + "options=" +
		url.QueryEscape("-c statement_timeout=30s -c lock_timeout=5s -c idle_session_timeout=1h -c synchronous_commit=off")
	found := examined(t, 0, strings.ReplaceAll(with, "+", "%20"), dir)
	wants(t, found["timeouts"], "warn", "statement_timeout = 30s", "lock_timeout = 5s", "idle_session_timeout = 1h", "ALTER ROLE")
	wants(t, found["durability"], "warn", "synchronous_commit = off")
}

// TestDoctorFindsCell: a cell that serve would refuse is a failure, by the same check.
func TestDoctorFindsCell(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	wants(t, examined(t, 0, flag, dir, "--cell=02", "--cell-count=4")["cell"], "ok", "02")
	must(t, "partners", "create", "Northlight", flag)
	wants(t, examined(t, 1, flag, dir, "--cell=02", "--cell-count=4")["cell"], "fail", "has partners", "--cell")
	wants(t, examined(t, 0, flag, dir, "--cell=00", "--cell-count=4")["cell"], "ok", "00")
	refused(t, 1, []string{"serve", "--listen=127.0.0.1:0", flag, dir, "--cell=02", "--cell-count=4"}, "has partners")
}

// TestDoctorFindsTraces is not parallel: it sets variables.
func TestDoctorFindsTraces(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	wants(t, examined(t, 1, flag, dir)["flags"], "fail", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "http/protobuf")
}

func TestDoctorFindsEncryptionKey(t *testing.T) {
	t.Parallel()
	flag, dir := demonstration(t), "--data-dir="+t.TempDir()
	older, newer := freshKey(t), freshKey(t)
	wants(t, examined(t, 0, flag, dir)["encryption key"], "warn", "none", "partnerapi encryption-key")
	serving(t, flag, "--encryption-key="+older).finish()
	connected(t, opened(t, flag), parsed(t, older), 1)

	wants(t, examined(t, 0, flag, dir, "--encryption-key="+older)["encryption key"], "ok")
	wants(t, examined(t, 1, flag, dir, "--encryption-key="+newer)["encryption key"], "fail", "another encryption key")
	wants(t, examined(t, 0, flag, dir, "--encryption-key="+newer+","+older)["encryption key"], "warn", "rotate")
	wants(t, examined(t, 1, flag, dir)["encryption key"], "fail", "there is no key")
}

func TestDoctorFindsBacklogs(t *testing.T) {
	t.Parallel()
	flag, dir := demonstration(t), "--data-dir="+t.TempDir()
	d := opened(t, flag)
	for _, change := range []string{
		"INSERT INTO events (client_id, id, type, created_at, recorded_at) " +
			"SELECT id, gen_random_uuid(), 'user.created', now(), now() - interval '1 hour' FROM clients LIMIT 1",
		"INSERT INTO outbox (client_id, id, kind, urgency, due_at, lease) " +
			"SELECT id, gen_random_uuid(), 'mail', 1, now() - interval '2 hours', gen_random_uuid() FROM clients LIMIT 1",
		"UPDATE reports SET lease = gen_random_uuid(), due_at = now() + interval '1 minute' WHERE status = 'pending'",
		"INSERT INTO periodic_jobs (kind, lease, due_at) VALUES ('report_care', gen_random_uuid(), now() - interval '3 hours')",
		"INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at, lease, leased_until) " +
			"SELECT id, gen_random_uuid(), 'running', 'api', now(), now(), gen_random_uuid(), now() - interval '1 hour' FROM clients LIMIT 1",
	} {
		if _, err := d.SQL().ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, examined(t, 0, flag, dir)["background work"], "warn",
		"events to publish", "mails to send", "1 jobs", "1 directory syncs", "partnerapi work")
}

func TestDoctorFindsMail(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	office := quietOffice(t)
	public := "--public-url=https://api.example.com"
	for url, words := range map[string][]string{
		"smtp://someone:sesame@" + closedPort:                     {"refused"},
		office.url + "?starttls=required":                         {"STARTTLS"},
		strings.Replace(office.url, "//", "//someone:sesame@", 1): {"authentication"},
	} {
		wants(t, examined(t, 1, flag, dir, public, "--smtp-url="+url)["mail"], "fail", append(words, "--smtp-url")...)
	}

	found := examined(t, 1, flag, dir, "--smtp-url="+office.url)
	wants(t, found["public url"], "fail", "only this machine", "--public-url")
	wants(t, found["mail"], "ok", "nothing was sent")
	wants(t, examined(t, 0, flag, dir)["mail"], "warn", "files", "--smtp-url")
}

func TestDoctorFindsEdge(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	found := examined(t, 0, flag, dir, "--public-url=http://api.example.com", "--trusted-proxies=0.0.0.0/0", "--demo", "--webhook-allow-private")
	wants(t, found["public url"], "warn", "not encrypted", "https")
	wants(t, found["trusted proxies"], "warn", "everybody")
	wants(t, found["demonstration"], "warn", "keys that everybody knows")
	wants(t, found["webhooks"], "warn", "private", "--webhook-allow-private")
	found = examined(t, 0, flag, dir, "--public-url=https://api.example.com")
	wants(t, found["trusted proxies"], "warn", "proxy")
	wants(t, found["metrics"], "warn", "everybody", "--metrics-listen")
	wants(t, examined(t, 0, flag, dir)["metrics"], "ok", "this machine only")

	wants(t, examined(t, 1, flag, dir, "--redis-url=redis://:sesame@"+closedPort)["redis"], "fail", "refused", "--redis-url")
	replica := miniredis.RunT(t)
	replica.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if !strings.HasPrefix(command, "EVAL") {
			return false
		}
		c.WriteError(refusing[0])
		return true
	})
	wants(t, examined(t, 1, flag, dir, "--redis-url=redis://"+replica.Addr())["redis"], "fail", "READONLY", "primary", "--redis-url")
	wants(t, examined(t, 1, flag, dir, "--redis-url=redis://:ses%61me@127.0.0.1/many")["redis"], "fail", "--redis-url")
	locked := miniredis.RunT(t)
	locked.RequireAuth("open")
	wants(t, examined(t, 1, flag, dir, "--redis-url=redis://:sesame@"+locked.Addr())["redis"], "fail", "WRONGPASS")
}

func TestDoctorFindsPlaces(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found := examined(t, 1, databaseFlag(t), "--data-dir="+file, "--report-store=file://"+file)
	wants(t, found["data directory"], "fail", "--data-dir")
	wants(t, found["report store"], "fail", file, "--report-store")

}

// named is a database's URL with another name.
func named(t *testing.T, url, name string) string {
	t.Helper()
	before, after, _ := strings.Cut(url, "?")
	if after != "" {
		after = "?" + after
	}
	return before[:strings.LastIndex(before, "/")+1] + name + after
}

func TestHealthCommand(t *testing.T) {
	t.Parallel()
	r := serving(t, databaseFlag(t))
	if got := must(t, "health", r.address); got != "ready\n" {
		t.Errorf("it says %q", got)
	}
	if got := must(t, "health", "--listen="+strings.TrimPrefix(r.address, "http://")); got != "ready\n" {
		t.Errorf("it says %q", got)
	}
	r.finish()
	refused(t, 1, []string{"health", r.address}, "refused")
	refused(t, 1, []string{"health", "somewhere"}, "no address of a service")
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready: the service stops")
	}))
	defer stopping.Close()
	refused(t, 1, []string{"health", stopping.URL}, "503", "the service stops")
}

// wants wants a doctorFinding to be of a status and to hold all words.
func wants(t *testing.T, f doctorFinding, status string, words ...string) {
	t.Helper()
	if f.Status != status {
		t.Errorf("%+v is not %s", f, status)
	}
	for _, word := range words {
		if !strings.Contains(f.Found+" → "+f.Mend, word) {
			t.Errorf("%+v does not say %q", f, word)
		}
	}
}
