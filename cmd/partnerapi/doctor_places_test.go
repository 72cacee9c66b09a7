package main

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db/doctor"
)

// roleOf is the flag of a database with a new role that has some rights on all tables,
// and may use the sequences.
func roleOf(t *testing.T, flag, rights string) string {
	t.Helper()
	d := opened(t, flag)
	name := "doctor_" + strings.ToLower(rand.Text()[:10])
	for _, statement := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD 'sesame'",
		"GRANT USAGE ON SCHEMA public TO " + name,
		"GRANT " + rights + " ON ALL TABLES IN SCHEMA public TO " + name,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO " + name,
	} {
		if _, err := d.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	owner := opened(t, flag)
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
			if _, err := owner.SQL().Exec(statement); err != nil {
				t.Error(err)
			}
		}
	})
	address, err := url.Parse(strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(name, "sesame")
	return "--database-url=" + address.String()
}

func TestDoctorFindsRole(t *testing.T) {
	t.Parallel()
	flag, dir := database(t), "--data-dir="+t.TempDir()
	found := examined(t, 1, roleOf(t, flag, "SELECT"), dir)
	found["role"].wants(t, failed, "doctor_", "lacks rights on", "clients", "users", "grant")
	found["pooler"].wants(t, passed, "PostgreSQL itself")
	examined(t, 0, roleOf(t, flag, "ALL"), dir)["role"].wants(t, passed, "no superuser")

	judgeRole(doctor.Role{Name: "postgres", Superuser: true}).wants(t, warned, "postgres is a superuser", "CREATE ROLE")
	judgeRole(doctor.Role{Name: "app", ReadOnly: true}).wants(t, failed, "standby", "primary")
}

func TestDoctorFindsKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "the.key")
	for mode, status := range map[os.FileMode]verdict{0o600: passed, 0o400: passed, 0o640: warned, 0o604: failed, 0o646: failed} {
		if err := os.WriteFile(file, []byte(freshKey(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		e := &examination{serveFlags: serveFlags{databaseFlags: databaseFlags{DataDir: dir}}}
		e.EncryptionKey = freshKey(t) + ",file:" + file
		words := []string{}
		if status != passed {
			words = []string{file, "chmod 600"}
		}
		e.checkKeyFiles(t.Context()).wants(t, status, words...)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(e.keyFile(), nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(e.keyFile(), mode); err != nil {
			t.Fatal(err)
		}
		e.checkKeyFiles(t.Context()).wants(t, status)
		if err := os.Remove(e.keyFile()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctorFindsMetricsOthersRead(t *testing.T) {
	t.Parallel()
	for listen, status := range map[string]verdict{
		"127.0.0.1:9": passed, "[::1]:9": passed, "localhost:9": passed, "10.0.0.7:9": passed, "[fd00::1]:9": passed, "[fe80::1]:9": passed,
		"0.0.0.0:9": warned, ":9": warned, "[::]:9": warned, "[::ffff:0.0.0.0]:9": warned,
		"203.0.113.7:9": failed, "[2001:db8::1]:9": failed, "9": failed,
	} {
		judgeMetrics(listen).wants(t, status)
	}
}

func TestDoctorFindsPorts(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at := strings.TrimPrefix(other.URL, "http://")
	e := &examination{serveFlags: serveFlags{Listen: at}}
	e.checkListen(t.Context()).wants(t, failed, at, "in use", "--listen")
	e = &examination{serveFlags: serveFlags{Listen: "127.0.0.1:0", MetricsListen: at}}
	e.checkListen(t.Context()).wants(t, failed, at, "in use", "--metrics-listen")

	for _, ready := range []bool{true, false} {
		own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if ready {
				_, _ = w.Write([]byte("ready\n"))
				return
			}
			http.Error(w, "not ready: the database cannot be used", http.StatusServiceUnavailable)
		}))
		e := &examination{serveFlags: serveFlags{Listen: strings.TrimPrefix(own.URL, "http://"), MetricsListen: at}}
		e.checkListen(t.Context()).wants(t, passed, "answers at")
		own.Close()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	e = &examination{serveFlags: serveFlags{Listen: free.Addr().String()}}
	e.checkListen(t.Context()).wants(t, passed, "can be taken")
}

// TestDoctorFindsListenForAll: an address that other machines reach is not called this
// machine's.
func TestDoctorFindsListenForAll(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:8080", "[::]:8080"} {
		e := &examination{serveFlags: serveFlags{Listen: listen}}
		e.checkPublicURL(t.Context()).wants(t, warned, listen, "other machines", "--public-url")
		e.SMTPURL = "smtp://mail.example.com"
		e.checkPublicURL(t.Context()).wants(t, failed, "links in mail", "--public-url")
	}
	e := &examination{serveFlags: serveFlags{Listen: "127.0.0.1:8080"}}
	e.checkPublicURL(t.Context()).wants(t, passed, "this machine only")
}

func TestDoctorFindsVariables(t *testing.T) {
	t.Parallel()
	known := variables(t)
	for setting, want := range map[string]string{
		"PARTNERAPI_DATABASE_URL=sesame":       "",
		"PARTNERAPI_DATABSE_URL=sesame":        "PARTNERAPI_DATABSE_URL (PARTNERAPI_DATABASE_URL?)",
		"PARTNERAPI_DB_URL=sesame":             "PARTNERAPI_DB_URL",
		"PARTNERAPI_REDIS=sesame":              "PARTNERAPI_REDIS",
		"PARTNERAPI_SMTP_URI=sesame":           "PARTNERAPI_SMTP_URI (PARTNERAPI_SMTP_URL?)",
		"partnerapi_smtp_url=sesame":           "partnerapi_smtp_url (PARTNERAPI_SMTP_URL?)",
		"PARTNER_API_RELEASE=2.1":              "PARTNER_API_RELEASE (PARTNERAPI_RELEASE?)",
		"PARTNERAPI_TRUSTED_PROXY=10.0.0.0/8":  "PARTNERAPI_TRUSTED_PROXY (PARTNERAPI_TRUSTED_PROXIES?)",
		"PARTNERAPI_COLOUR=red":                "PARTNERAPI_COLOUR",
		"PARTNERAPI_SERVICE_HOST=10.0.0.1":     "",
		"PARTNERAPI_SERVICE_PORT_HTTP=80":      "",
		"PARTNERAPI_PORT=tcp://10.0.0.1:80":    "",
		"PARTNERAPI_PORT_80_TCP_ADDR=10.0.0.1": "",
		"PARTNERAPI_PORT=8080":                 "PARTNERAPI_PORT",
		"PARTNERS=1":                           "",
	} {
		got := strings.Join(misspelt([]string{"PATH=/bin", setting}, known), ", ")
		if name, _, _ := strings.Cut(got, " ("); got != want && (want != name || want == "") || strings.Contains(got, "sesame") {
			t.Errorf("%s: %q, not %q", setting, got, want)
		}
	}
}

// TestDoctorReadsTheEnvironment is not parallel: it sets a variable.
func TestDoctorReadsTheEnvironment(t *testing.T) {
	t.Setenv("PARTNERAPI_WORKRES", "7")
	examined(t, 0, database(t), "--data-dir="+t.TempDir())["environment"].wants(t, warned, "PARTNERAPI_WORKRES (PARTNERAPI_WORKERS?)")
}

// TestDoctorFindsNoPrograms: no embedded database is promised where none can start.
func TestDoctorFindsNoPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	found := examined(t, 1, "--data-dir="+filepath.Join(dir, "data"), "--postgres-bin="+dir)
	found["database"].wants(t, failed, "--postgres-bin", "--database-url")
}

// TestDoctorMakesNoStore: a store of reports that is not there is named, and not made.
func TestDoctorMakesNoStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	away := filepath.Join(dir, "away", "reports")
	e := &examination{serveFlags: serveFlags{databaseFlags: databaseFlags{DataDir: dir}}}
	e.checkStore(t.Context()).wants(t, passed, "serve makes")
	e.ReportStore = "file://" + away
	e.checkStore(t.Context()).wants(t, warned, away+" does not exist", "--report-store")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("doctor made %v (%v)", left, err)
	}
}
