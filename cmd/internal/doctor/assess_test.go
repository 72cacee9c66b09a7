package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// assertFinding fails unless a finding has a status and its texts hold all words.
func assertFinding(t *testing.T, f finding, status verdict, words ...string) {
	t.Helper()
	if f.Status != status {
		t.Errorf("%+v is not %s", f, status)
	}
	for _, word := range words {
		if !strings.Contains(f.Found+" → "+f.Remedy, word) {
			t.Errorf("%+v does not say %q", f, word)
		}
	}
}

// TestAssess: each assessment, without the server or disk that it is about.
func TestAssess(t *testing.T) {
	t.Parallel()
	assertFinding(t, assessServer(doctor.Server{Version: 130014, VersionText: "13.14", Encoding: "UTF8"}, "here"), failed, "13.14", "14 or newer")
	assertFinding(t, assessServer(doctor.Server{Version: 140001, VersionText: "14.1", Encoding: "SQL_ASCII", Empty: true}, "here"), failed, "SQL_ASCII", "createdb --encoding=UTF8")
	assertFinding(t, assessServer(doctor.Server{Version: 140001, VersionText: "14.1", Encoding: "LATIN1"}, "here"), warned, "LATIN1", "restore a dump")
	assertFinding(t, assessServer(doctor.Server{Version: 140001, VersionText: "14.1", Encoding: "UTF8"}, "here"), passed, "14.1")
	assertFinding(t, assessSkew(doctor.Skew{Ahead: time.Second, Doubt: 0}), passed, "1s")
	assertFinding(t, assessSkew(doctor.Skew{Ahead: -7 * time.Second, Doubt: time.Second}), warned, "7s behind", "NTP")
	assertFinding(t, assessSkew(doctor.Skew{Ahead: -7 * time.Second, Doubt: 3 * time.Second}), passed)
	assertFinding(t, assessSkew(doctor.Skew{Ahead: 62 * time.Second, Doubt: time.Second}), failed, "1m2s")
	assertFinding(t, assessDisk("/data", 99<<20), failed, "99 MiB")
	noon := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	state := db.ClockState{Now: noon, SinceLeap: domain.NoLeap}
	assertFinding(t, assessDay(state), passed, "2026-06-15", "no daily refresh")
	state.LastRefresh = domain.DateOf(noon).AddDays(-31)
	assertFinding(t, assessDay(state), passed, "2026-05-15")
	state.LastRefresh = domain.DateOf(noon).AddDays(-32)
	assertFinding(t, assessDay(state), warned, "2026-05-14", "start serve or work and wait for 24 hours", "--accept-clock")
	state.Seen, state.Waited = true, 18*time.Hour
	assertFinding(t, assessDay(state), warned, "wait until 2026-06-15T18:00:00Z", "--accept-clock")
	state.Waited = 24 * time.Hour
	assertFinding(t, assessDay(state), passed)
	assertFinding(t, assessDisk("/data", 500<<20), warned, "500 MiB")
}

// TestChecksEnd: a check ends with its time, whatever it waits for.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	e, forever := &examination{}, make(chan struct{})
	defer close(forever)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hung := check{name: "hung", run: func(_ *examination, ctx context.Context) finding {
		return withinContext(ctx, "mend it", func() finding { <-forever; return finding{} })
	}}
	assertFinding(t, e.runCheck(ctx, hung), failed, "no response in time", "mend it")
}

