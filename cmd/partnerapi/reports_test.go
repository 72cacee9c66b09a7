package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
)

// TestMakeReport makes reports by the command, and is told what is wrong.
func TestMakeReport(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	var id domain.ClientID
	var name string
	if err := d.SQL().QueryRow("SELECT id, name FROM clients ORDER BY created_at, id LIMIT 1").Scan(&id, &name); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for format, magic := range map[string]string{"pdf": "%PDF-", "xlsx": "PK"} {
		for which, client := range map[string]string{"id": id.String(), "uuid": strings.ToUpper(id.UUID()), "name": strings.ToUpper(name)} {
			file := filepath.Join(dir, which+"."+format)
			r := command(t, "reports", "make", flag, client, "executive_summary", "--format="+format, "--out="+file)
			if r.code != 0 || !strings.Contains(r.out, file) || !strings.Contains(r.err, "making executive_summary of "+name) {
				t.Fatalf("by its %s: %+v", which, r)
			}
			if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), magic) {
				t.Errorf("the file is %.20q, %v", text, err)
			}
		}
	}

	// Without a format, the file's name says it.
	for file, magic := range map[string]string{"a.XLSX": "PK", "a.pdf": "%PDF-", "a": "%PDF-"} {
		file = filepath.Join(dir, file)
		if r := command(t, "reports", "make", flag, name, "policy", "--out="+file); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), magic) {
			t.Errorf("%s is %.20q, %v", file, text, err)
		}
	}

	out := "--out=" + filepath.Join(dir, "refused")
	make := func(more ...string) []string { return append([]string{"reports", "make", flag, out}, more...) }
	refused(t, 2, make(name, "poem"), `there is no report "poem"`, "executive_summary", "global_health_report")
	refused(t, 2, make(name, "dark_web", "--format=doc"), "pdf")
	refused(t, 2, make(name, "dark_web", "--start=2026-01-01"), "--start and --end go together")
	refused(t, 2, make(name, "dark_web", "--start=2026-01-01", "--end=today"), "--end must be a date, such as 2026-01-31")
	refused(t, 1, make(name, "dark_web", "--start=2026-01-02", "--end=2026-01-01"), "--start must not be after --end")
	refused(t, 1, make(name, "dark_web", "--start=2024-01-01", "--end=2026-01-01"), "at most 366 days")
	refused(t, 1, make(name, "dark_web", "--start=2999-01-01", "--end=2999-01-01"), "must not be in the future")
	refused(t, 1, make(name, "policy", "--start=2026-01-01", "--end=2026-01-01"), "the period is not taken by a report of this type")
	refused(t, 1, make("Nobody & Sons", "policy"), `there is no client "Nobody & Sons"`, "name one by its id")
	refused(t, 1, make("cli_01h455vb4pex5vsknk084sn02q", "policy"), `there is no client "cli_01h455vb4pex5vsknk084sn02q"`)
	refused(t, 1, []string{"reports", "make", flag, name, "policy", "--out=" + filepath.Join(dir, "no", "where")}, "no such file or directory")
	if _, err := d.SQL().Exec("UPDATE clients SET dark_web_monitoring = false"); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, make(name, "dark_web"), "has no Dark Web Monitoring")
	if _, err := d.SQL().Exec(`UPDATE clients SET name_key = $1 WHERE id =
		(SELECT id FROM clients WHERE partner_id <> (SELECT partner_id FROM clients WHERE id = $2) LIMIT 1)`, domain.SortKey(name), id); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, make(name, "policy"), "2 clients are called", id.String())
	if _, err := d.SQL().Exec("UPDATE clients SET archived_at = now()"); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, make(id.String(), "policy"), "or it was archived")
	if left, _ := filepath.Glob(filepath.Join(dir, "refused*")); len(left) > 0 {
		t.Errorf("refused commands left %v", left)
	}
}

// TestBadReportStore: an address of no store is told before anything is opened.
func TestBadReportStore(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{{"serve"}, {"work"}} {
		refused(t, 2, append(line, "--report-store=ftp://host/folder"), "--report-store", "use file:///path, s3://bucket")
		refused(t, 2, append(line, "--report-store=s3://"), "--report-store", "names no bucket")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, []string{"serve", databaseFlag(t), "--listen=127.0.0.1:0", "--report-store=file://" + file}, "--report-store", "is not a directory")
}

// reporting makes reports until the test ends, and tells how each try ended.
func reporting(t *testing.T, d *db.DB, store *report.Store) <-chan report.Outcome {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	tried := make(chan report.Outcome, 100)
	worker := report.NewWorker(d, store, report.NewRenderer(report.Options{}), log, report.Observer{
		Tried: func(outcome report.Outcome, _ time.Duration) { tried <- outcome },
	})
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	return tried
}

