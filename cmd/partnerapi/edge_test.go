package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/output"
	"partnerapi/v2/op"
)

// plainCaller sends requests whose answers nothing checks.
func plainCaller(t *testing.T, address string) caller {
	return caller{t: t, address: address, transport: &http.Transport{DisableKeepAlives: true}}
}

// TestHeadOfOperatorPages asks for those that need no key.
func TestHeadOfOperatorPages(t *testing.T) {
	r := serving(t, databaseFlag(t))
	paths := []string{"/healthz", "/readyz", "/metrics", "/v2/openapi.yaml", "/v2/openapi.json"}
	if older() {
		paths = append(paths, "/v1/openapi.yaml")
	}
	for _, path := range paths {
		if got := r.do("HEAD", path, "", nil).want(http.StatusOK); len(got.body) > 0 {
			t.Errorf("HEAD %s has a body: %s", path, got.body)
		}
	}
}

// TestCompressedAnswers is what a caller gets who accepts gzip.
func TestCompressedAnswers(t *testing.T) {
	r := serving(t, demonstration(t), "--demo")
	got := plainCaller(t, r.address).do("GET", "/v2/clients", "pk_demo_all", nil, "Accept-Encoding", "gzip")
	if got.status != http.StatusOK || got.header.Get("Content-Encoding") != "gzip" ||
		got.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("answers %d %v", got.status, got.header)
	}
}

// TestDrain: a service that was told to stop says that it is not ready, and
// takes requests until its time is over.
func TestDrain(t *testing.T) {
	flag := databaseFlag(t)
	logs, over := newTranscript(), make(chan time.Time)
	c := serveCmd{config.ServeFlags{Listen: "127.0.0.1:0", Drain: time.Hour, Release: op.V2_0}}
	ctx, told := context.WithCancel(t.Context())
	defer told()
	store, err := c.OpenStore(ctx, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.build(ctx, opened(t, flag), "http://localhost", resources{store: store}, output.NewLog(logs, slog.LevelInfo, "text"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.after = func(d time.Duration) <-chan time.Time {
		if d != time.Hour {
			t.Errorf("waits %v", d)
		}
		return over
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, told, listener) }()

	call := plainCaller(t, "http://"+listener.Addr().String())
	call.do("GET", "/readyz", "", nil).want(http.StatusOK)
	told()
	if logs.await(regexp.MustCompile("requests are taken for a while"), nil) == nil {
		t.Fatalf("it does not say that it stops:\n%s", logs)
	}
	call.do("GET", "/readyz", "", nil).want(http.StatusServiceUnavailable)
	call.do("GET", "/healthz", "", nil).want(http.StatusOK)
	call.do("GET", "/v2/clients", "", nil).want(http.StatusUnauthorized)
	over <- time.Now()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := call.try("GET", "/healthz", "", nil); err == nil {
		t.Error("it still listens")
	}
}

// TestMetricsListen: the metrics are where nobody but the operator looks.
func TestMetricsListen(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	args := []string{"serve", "--listen=127.0.0.1:0", "--metrics-listen=" + taken, databaseFlag(t)}
	refused(t, 1, args, taken, "--metrics-listen")

	r := serving(t, databaseFlag(t), "--metrics-listen=127.0.0.1:0")
	r.get("/metrics", "").want(http.StatusNotFound)
	found := r.logs.await(regexp.MustCompile("address of their own.* address=(.*)"), r.ended)
	if found == nil {
		t.Fatalf("it does not say where the metrics are:\n%s", r.logs)
	}
	own := plainCaller(t, "http://"+found[1])
	got := own.do("GET", "/metrics", "", nil).want(http.StatusOK)
	if !strings.Contains(string(got.body), "process_resident_memory_bytes") {
		t.Errorf("the metrics are %s", got.body)
	}
	own.do("HEAD", "/metrics", "", nil).want(http.StatusOK)
	own.do("GET", "/v2/clients", "", nil).want(http.StatusNotFound)
	r.finish()
	if _, err := own.try("GET", "/metrics", "", nil); err == nil {
		t.Error("the metrics outlive the service")
	}
}

// TestMetricsAmongOthers: where others can reach the API, they do not see the
// metrics.
func TestMetricsAmongOthers(t *testing.T) {
	r := serving(t, databaseFlag(t), "--listen=0.0.0.0:0")
	r.get("/metrics", "").want(http.StatusNotFound)
	if !strings.Contains(r.logs.String(), "--metrics-listen") {
		t.Errorf("the log says nothing of it:\n%s", r.logs)
	}
	for listen, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "example.com:1": false, "": false,
	} {
		if got := cli.OnLoopback(listen); got != want {
			t.Errorf("%q is on loopback: %v", listen, got)
		}
	}
}

// TestLogFormat has every line be JSON.
func TestLogFormat(t *testing.T) {
	r := serving(t, demonstration(t), "--demo", "--log-format=json")
	r.do("GET", "/v2/clients", "pk_demo_all", nil, "User-Agent", "tests/1").want(http.StatusOK)
	r.finish()
	found := false
	for line := range strings.Lines(r.logs.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if fields["msg"] == "request" && fields["operation"] == "clients.list" {
			found = fields["address"] == "127.0.0.1" && fields["user_agent"] == "tests/1" && fields["key"] == "pk_demo_all"
		}
	}
	if !found {
		t.Errorf("the request is not logged:\n%s", r.logs)
	}
	refused(t, 2, []string{"serve", "--log-format=xml"}, "log-format")
	refused(t, 2, []string{"serve", "--drain=-1s"}, "--drain")
}

// TestReplayAfterReachIsLost: a key that has lost a client is not told what it
// did there.
func TestReplayAfterReachIsLost(t *testing.T) {
	flag := demonstration(t)
	r := serving(t, flag, "--demo", "--release=latest")
	page := into[struct{ Data []struct{ ID string } }](r.get("/v2/clients?limit=1", "pk_demo_subset").want(http.StatusOK))
	path := "/v2/clients/" + page.Data[0].ID + "/collections"
	post := func() response {
		return r.do("POST", path, "pk_demo_subset", fields{"name": "New"}, "Idempotency-Key", "k")
	}
	first := post().want(http.StatusCreated)
	again := post().want(http.StatusCreated)
	at := path + "/" + into[struct{ ID string }](first).ID
	if first.header.Get("Location") != at || again.header.Get("Location") != at ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("answers %v, then %v", first.header, again.header)
	}
	if _, err := opened(t, flag).SQL().ExecContext(t.Context(), `DELETE FROM api_key_clients USING api_keys AS k
		WHERE k.id = key_id AND k.prefix = 'pk_demo_subset'`); err != nil {
		t.Fatal(err)
	}
	post().want(http.StatusNotFound)
}