// TestSilentMailServer: a mail server that says nothing is no mail server.
func TestSilentMailServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	e := &examination{ServeFlags: config.ServeFlags{WorkFlags: config.WorkFlags{SMTPURL: "smtp://" + silent.Addr().String()}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // its time is over
	assertFinding(t, e.checkMail(ctx), failed, "connect to the mail server")
}

// TestAssessRole: a role may do what serving needs, and no more.
func TestAssessRole(t *testing.T) {
	t.Parallel()
	assertFinding(t, assessRole(doctor.Role{Name: "postgres", Superuser: true}), warned, "postgres is a superuser", "CREATE ROLE")
	assertFinding(t, assessRole(doctor.Role{Name: "app", ReadOnly: true}), failed, "standby", "primary")
}

func TestDoctorFindsKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "the.key")
	e := &examination{ServeFlags: config.ServeFlags{Flags: database.Flags{DataDir: dir}}}
	e.EncryptionKey = seal.NewKey() + ",file:" + file
	for mode, status := range map[os.FileMode]verdict{0o600: passed, 0o400: passed, 0o640: warned, 0o604: failed, 0o646: failed} {
		for _, name := range []string{file, e.KeyFile()} {
			if err := errors.Join(os.WriteFile(name, []byte(seal.NewKey()), 0o600), os.Chmod(name, mode)); err != nil {
				t.Fatal(err)
			}
			words := []string{name, "chmod 600"}
			if status == passed {
				words = nil
			}
			assertFinding(t, e.checkKeyFiles(t.Context()), status, words...)
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDoctorFindsOpenFolders: others must not write to the data directory, nor read mails and
// reports.
func TestDoctorFindsOpenFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outbox := filepath.Join(dir, "outbox")
	if err := os.Mkdir(outbox, 0o700); err != nil {
		t.Fatal(err)
	}
	e := &examination{ServeFlags: config.ServeFlags{Flags: database.Flags{DataDir: dir}}}
	for _, tt := range []struct {
		data, outbox os.FileMode
		status       verdict
		says         string
	}{
		{0o755, 0o700, "", "MiB left"}, {0o775, 0o700, warned, dir + " (mode 0775)"}, {0o777, 0o700, failed, dir + " (mode 0777)"},
		{0o755, 0o750, warned, outbox + " (mode 0750)"}, {0o755, 0o705, failed, outbox + " (mode 0705)"},
	} {
		if err := errors.Join(os.Chmod(dir, tt.data), os.Chmod(outbox, tt.outbox)); err != nil {
			t.Fatal(err)
		}
		found := e.checkDataDir(t.Context())
		if tt.status == "" { // of the machine
			tt.status = found.Status
		}
		assertFinding(t, found, tt.status, tt.says)
	}
}

func TestDoctorFindsMetricsOthersRead(t *testing.T) {
	t.Parallel()
	for listen, status := range map[string]verdict{
		"127.0.0.1:9": passed, "[::1]:9": passed, "localhost:9": passed, "10.0.0.7:9": passed, "[fd00::1]:9": passed, "[fe80::1]:9": passed,
		"0.0.0.0:9": warned, ":9": warned, "[::]:9": warned, "[::ffff:0.0.0.0]:9": warned,
		"203.0.113.7:9": failed, "[2001:db8::1]:9": failed, "9": failed,
	} {
		assertFinding(t, assessMetrics(listen), status)
	}
}

func TestDoctorFindsPorts(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at := strings.TrimPrefix(other.URL, "http://")
	e := &examination{ServeFlags: config.ServeFlags{Listen: at}}
	assertFinding(t, e.checkListen(t.Context()), failed, at, "in use", "--listen")
	e = &examination{ServeFlags: config.ServeFlags{Listen: "127.0.0.1:0", MetricsListen: at}}
	assertFinding(t, e.checkListen(t.Context()), failed, at, "in use", "--metrics-listen")
	var found finding
	for range 10 { // until no other process takes the port that was free
		both, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = both.Close()
		_, port, _ := net.SplitHostPort(both.Addr().String())
		e = &examination{ServeFlags: config.ServeFlags{Listen: ":" + port, MetricsListen: "[::]:" + port}}
		if found = e.checkListen(t.Context()); strings.Contains(fmt.Sprint(found), "--metrics-listen") {
			break
		}
	}
	assertFinding(t, found, failed, "in use", "--metrics-listen")

	for _, ready := range []bool{true, false} {
		own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if ready {
				_, _ = w.Write([]byte("ready\n"))
				return
			}
			http.Error(w, "not ready: the database is unavailable", http.StatusServiceUnavailable)
		}))
		e := &examination{ServeFlags: config.ServeFlags{Listen: strings.TrimPrefix(own.URL, "http://"), MetricsListen: at}}
		assertFinding(t, e.checkListen(t.Context()), passed, "already listens at")
		own.Close()
	}
	e = &examination{ServeFlags: config.ServeFlags{Listen: "127.0.0.1:0"}}
	assertFinding(t, e.checkListen(t.Context()), passed, "available")
}

func TestDoctorFindsVariables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"PARTNERAPI_KEY": true}
	for _, name := range []string{"DATABASE_URL", "SMTP_URL", "WORKERS", "LISTEN", "ENCRYPTION_KEY", "RELEASE", "PUBLIC_URL", "LOG_LEVEL", "WORK_LISTEN", "TRUSTED_PROXIES"} {
		known["PARTNERAPI_"+name] = true
	}
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
		got := strings.Join(unknownVariables([]string{"PATH=/bin", setting}, known), ", ")
		if name, _, _ := strings.Cut(got, " ("); got != want && (want != name || want == "") || strings.Contains(got, "sesame") {
			t.Errorf("%s: %q, not %q", setting, got, want)
		}
	}
}
