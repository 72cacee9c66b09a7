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

	"partnerapi/cmd/internal/output"
)

// plainCaller sends requests whose answers nothing checks.
func plainCaller(t *testing.T, address string) caller {
	return caller{t: t, address: address, transport: &http.Transport{DisableKeepAlives: true}}
}

// TestEdge: what every surface has before its operations, and how it is logged. Where others
// can reach the API, they do not see the metrics.
func TestEdge(t *testing.T) {
	t.Parallel()
	r := serving(t, demonstration(t), "--demo", "--log-format=json", "--listen=0.0.0.0:0")
	if got := must(t, "health", r.address); got != "ready\n" {
		t.Errorf("it says %q", got)
	}
	paths := []string{"/healthz", "/readyz", "/v2/openapi.yaml", "/v2/openapi.json"}
	if older() {
		paths = append(paths, "/v1/openapi.yaml")
	}
	for _, path := range paths {
		if got := r.do("HEAD", path, "", nil).want(http.StatusOK); len(got.body) > 0 {
			t.Errorf("HEAD %s has a body: %s", path, got.body)
		}
	}
	for key, status := range map[string]int{"pk_demo_all": http.StatusOK, "wrong": http.StatusUnauthorized} {
		got := plainCaller(t, r.address).do("GET", "/v2/clients", key, nil, "Accept-Encoding", "gzip", "User-Agent", "tests/1").want(status)
		if compressed := got.header.Get("Content-Encoding") == "gzip"; compressed != (status == http.StatusOK) || got.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("answers %v", got.header)
		}
		if _, err := http.ParseTime(got.header.Get("Date")); err != nil { // which the guide to delta sync builds on
			t.Errorf("an answer of status %d: %v", status, err)
		}
	}
	r.get("/metrics", "").want(http.StatusNotFound)
	r.finish()

	found, told := false, false
	for line := range strings.Lines(r.logs.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if fields["msg"] == "request" && fields["operation"] == "clients.list" {
			found = fields["address"] == "127.0.0.1" && fields["user_agent"] == "tests/1" && fields["key"] == "pk_demo_all"
		}
		told = told || strings.Contains(line, "--metrics-listen")
	}
	if !found || !told {
		t.Errorf("the request is logged: %t, and where metrics are not: %t\n%s", found, told, r.logs)
	}
}

// TestDrain: a service that was told to stop says that it is not ready, and
// takes requests until its time is over.
func TestDrain(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	logs, over := newTranscript(), make(chan time.Time)
	ctx, told := context.WithCancel(t.Context())
	defer told()
	line := parses(t, "serve", "--drain=1h", "--no-work")
	s, err := line.Serve.build(ctx, opened(t, flag), guideBase, resources{}, output.NewLog(logs, slog.LevelInfo, "text"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.after = func(d time.Duration) <-chan time.Time {
		if d != time.Hour {
			t.Errorf("waits %v", d)
		}
		return over
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, told, listener) }()

	call := plainCaller(t, "http://"+listener.Addr().String())
	call.do("GET", "/readyz", "", nil).want(http.StatusOK)
	told()
	if logs.await(regexp.MustCompile("still serving new requests"), nil) == nil {
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
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	flag, taken := databaseFlag(t), other.Addr().String()
	refused(t, 1, []string{"serve", "--listen=127.0.0.1:0", "--metrics-listen=" + taken, flag}, taken, "--metrics-listen")

	r := serving(t, flag, "--metrics-listen=127.0.0.1:0")
	r.get("/metrics", "").want(http.StatusNotFound)
	found := r.logs.await(regexp.MustCompile("serving metrics at a separate address.* address=(.*)"), r.ended)
	if found == nil {
		t.Fatalf("it does not say where the metrics are:\n%s", r.logs)
	}
	own := plainCaller(t, "http://"+found[1])
	text := string(own.do("GET", "/metrics", "", nil).want(http.StatusOK).body)
	if !strings.Contains(text, "process_resident_memory_bytes") || strings.Contains(text, `cell="`) { // it is none
		t.Errorf("the metrics are %s", text)
	}
	own.do("HEAD", "/metrics", "", nil).want(http.StatusOK)
	own.do("GET", "/v2/clients", "", nil).want(http.StatusNotFound)
	r.finish()
	if _, err := own.try("GET", "/metrics", "", nil); err == nil {
		t.Error("the metrics outlive the service")
	}
}
