package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
)

// TestKeysStaySecret sends a key in every place that a caller could confuse
// with its header.
func TestKeysStaySecret(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=x", "--clients=all", "--scopes=read,write")
	r := serving(t, flag, "--release=latest", "--log-level=debug")
	r.get("/v2/clients", key).want(http.StatusOK)
	r.get("/v2/clients?api_key="+key, key).want(http.StatusOK)
	r.get("/v2/clients?q="+key, "").want(http.StatusUnauthorized)
	r.get("/v2/clients/"+key, key).want(http.StatusNotFound)
	r.get("/v2/"+key, key).want(http.StatusNotFound)
	r.get("/v2/pk%5f"+key[3:], key).want(http.StatusNotFound)
	r.get("/v2/clients?cursor="+key, key).want(http.StatusBadRequest)
	r.get("/v2/clients", key[:40]).want(http.StatusUnauthorized)
	r.client.do("GET", "/v2/clients", key, nil, "X-Request-Id", key).want(http.StatusOK)
	r.do("POST", "/v2/clients", key, fields{"name": key}, "Idempotency-Key", key).want(http.StatusCreated)
	r.do("POST", "/v2/clients", key, fields{key: key}).want(http.StatusBadRequest)
	if older() {
		r.get("/v1/clients", key).want(http.StatusOK)
		r.get("/v1/clients/"+key+"/users", key).want(http.StatusBadRequest)
	}

	metrics := string(r.get("/metrics", "").want(http.StatusOK).body)
	says(t, metrics, `
partnerapi_requests_total{operation="clients.list",status="200",version="v2"} 3`, `
partnerapi_requests_total{operation="clients.list",status="401",version="v2"} 2`, `
partnerapi_request_seconds_count{operation="clients.create",version="v2"} 2`, `
partnerapi_key_requests_total{key="`+prefix(key)+`",version="v2"} `, "\nprocess_resident_memory_bytes ")
	r.finish()
	logs := r.logs.String()
	if n := strings.Count(logs, "msg=request "); n < 9 { // the two without a valid key are summed up
		t.Errorf("%d requests are logged:\n%s", n, logs)
	}
	for what, text := range map[string]string{"log": logs, "metrics": metrics, "greeting": r.out.String()} {
		if i := strings.Index(text, key[3:24]); i >= 0 {
			t.Errorf("the %s holds the key: %s", what, text[max(0, i-200):i+60])
		}
	}
	if !strings.Contains(logs, "path=/v2/clients/"+prefix(key)+"…") {
		t.Errorf("the log does not show where the key was:\n%s", logs)
	}
}

var refreshed = regexp.MustCompile(`msg="daily refresh done" day=(\S+) took=`)

// TestDailyRefresh: a service whose last daily refresh was yesterday does today's, unless it
// is to leave the work.
func TestDailyRefresh(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	execute(t, d, "UPDATE daily_refreshes SET day = day - 1, finished_at = finished_at - interval '1 day'")
	wantDue := func(want bool) {
		t.Helper()
		if due, err := d.RefreshDue(t.Context()); err != nil || due != want {
			t.Fatalf("the refresh is due: %v, %v", due, err)
		}
	}
	idle := serving(t, flag, "--no-work")
	idle.get("/readyz", "").want(http.StatusOK)
	idle.finish()
	wantDue(true)
	began := domain.DateOf(time.Now())
	r := serving(t, flag)
	found := r.logs.await(refreshed, r.ended)
	if found == nil {
		t.Fatalf("no refresh:\n%s", r.logs)
	}
	if today := domain.DateOf(time.Now()); found[1] != today.String() && found[1] != began.String() {
		t.Errorf("refreshed %s, on %s", found[1], today)
	}
	wantDue(false)
	r.finish()
}

var (
	heldDay       = regexp.MustCompile(`msg="the clock's date is far from the last daily refresh, [^"]*" now=\S+ last_refresh=(\S+) until=`)
	acceptedClock = regexp.MustCompile(`msg="the clock's date is accepted; remove --accept-clock"`)
)

