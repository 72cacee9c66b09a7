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

	"partnerapi/db/pg"
)

var watchedAt = regexp.MustCompile(`msg="health and metrics are served" address=(\S+)`)

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

// TestWorkIsWatched asks a process that only works for its health and figures.
func TestWorkIsWatched(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	ctx, cancel := context.WithCancel(context.Background())
	logs, ended := newTranscript(), make(chan struct{})
	code := 0
	go func() {
		defer close(ended)
		code = run(ctx, []string{"work", flag, "--listen=127.0.0.1:0", "--workers=1", "--connections=6", "--data-dir=" + t.TempDir()}, nil, io.Discard, logs)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	found := logs.await(watchedAt, ended)
	if found == nil {
		t.Fatalf("nothing is served:\n%s", logs)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := read(t, "http://"+found[1]+path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, metrics := read(t, "http://"+found[1]+"/metrics")
	for _, line := range []string{
		`partnerapi_build_info{go_version="go1`, `partnerapi_database_connections_max 6`, `partnerapi_database_up 1`,
		`partnerapi_mails{kind="mail",state="waiting"} `, "process_resident_memory_bytes ",
	} {
		if !strings.Contains(metrics, "\n"+line) {
			t.Errorf("the metrics have no %s:\n%s", line, metrics)
		}
	}
	cancel()
	<-ended
	if code != 0 {
		t.Errorf("exit %d:\n%s", code, logs)
	}
}

// TestConnections wants two processes with default flags to stay below
// PostgreSQL's default, and one that never could to be told so.
func TestConnections(t *testing.T) {
	t.Parallel()
	line := parses(t, "serve")
	const byDefault, reserved = 100, 3
	if n := 2 * line.Serve.ConnectionsNeeded(true, pg.NoPooler); n > byDefault-reserved {
		t.Errorf("two processes need %d connections", n)
	}
	if n := line.Serve.ConnectionsNeeded(true, pg.TransactionPooler); n != 9 {
		t.Errorf("beside a pooler in transaction mode a process needs %d connections", n)
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
