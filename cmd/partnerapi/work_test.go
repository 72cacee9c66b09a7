package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/cmd/internal/figures"
	"partnerapi/db/doctor"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
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

// TestFiguresAreCountedNowAndThen scrapes at once, later, and without a database.
func TestFiguresAreCountedNowAndThen(t *testing.T) {
	t.Parallel()
	now, counts := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC), 0
	var away error
	var standby pg.ReplicaState
	var replicated bool
	registry := figures.NewRegistry(version, figures.Sources{
		Clock:     func() time.Time { return now },
		PoolStats: func() pg.Stats { return pg.Stats{InUse: 3, Idle: 4, Max: 20} },
		Figures: func(context.Context, time.Duration) (doctor.Figures, error) {
			counts++
			return doctor.Figures{
				Mail: outbox.MailBacklog{Waiting: 2, Oldest: now.Add(-time.Minute)}, Simulated: outbox.MailBacklog{Failed: counts},
				Jobs: []doctor.JobFigure{
					{Kind: "report", State: "available", N: 3, Since: now.Add(-time.Second)},
					{Kind: "report", State: "discarded", N: 4},
				},
				Leader:      true,
				Syncs:       []doctor.DirectoryFigure{{Provider: domain.Google, Status: domain.SyncRunning, N: 5}, {Status: domain.SyncQueued, N: 1}},
				OldestSync:  now.Add(-time.Hour),
				Directories: []doctor.DirectoryFigure{{Provider: domain.Google, Status: domain.SyncFailed, N: 6}, {Provider: domain.Microsoft, N: 7}},
				Reports:     8, OldestReport: now.Add(-time.Second), Events: 9, Published: 10,
			}, away
		},
		Replica: func() (pg.ReplicaState, bool) { return standby, replicated },
	})
	value := func(name string, labels ...string) float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				var got []string
				for _, label := range m.GetLabel() {
					got = append(got, label.GetValue())
				}
				if family.GetName() == "partnerapi_"+name && strings.Join(got, " ") == strings.Join(labels, " ") {
					return m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return -1
	}
	want := func(want float64, name string, labels ...string) {
		t.Helper()
		if got := value(name, labels...); got != want {
			t.Errorf("%s %v is %v, want %v", name, labels, got, want)
		}
	}
	want(1, "mails", "simulation", "failed")
	want(3, "database_connections", "in_use")
	want(2, "mails", "mail", "waiting")
	want(1, "mails", "simulation", "failed")
	want(60, "mail_oldest_seconds", "mail")
	want(0, "mail_oldest_seconds", "simulation")
	want(3, "jobs", "report", "available")
	want(4, "jobs", "report", "discarded")
	want(0, "jobs", "report", "running")
	want(0, "jobs", "report_care", "discarded")
	want(1, "job_oldest_seconds", "report")
	want(0, "job_oldest_seconds", "report_care")
	want(1, "job_leader")
	want(5, "syncs", "google", "running")
	want(1, "syncs", "none", "queued")
	want(0, "syncs", "microsoft", "queued")
	want(3600, "sync_oldest_seconds")
	want(6, "directory_connections", "google", "failing")
	want(7, "directory_connections", "microsoft", "new")
	want(0, "directory_connections", "microsoft", "working")
	want(8, "reports_waiting")
	want(1, "report_oldest_seconds")
	want(9, "events_waiting")
	want(0, "event_oldest_seconds")
	want(10, "events_published_total")
	now = now.Add(figures.Age)
	want(2, "mails", "simulation", "failed")
	want(1, "database_up")

	want(-1, "replica_used")
	replicated = true
	want(0, "replica_used")
	want(math.Inf(1), "replica_lag_seconds")
	standby = pg.ReplicaState{Fault: errors.New("behind"), AsOf: now.Add(-time.Minute)}
	want(0, "replica_used")
	want(60, "replica_lag_seconds")
	standby.Used = true
	want(1, "replica_used")
	want(0, "replica_lag_seconds")

	now, away = now.Add(figures.Age), errors.New("away")
	want(0, "database_up")
	want(-1, "mails", "simulation", "failed")
	want(20, "database_connections_max")
}

// TestConnections wants two processes with default flags to stay below
// PostgreSQL's default, and one that never could to be told so.
func TestConnections(t *testing.T) {
	t.Parallel()
	line := commands{Plugins: pluginCommands()}
	parser, err := newParser(t.Context(), &line, environment(nil, io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve"}); err != nil {
		t.Fatal(err)
	}
	const byDefault, reserved = 100, 3
	if n := 2 * line.Serve.Needs(true, pg.NoPooler); n > byDefault-reserved {
		t.Errorf("two processes need %d connections", n)
	}
	if n := line.Serve.Needs(true, pg.TransactionPooler); n != 9 {
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
		"note overdue assignments": (*background).noteOverdue, "care for partners that moved": (*background).careForMoved,
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
		s.beside(ctx, "count", func(ctx context.Context) {
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
