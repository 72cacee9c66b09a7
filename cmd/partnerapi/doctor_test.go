package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/emersion/go-smtp"

	"partnerapi/platform/seal"
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

// TestDoctorIsContent: all checks pass of what is as it should be, and leave nothing behind.
// The findings and their lines are the same.
func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	office, dir := quietOffice(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{
		databaseFlag(t), "--listen=127.0.0.1:0", "--data-dir=" + dir, "--smtp-url=" + office.url, "--public-url=https://api.example.com",
		"--trusted-proxies=10.0.0.0/8", "--metrics-listen=127.0.0.1:0", "--redis-url=redis://" + miniredis.RunT(t).Addr(),
		"--encryption-key=" + seal.NewKey(), "--report-store=file://" + filepath.Join(dir, "files"),
	}
	for name, f := range examined(t, 0, args...) {
		if f.Status != "ok" && !slices.Contains([]string{"data directory", "connections", "durability", "role"}, name) { // of the machine
			t.Errorf("%s: %+v", name, f)
		}
	}
	lines := must(t, append([]string{"doctor"}, args...)...)
	if n := strings.Count(lines, "\n"); n != 25 || !strings.Contains(lines, "\nok    redis ") {
		t.Errorf("%d lines for 25 checks:\n%s", n, lines)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "files")); err != nil || len(left) != 0 {
		t.Errorf("the store keeps %v (%v)", left, err)
	}
	if n := office.mails.Load(); n != 0 {
		t.Errorf("%d mails were begun", n)
	}
}

// TestDoctorReadsTheEnvironment is not parallel: it sets a variable.
func TestDoctorReadsTheEnvironment(t *testing.T) {
	t.Setenv("PARTNERAPI_WORKRES", "7")
	f := examined(t, 0, "--data-dir="+t.TempDir())["environment"]
	if f.Status != "warn" || !strings.Contains(f.Found, "PARTNERAPI_WORKRES (PARTNERAPI_WORKERS?)") {
		t.Errorf("%+v", f)
	}
}

// TestProbeRedis: what doctor is told of a Redis that cannot be used.
func TestProbeRedis(t *testing.T) {
	t.Parallel()
	replica, locked := miniredis.RunT(t), miniredis.RunT(t)
	locked.RequireAuth("open")
	replica.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") {
			c.WriteError(refusing[0])
		}
		return strings.HasPrefix(command, "EVAL")
	})
	for url, want := range map[string]string{
		"redis://:sesame@127.0.0.1:1":      "refused",
		"redis://" + replica.Addr():        "READONLY",
		"redis://:ses%61me@127.0.0.1/many": "cannot be read",
		"redis://:sesame@" + locked.Addr(): "WRONGPASS",
	} {
		_, written, err := probeRedis(t.Context(), url)
		said := fmt.Sprint(written, err)
		if (written == nil) == (err == nil) || !strings.Contains(said, want) || strings.Contains(said, "sesame") {
			t.Errorf("%s: %s", url, said)
		}
	}
}
