//go:build slow

package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/pg"
	"partnerapi/docs"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// wholeProgram is a whole program of a guide, ready to run.
type wholeProgram struct {
	command []string
	dir     string // for what it writes
	secret  string // of its webhook
}

// start starts the program, and ends it with the test. What it prints on standard error is logged.
func (p wholeProgram) start(t *testing.T, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	cmd.Dir, cmd.Stderr = p.dir, t.Output()
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+p.secret)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// run runs the program to its end and returns what it printed.
func (p wholeProgram) run(t *testing.T, args ...string) (printed string) {
	t.Helper()
	cmd, lines := p.start(t, args...)
	for lines.Scan() {
		printed += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.command, err, printed)
	}
	return printed
}

// eachProgram tests the two programs of a guide, each with a demonstration of its own and with text that is replaced.
func eachProgram(t *testing.T, guide string, replace *strings.Replacer, test func(t *testing.T, d *db.DB, front *front, p wholeProgram)) {
	source, err := fs.ReadFile(docs.Guides(), guide)
	if err != nil {
		t.Fatal(err)
	}
	programs := slices.DeleteFunc(examplesOf(t, guide, string(source)), func(e example) bool { return e.interpreter == "" })
	if len(programs) != 2 {
		t.Errorf("the guide has %d programs", len(programs))
	}
	for _, e := range programs {
		t.Run(e.interpreter, func(t *testing.T) {
			t.Parallel()
			interpreter, err := exec.LookPath(e.interpreter)
			if err != nil {
				t.Logf("%s %v", e.interpreter, errMissing)
				return
			}
			url := dbtest.URL(t, guideSchema)
			d, err := db.Open(url, db.WithClock(domain.NewManualClock(guideTime)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			f := newFront(t, guideService(t, url, ""))
			s := shell{base: guideBase, address: f.URL, dir: t.TempDir()}
			file, err := s.save(e.interpreter, replace.Replace(e.script))
			if err != nil {
				t.Fatal(err)
			}
			p := wholeProgram{[]string{interpreter, filepath.Join(s.dir, file)}, t.TempDir(), domain.NewWebhookSecret()}
			if e.interpreter == "go" {
				p.command = []string{built(t, interpreter, s.dir)}
			}
			test(t, d, f, p)
		})
	}
}

// built compiles the program of a folder with the module of tools/examples, and returns its file.
func built(t *testing.T, compiler, dir string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, "tools", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("=> ../.."), []byte("=> "+root), 1)
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	cmd := exec.CommandContext(t.Context(), compiler, "build", "-o", "program", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "program")
}

// front stands between a program and its service, whom the caller asks past it.
type front struct {
	*httptest.Server
	caller
	// before, where set, sees each request, and reports whether it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
	// after, where set, changes the body of an answer.
	after func(r *http.Request, body []byte) []byte
}

func newFront(t *testing.T, service string) *front {
	f := &front{caller: caller{t, service, http.DefaultTransport}}
	at, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(a *http.Response) error {
			if f.after == nil {
				return nil
			}
			body, err := io.ReadAll(a.Body)
			body = f.after(a.Request, body)
			a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			a.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return err
		},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.before == nil || !f.before(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// TestSyncExample: a run that is killed between two pages loses nothing, the run after it goes on at the second page,
// and later runs store what changed.
func TestSyncExample(t *testing.T) {
	t.Parallel()
	eachProgram(t, "nightly-sync.md", strings.NewReplacer(), func(t *testing.T, d *db.DB, f *front, p wholeProgram) {
		whole := wholeProgram{command: p.command, dir: t.TempDir()}
		all := whole.run(t)
		if source, err := fs.ReadFile(docs.Guides(), "nightly-sync.md"); err != nil || !strings.Contains(string(source), "\n"+all) {
			t.Errorf("the guide does not show that the program prints %s", all)
		}

		var victim *exec.Cmd
		started, stopped, resumed := make(chan struct{}), "", ""
		var killed atomic.Bool
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			<-started
			if r.URL.Query().Has("cursor") && !killed.Swap(true) {
				stopped = r.URL.String()
				_ = victim.Process.Kill()
				<-r.Context().Done()
				return true
			}
			return false
		}
		cmd, lines := p.start(t)
		victim = cmd
		close(started)
		if lines.Scan() || cmd.Wait() == nil {
			t.Fatalf("the program was not killed: %s", lines.Text())
		}
		f.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if resumed == "" && strings.Contains(stopped, r.URL.Path) && r.URL.Path != "/v2/clients" {
				resumed = r.URL.String()
			}
			return false
		}
		p.run(t)
		if resumed != stopped || stopped == "" {
			t.Errorf("stopped at %s, and went on at %s", stopped, resumed)
		}
		f.before = nil
		if got, want := copied(t, p), copied(t, whole); got != want || got == "" {
			t.Errorf("after the kill the copy is\n%.400s\nand without\n%.400s", got, want)
		}
		if got := p.run(t); got != "stored 0 clients, 0 users, 0 assignments\n" {
			t.Errorf("a run without changes prints %s", got)
		}

		call := func(method, path string, body any) response {
			return f.do(method, path, "pk_demo_all", body).want(http.StatusOK)
		}
		first := func(list string) string { return into[struct{ Data []identified }](call("GET", list, nil)).Data[0].ID }
		client := first("/v2/clients?limit=1&sort=created_at")
		call("PATCH", "/v2/clients/"+client, fields{"industry": "Aerospace"})
		call("PATCH", "/v2/users/"+first("/v2/clients/"+client+"/users?limit=1"), fields{"job_title": "Pilot"})
		if got := p.run(t); got != "stored 1 clients, 1 users, 0 assignments\n" {
			t.Errorf("a run after two changes prints %s", got)
		}
		if got := copied(t, p); !strings.Contains(got, "Aerospace") || !strings.Contains(got, "Pilot") {
			t.Errorf("the changes are missing in %.400s", got)
		}

		archived, err := domain.ParseID[domain.ClientKind](client)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, d, "UPDATE clients SET archived_at = $1 WHERE id = $2", guideTime, archived)
		p.run(t)
		if got := copied(t, p); strings.Contains(got, "\nclients "+client) {
			t.Error("the archived client stays")
		}
	})
}

