package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

// TestHealth kills the database under a service, and brings it back.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	flag := "--database-url=" + server.URL()
	must(t, "migrate", flag)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=x", "--clients=all", "--scopes=read")
	r := serving(t, flag)
	r.get("/readyz", "").want(http.StatusOK)
	r.get("/v2/clients", key).want(http.StatusOK) // the key is remembered from here on

	server.Kill()
	// The server's processes see one after the other that it is gone.
	for deadline := time.Now().Add(patience); r.get("/readyz", "").status != http.StatusServiceUnavailable; {
		if time.Now().After(deadline) {
			t.Fatal("still ready, without a database")
		}
	}
	r.get("/healthz", "").want(http.StatusOK)
	if away := r.get("/v2/clients", key).want(http.StatusServiceUnavailable); away.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}

	server.Start()
	// Each connection that broke is noticed by a request, and new ones are made.
	for deadline := time.Now().Add(patience); r.get("/readyz", "").status != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("not ready again, with a database")
		}
	}
	r.get("/v2/clients", key).want(http.StatusOK)
	r.finish()
}

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
	for _, line := range []string{
		`partnerapi_requests_total{operation="clients.list",status="200",version="v2"} 3`,
		`partnerapi_requests_total{operation="clients.list",status="401",version="v2"} 2`,
		`partnerapi_request_seconds_count{operation="clients.create",version="v2"} 2`,
		`partnerapi_key_requests_total{key="` + prefix(key) + `",version="v2"} `,
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("the metrics have no %s:\n%s", line, metrics)
		}
	}
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