// awaitReports returns when no report is pending any more.
func awaitReports(t *testing.T, d *db.DB, tried <-chan report.Outcome) {
	t.Helper()
	enough := time.After(patience)
	for {
		pending, err := reports.PendingReports(t.Context(), d, d.Now(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(pending) == 0 {
			return
		}
		select {
		case <-tried:
		case <-enough:
			t.Fatal("reports are pending")
		}
	}
}

// TestReportsAreMade: the background work makes the demonstration's reports, and those
// of a process that was killed, each once.
func TestReportsAreMade(t *testing.T) {
	t.Parallel()
	d := opened(t, demonstration(t))
	folder := filepath.Join(t.TempDir(), "reports")
	store, err := report.OpenStore(t.Context(), "", folder, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("of the demonstration", func(t *testing.T) {
		awaitReports(t, d, reporting(t, d, store))
	})

	// The process was killed three minutes ago, before it marked the report.
	for _, sql := range []string{
		"UPDATE reports SET status = 'pending' WHERE status = 'ready' AND type = 'risk_overview'",
		"DELETE FROM events WHERE type = 'report.ready'",
		"UPDATE reports SET lease = gen_random_uuid(), tries = 0, due_at = now() - interval '1 minute' WHERE status = 'pending'",
	} {
		if _, err := d.SQL().Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("of a killed process", func(t *testing.T) {
		awaitReports(t, d, reporting(t, d, store))
	})
	for query, want := range map[string]int{
		"SELECT count(*) FROM reports WHERE status = 'ready'":     4,
		"SELECT count(*) FROM events WHERE type = 'report.ready'": 1,
		"SELECT count(*) FROM reports WHERE tries = 1":            1,
	} {
		var got int
		if err := d.SQL().QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, not %d: %v", query, got, want, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*", "*")); len(files) != 4 {
		t.Errorf("the files are %v", files)
	}
}

// TestOneClock: leases of reports and of periodic jobs go by the database's clock,
// whatever the machine's says.
func TestOneClock(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(time.Now().Add(-10 * time.Minute))
	d, err := db.Open(dbtest.URL(t, tablesSchema), db.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	partner, err := d.InsertPartner(t.Context(), "Partner")
	if err != nil {
		t.Fatal(err)
	}
	client := db.NewID[domain.ClientKind]()
	fixture.Insert(t, d.SQL(), "clients", fixture.Row{"id": client, "partner_id": partner, "name": "Client", "name_key": "client"})
	fixture.Insert(t, d.SQL(), "reports", fixture.Row{
		"client_id": client, "id": db.NewID[domain.ReportKind](), "type": "policy", "format": "pdf", "status": "pending",
		"created_at": clock.Now(), "updated_at": clock.Now(),
	})
	claim := func(want int) {
		t.Helper()
		reports, err := reports.ClaimReports(t.Context(), d, 2, time.Minute)
		if err != nil || len(reports) != want {
			t.Errorf("%d reports are claimed, %v", len(reports), err)
		}
		periodic, err := d.ClaimPeriodic(t.Context(), db.ReportCare, time.Minute)
		if err != nil || (periodic != nil) != (want > 0) {
			t.Errorf("the periodic job is claimed: %v, %v", periodic != nil, err)
		}
	}
	claim(1)
	clock.Advance(time.Minute - time.Millisecond)
	claim(0)
	clock.Advance(time.Millisecond)
	claim(1)
}

// TestJobsBeginLater: a database that is away when the work on jobs is to begin
// does not end the service, which works on jobs once it is back.
func TestJobsBeginLater(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	flag := "--database-url=" + server.URL()
	must(t, "migrate", flag)
	d := opened(t, flag)
	server.Kill()
	store, err := report.OpenStore(t.Context(), "", t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan struct{})
	var once sync.Once
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("it will be tried again")) {
			once.Do(func() { close(failed) })
		}
		return len(line), nil
	}), nil))
	cared := make(chan error, 10)
	carer := report.NewMaintainer(d, store, log, func(
		ctx context.Context, _ string, _ ...slog.Attr,
	) (context.Context, func(error, ...slog.Attr)) {
		return ctx, func(err error, _ ...slog.Attr) { cared <- err }
	})
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { carer.Run(ctx) })
	defer working.Wait()
	defer stop()
	<-failed
	server.Start()
	if err := <-cared; err != nil { // it is due at the start
		t.Error(err)
	}
}