// TestAcceptClock verifies that a service whose last daily refresh was two months ago holds work back and says so in the
// log, in a metric and by doctor, until it is started with --accept-clock. It then does the work.
func TestAcceptClock(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	execute(t, d, "UPDATE daily_refreshes SET day = day - 60, finished_at = finished_at - interval '60 days'")
	w := inProcess(t, "work", flag, "--listen=127.0.0.1:0", "--data-dir="+t.TempDir())
	w.watched()
	if w.logs.await(heldDay, w.ended) == nil {
		t.Fatalf("the log does not say that work waits:\n%s", w.logs)
	}
	_, metrics := read(t, w.address+"/metrics")
	says(t, metrics, "\npartnerapi_clock_held{reason=\"day\"} 1\n", "\npartnerapi_clock_held{reason=\"step\"} 0\n")
	w.finish()
	if f := examined(t, 0, flag, "--data-dir="+t.TempDir())["date"]; f.Status != "warn" || !strings.Contains(f.Remedy, "--accept-clock") {
		t.Errorf("doctor: %+v", f)
	}
	if strings.Contains(w.logs.String(), "daily refresh done") {
		t.Errorf("the daily refresh was done:\n%s", w.logs)
	}

	r := serving(t, flag, "--accept-clock")
	if r.logs.await(refreshed, r.ended) == nil || !acceptedClock.MatchString(r.logs.String()) {
		t.Fatalf("the refresh of an accepted day was not done:\n%s", r.logs)
	}
	r.finish()
	if audit := must(t, "audit", flag, "--key=command"); strings.Count(audit, "accept_clock") != 1 {
		t.Errorf("the audit trail:\n%s", audit)
	}
}

var watchedAt = regexp.MustCompile(`msg="serving health and metrics" address=(\S+)`)

// read returns the status and the body of a page.
func read(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// watched waits until a process that only works serves its health and figures, and notes where.
func (r *running) watched() {
	r.t.Helper()
	found := r.logs.await(watchedAt, r.ended)
	if found == nil {
		r.t.Fatalf("nothing is served:\n%s", r.logs)
	}
	r.address = "http://" + found[1]
}

// TestWorkIsWatched asks a process that only works for its health and figures.
func TestWorkIsWatched(t *testing.T) {
	t.Parallel()
	r := inProcess(t, "work", demonstration(t), "--listen=127.0.0.1:0", "--workers=1", "--connections=6", "--data-dir="+t.TempDir())
	r.watched()
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := read(t, r.address+path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, metrics := read(t, r.address+"/metrics")
	says(t, metrics, "\npartnerapi_build_info{go_version=\"go1", "\npartnerapi_database_connections_max 6\n", "\npartnerapi_database_up 1\n",
		"\npartnerapi_mails{kind=\"mail\",state=\"waiting\"} ", "\nprocess_resident_memory_bytes ")
	r.finish()
}

// TestConnections wants two processes with default flags to stay below
// PostgreSQL's default, and one that never could to be told so.
func TestConnections(t *testing.T) {
	t.Parallel()
	line := parses(t, "serve")
	const byDefault, reserved = 100, 3
	if n := 2 * line.Serve.ConnectionsNeeded(true, false); n > byDefault-reserved {
		t.Errorf("two processes need %d connections", n)
	}
	if n := line.Serve.ConnectionsNeeded(true, true); n != 9 {
		t.Errorf("beside a pooler a process needs %d connections", n)
	}

	flag := databaseFlag(t)
	refused(t, 1, []string{"serve", flag, "--listen=127.0.0.1:0", "--workers=1000", "--connections=1000"}, "1009 connections", "max_connections")
	refused(t, 1, []string{"work", flag, "--workers=1000", "--connections=1000"}, "1009 connections", "max_connections")
	refused(t, 2, []string{"serve", flag, "--connections=1"}, "--connections")
}

// TestBackgroundPanics: a panic in what is done again and again ends neither the
// process nor the loop, and the log has its stack.
func TestBackgroundPanics(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, loop := range map[string]func(*background, context.Context){
		"refresh daily": (*background).refreshDaily, "assign courses": (*background).assignWaiting,
		"note overdue assignments": (*background).recordOverdue, "care for partners that moved": (*background).cleanUpMoved,
		"compute keys of email addresses": (*background).settleEmails,
		"compute keys of users":           (*background).settleUsers,
	} {
		var lines strings.Builder
		w := &background{log: slog.New(slog.NewTextHandler(&lines, nil))} // without a database
		loop(w, ctx)
		if !strings.Contains(lines.String(), name) || !strings.Contains(lines.String(), "stack=") {
			t.Errorf("%s: %s", name, &lines)
		}
	}
}

// TestBesidePanics: what runs beside the requests begins again after a panic.
func TestBesidePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		s := &service{log: slog.New(slog.NewTextHandler(&lines, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		s.runInBackground(ctx, "count", func(ctx context.Context) {
			if runs++; runs == 1 {
				panic("planted")
			}
			cancel()
			<-ctx.Done()
		})
		s.group.Wait()
		if runs != 2 || !strings.Contains(lines.String(), "planted") {
			t.Errorf("%d runs, %s", runs, &lines)
		}
	})
}