// copied returns the rows of a copy, by Python, which has SQLite.
func copied(t *testing.T, p wholeProgram) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for table in "clients", "users", "training":
    for row in db.execute("SELECT id, body FROM " + table + " ORDER BY id"):
        print("\n" + table, *row)
`, filepath.Join(p.dir, "partner.db")).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestTicketsExample: a click while the program is down, and one of a webhook, have a ticket each, however often their
// events come.
func TestTicketsExample(t *testing.T) {
	t.Parallel()
	free := strings.NewReplacer(`"127.0.0.1", 3000`, `"127.0.0.1", 0`, `"127.0.0.1:3000"`, `"127.0.0.1:0"`)
	eachProgram(t, "click-tickets.md", free, func(t *testing.T, d *db.DB, f *front, p wholeProgram) {
		const latest = " FROM phishing_results WHERE status = 'sent' ORDER BY sent_at DESC, id LIMIT 3"
		results, err := pg.All[domain.ResultID](t.Context(), d, "find results", pg.SQL("SELECT id"+latest))
		users, err2 := pg.All[domain.UserID](t.Context(), d, "find users", pg.SQL("SELECT user_id"+latest))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		ticket := func(i int) string { return fmt.Sprintf("ticket %s %s", results[i], users[i]) }

		// listening starts the program, expects lines, and returns where it listens.
		listening := func(before ...string) (cmd *exec.Cmd, lines *bufio.Scanner, address string) {
			t.Helper()
			cmd, lines = p.start(t)
			for _, want := range before {
				if lines.Scan(); lines.Text() != want {
					t.Fatalf("the program prints %q, not %q", lines.Text(), want)
				}
			}
			lines.Scan()
			address, ok := strings.CutPrefix(lines.Text(), "listening on ")
			if !ok {
				t.Fatalf("the program prints %q", lines.Text())
			}
			return cmd, lines, "http://" + address
		}
		stop := func(cmd *exec.Cmd) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		cmd, _, _ := listening()
		stop(cmd)
		step(t, d, f, results[0], domain.MailClicked)
		cmd, lines, address := listening(ticket(0))

		endpoints, err := webhook.NewEndpoints(webhook.Options{Forward: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(endpoints.Close)
		post := func(secret, event string, want int) {
			t.Helper()
			message := domain.DeliveryMessage{URL: address, ID: "evt_1", Secrets: []string{secret}, Body: []byte(event)}
			if try := endpoints.Send(t.Context(), message); try.StatusCode != want {
				t.Errorf("a delivery is answered with %+v, not %d", try, want)
			}
		}
		post(p.secret, step(t, d, f, results[0], domain.MailCredentialsSubmitted), http.StatusNoContent)
		opened := step(t, d, f, results[1], domain.MailOpened)
		post(p.secret, opened, http.StatusNoContent)
		clicked := step(t, d, f, results[2], domain.MailClicked)
		post(domain.NewWebhookSecret(), clicked, http.StatusUnauthorized)
		for range 2 {
			post(p.secret, clicked, http.StatusNoContent)
		}
		post(p.secret, `{"id":"evt_01kv5je8g0e00r000000000000","type":"ping","created_at":"2026-06-15T12:00:00Z","client_id":null,"data":{}}`, http.StatusNoContent)
		post(p.secret, step(t, d, f, results[1], domain.MailAttachmentOpened), http.StatusNoContent)
		for _, want := range []string{ticket(2), ticket(1)} {
			if lines.Scan(); lines.Text() != want {
				t.Errorf("the program prints %q, not %q", lines.Text(), want)
			}
		}
		stop(cmd)
		cmd, _, _ = listening() // the feed has all of them again
		stop(cmd)
	})
}

// step moves a result, publishes the event, and returns it as the service posts it.
func step(t *testing.T, d *db.DB, f *front, result domain.ResultID, kind domain.ResultEventKind) string {
	t.Helper()
	err := d.AdvanceResults(t.Context(), []domain.ResultStep{{Result: result, Kind: kind, At: guideTime}})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := d.CursorSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	render := v2.New(d, secret).RenderEvents
	if err := webhook.NewPublisher(d, render, slog.New(slog.DiscardHandler), func() {}).Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	feed := f.do("GET", "/v2/events?limit=500&types=phishing.result.updated", "pk_demo_all", nil).want(http.StatusOK)
	events := into[struct{ Data []json.RawMessage }](feed).Data
	return string(events[len(events)-1])
}

// TestReportsExample: every client's report is in the archive, after a 429 and a poll in which one was not made yet.
// A second run gets the same reports.
func TestReportsExample(t *testing.T) {
	t.Parallel()
	busy := strings.NewReplacer("PAUSE = 5", "PAUSE = 0", "pause = 5 *", "pause = 0 *")
	eachProgram(t, "monthly-reports.md", busy, func(t *testing.T, d *db.DB, f *front, p wholeProgram) {
		var limited, pending atomic.Bool
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || limited.Swap(true) {
				return false
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		f.after = func(r *http.Request, body []byte) []byte {
			if !strings.Contains(r.URL.Path, "/reports/rep_") || pending.Swap(true) {
				return body
			}
			return bytes.Replace(body, []byte(`"status":"ready"`), []byte(`"status":"pending"`), 1)
		}
		for range 2 {
			if got := p.run(t, "2026-05"); got != "reports: 32\n" {
				t.Errorf("the program prints %s", got)
			}
		}
		if !limited.Load() || !pending.Load() {
			t.Error("there was no 429, or no report that was pending")
		}
		holdsReports(t, filepath.Join(p.dir, "reports-2026-05.zip"))
		var made int
		err := d.SQL().QueryRowContext(context.WithoutCancel(t.Context()), "SELECT count(*) FROM reports WHERE created_at >= $1", guideTime).Scan(&made)
		if err != nil || made != 32 {
			t.Errorf("two runs made %d reports: %v", made, err)
		}
	})
}

// holdsReports checks that an archive has a PDF for each client of the demonstration.
func holdsReports(t *testing.T, name string) {
	t.Helper()
	archive, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, file := range archive.File {
		text, err := fs.ReadFile(archive, file.Name)
		if err != nil || !bytes.HasPrefix(text, []byte("%PDF-")) || !strings.HasSuffix(file.Name, ".pdf") {
			t.Errorf("%s begins with %.5q: %v", file.Name, text, err)
		}
	}
	if len(archive.File) != 32 {
		t.Errorf("the archive has %d files", len(archive.File))
	}
}

// TestListenPrograms: the programs of the guide to events on one's own machine post an event with a valid signature.
// They have 50 lines.
func TestListenPrograms(t *testing.T) {
	t.Parallel()
	toFront := strings.NewReplacer("http://127.0.0.1:3000", guideBase)
	eachProgram(t, "listen.md", toFront, func(t *testing.T, _ *db.DB, f *front, p wholeProgram) {
		text, err := os.ReadFile(p.command[1])
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 50 {
			t.Errorf("the program has %d lines: %v", lines, err)
		}
		type post struct {
			header http.Header
			body   []byte
		}
		posts := make(chan post, 1)
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/hooks" {
				return false
			}
			body, _ := io.ReadAll(r.Body)
			posts <- post{r.Header, body}
			w.WriteHeader(http.StatusNoContent)
			return true
		}
		_, printed := p.start(t)
		printed.Scan() // the cursor was read
		secret, _ := strings.CutPrefix(printed.Text(), "secret ")
		f.do("POST", "/v2/clients", "pk_demo_all", fields{"name": "New"}).want(http.StatusCreated)
		got := <-posts
		err = client.Verify(secret, got.header, got.body, time.Now())
		if err != nil || !bytes.Contains(got.body, []byte("client.created")) {
			t.Errorf("the receiver has %s: %v", got.body, err)
		}
		if printed.Scan(); printed.Text() != "client.created "+got.header.Get("Webhook-Id")+" 204" {
			t.Errorf("the program prints %s", printed.Text())
		}
	})
}
