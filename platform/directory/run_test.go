package directory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory"
)

func TestGuard(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(25)...)
		w.connect(w.client, s)
		w.sync()
		full := w.users()

		for i, a := range people(25)[1:7] { // 24 %, half of them disabled
			if a.Disabled = i%2 == 0; a.Disabled {
				s.Put(a)
			} else {
				s.Remove(a.ID)
			}
		}
		for range 2 {
			run := w.try(false)
			if run.Status != domain.SyncFailed || !strings.Contains(*run.Error, "deactivate 6 of the directory's 25") ||
				!strings.Contains(*run.Error, "directory run "+w.client.String()+" --force") {
				t.Fatalf("the run is %+v", run)
			}
			wantCounts(t, run, domain.SyncCounts{})
			w.wantUsers(full...)
		}
		if n := w.Number("SELECT count(*) FROM events WHERE type = 'sync.failed'"); n != 2 {
			t.Errorf("%d events of failed runs", n)
		}
		run := w.try(true)
		wantCounts(t, run, domain.SyncCounts{Deactivated: 6, Unchanged: 19})
		w.check()

		s.Remove("id-010", "id-011", "id-012", "id-013", "id-014") // 26 %, but few
		wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 5, Unchanged: 14})
	}
}

// TestDeaths: a run whose processes die again and again fails after three deaths
// without progress between them; a process that stops gives the run back, which is none.
func TestDeaths(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Google, people(5)...)
	w.connect(w.client, s)
	lease, err := dirsync.Start(context.Background(), w.DB, w.client, false, time.Minute)
	w.must(err)
	die := func(want int) {
		t.Helper()
		w.everyLeaseEnds()
		if lease = w.claim(); lease.Deaths != want {
			t.Errorf("%d deaths, want %d", lease.Deaths, want)
		}
	}
	die(1)
	die(2)
	w.must(dirsync.Release(context.Background(), w.DB, lease)) // a clean stop
	lease = w.claim()
	stopping, stop := context.WithCancel(context.Background())
	if _, err = w.runner.Work(stopping, lease, func(int, int) { stop() }); !errors.Is(err, context.Canceled) {
		t.Errorf("after progress: %v", err)
	}
	lease = w.claim()
	for death := 1; death <= 3; death++ {
		die(death)
	}
	run, err := w.runner.Work(context.Background(), lease, nil)
	w.must(err)
	if run.Status != domain.SyncFailed || !strings.HasPrefix(*run.Error, "three processes in a row ended") {
		t.Errorf("the run is %+v", run)
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 5})
}

// TestLeaseLost: who has lost the lease changes nothing any more.
func TestLeaseLost(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft, people(3)...)
	w.connect(w.client, s)
	slow, err := dirsync.Start(context.Background(), w.DB, w.client, false, time.Minute)
	w.must(err)
	s.before = func(_ context.Context, position string) error {
		if position != "" {
			s.before = nil
			w.everyLeaseEnds()
			run, err := w.newRunner(directory.Observer{}).Work(context.Background(), w.claim(), nil)
			w.must(err)
			wantCounts(t, run, domain.SyncCounts{Created: 3})
		}
		return nil
	}
	if _, err := w.runner.Work(context.Background(), slow, nil); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the slow one: %v", err)
	}
	for name, step := range map[string]func() error{
		"extend": func() error { return dirsync.Extend(context.Background(), w.DB, slow) },
		"stage":  func() error { return dirsync.StagePage(context.Background(), w.DB, slow, dirsync.Page{}) },
		"judge":  func() error { _, err := dirsync.Check(context.Background(), w.DB, slow); return err },
		"apply":  func() error { _, err := dirsync.Apply(context.Background(), w.DB, slow, dirsync.BatchSize); return err },
		"finish": func() error { _, err := dirsync.Finish(context.Background(), w.DB, slow); return err },
		"fail":   func() error { _, err := dirsync.Fail(context.Background(), w.DB, slow, ""); return err },
	} {
		if err := step(); !errors.Is(err, db.ErrLeaseLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.check()
}

// TestLeaseIsExtended: a run that waits for its directory keeps its lease, and
// fails after half an hour.
func TestLeaseIsExtended(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft, people(3)...)
	w.connect(w.client, s)
	ticks := make(chan time.Time)
	w.runner.SetBeat(ticks)
	var hung context.Context
	s.before = func(ctx context.Context, _ string) error {
		hung = ctx
		for range 35 {
			w.Clock.Advance(50 * time.Second)
			ticks <- time.Time{}
			ticks <- time.Time{} // the first was dealt with
			if lease, err := dirsync.Claim(context.Background(), w.DB, time.Minute); err != nil || lease != nil {
				t.Errorf("the run is claimed by another: %v", err)
			}
		}
		w.Clock.Advance(50 * time.Second)
		ticks <- time.Time{}
		<-ctx.Done()
		return ctx.Err()
	}
	run := w.try(false)
	if run.Status != domain.SyncFailed || !strings.HasPrefix(*run.Error, "no progress for 30 minutes") {
		t.Errorf("the run is %+v", run)
	}
	if hung.Err() == nil {
		t.Error("the source is not told")
	}
}

// TestFailures: what a directory answers instead of a page, or that reading it panics.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft, people(3)...)
	w.connect(w.client, s)
	waits := 0
	w.runner.SetWait(func(_ context.Context, pause time.Duration) error {
		waits++
		w.Clock.Advance(pause)
		return nil
	})

	fail := func(err error) { s.before = func(context.Context, string) error { return err } }
	fail(errors.New("the app may not read users: grant it User.Read.All"))
	run := w.try(false)
	if run.Status != domain.SyncFailed || *run.Error != "the app may not read users: grant it User.Read.All" {
		t.Errorf("a permanent error: %+v", run)
	}

	fail(&directory.Temporary{Cause: errors.New("connection reset")})
	run = w.try(false)
	if run.Status != domain.SyncFailed || *run.Error != "no progress for 30 minutes: connection reset" || waits < 30 {
		t.Errorf("an outage: %+v after %d tries", run, waits)
	}

	fails := 3
	s.before = func(_ context.Context, position string) error {
		if fails--; position != "" && fails > 0 {
			return &directory.Temporary{Cause: errors.New("cut")}
		}
		return nil
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 3})

	s.before = func(context.Context, string) error { panic("planted") }
	if run = w.try(false); run.Status != domain.SyncFailed || *run.Error != domain.ErrPanicked.Error() {
		t.Errorf("a panic: %+v", run)
	}
	fail(directory.ErrStartOver)
	if run = w.try(false); run.Status != domain.SyncFailed || *run.Error != directory.ErrStartOver.Error() {
		t.Errorf("a directory that forgets all: %+v", run)
	}
	s.before = func(_ context.Context, position string) error {
		if position != "" {
			s.before = nil
			return directory.ErrStartOver
		}
		return nil
	}
	s.Remove("id-002") // which a reading of everything does not name
	wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 1, Unchanged: 2})

	w.Exec("UPDATE directory_connections SET credentials = 'x'")
	if run = w.try(false); !strings.Contains(*run.Error, "--encryption-key") {
		t.Errorf("credentials that cannot be opened: %+v", run)
	}
	w.check()
}

func TestSchedule(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft, people(1)...)
	var clients []domain.ClientID
	for i := range 40 {
		id := w.AddClient(w.tenant, fmt.Sprint("Scheduled ", i)).ID
		w.connect(id, s)
		clients = append(clients, id)
	}
	schedule := func() int {
		n, err := dirsync.Schedule(context.Background(), w.DB)
		w.must(err)
		return n
	}
	if n := schedule(); n != 0 {
		t.Errorf("connecting starts %d runs", n)
	}
	spread := 0
	for hour := range 12 {
		w.Clock.Advance(time.Hour)
		if n := schedule(); n > 0 {
			spread++
		}
		if schedule() != 0 {
			t.Error("a turn comes twice")
		}
		want := min(40, w.Number("SELECT count(*) FROM sync_runs WHERE trigger = 'schedule'"))
		if hour == 5 && want != 40 {
			t.Errorf("%d runs after six hours", want)
		}
	}
	if n := w.Number("SELECT count(*) FROM sync_runs"); n != 40 {
		t.Errorf("%d runs, though none has ended", n)
	}
	if spread < 10 {
		t.Errorf("the clients' turns come in %d of 12 hours", spread)
	}
	for range clients {
		run, err := w.runner.Work(context.Background(), w.claim(), nil)
		w.must(err)
		if run.Trigger != domain.SyncBySchedule || run.Created != 1 {
			t.Errorf("the run is %+v", run)
		}
	}
	if lease, err := dirsync.Claim(context.Background(), w.DB, time.Minute); lease != nil || err != nil {
		t.Errorf("a run is left: %v", err)
	}
	w.Clock.Advance(7 * time.Hour)
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", clients[0])
	w.CountClients()
	if n := schedule(); n != 39 {
		t.Errorf("%d clients' turns come after all runs ended", n)
	}
}

// TestRun: a process queues what is due and works on it, and two of them do nothing
// twice.
func TestRun(t *testing.T) {
	w := newWorld(t)
	const clients = 7
	for i := range clients {
		provider := []domain.Directory{domain.Microsoft, domain.Google}[i%2]
		w.connect(w.AddClient(w.tenant, fmt.Sprint("Worked on ", i)).ID, serve(t, provider, people(20)...))
	}
	w.Clock.Advance(domain.SyncEvery)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var ended atomic.Int32
	done := make(chan error)
	for range 2 {
		r := w.newRunner(directory.Observer{Ended: func(domain.Directory, directory.Outcome, time.Duration) {
			if ended.Add(1) == clients {
				stop()
			}
		}})
		go func() { done <- r.Run(ctx) }()
	}
	for range 2 {
		w.must(<-done)
	}
	if runs, users := w.Number("SELECT count(*) FROM sync_runs"), w.Number("SELECT count(*) FROM users"); runs != clients || users != 20*clients {
		t.Errorf("%d runs, %d users", runs, users)
	}
	w.check()
}

func TestDisconnect(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Google, people(1200)...)
	s.SetPageSize(500)
	w.connect(w.client, s)
	w.sync()
	shows := func(want any) {
		t.Helper()
		r := w.Get("/v2/clients/"+w.client.String(), w.tenant.Key).Want(200)
		if got := r.Field("features.directory_sync"); got != want {
			t.Errorf("the client shows %v", got)
		}
	}
	shows("microsoft")
	lease, err := dirsync.Start(context.Background(), w.DB, w.client, false, time.Minute)
	w.must(err)
	w.must(dirsync.Disconnect(context.Background(), w.DB, w.client))
	shows(nil)
	if _, err := w.runner.Work(context.Background(), lease, nil); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the open run: %v", err)
	}
	if n := w.Number("SELECT count(*) FROM users WHERE source = 'manual' AND status = 'active'"); n != 1200 {
		t.Errorf("%d users are kept by hand", n)
	}
	if err := dirsync.Disconnect(context.Background(), w.DB, w.client); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("again: %v", err)
	}
	if _, err := w.runner.Start(context.Background(), w.client, false, nil); !domain.IsCode(err, domain.Conflict) {
		t.Errorf("a run without a directory: %v", err)
	}
	w.check()

	w.connect(w.client, s)
	wantCounts(t, w.sync(), domain.SyncCounts{Merged: 1200})
}

// TestConnectRefused: an archived client is not found, whether or not it has a directory; a client that has another
// directory is a conflict.
func TestConnectRefused(t *testing.T) {
	w := newWorld(t)
	connect := func(provider domain.Directory) error {
		return dirsync.Connect(t.Context(), w.DB, w.client, provider, []byte("{}"), []byte("sealed"))
	}
	want := func(code domain.Code) {
		t.Helper()
		if err := connect(domain.Google); !domain.IsCode(err, code) {
			t.Errorf("answers %v, not %s", err, code)
		}
	}
	archive := func(archived bool) {
		w.Exec("UPDATE clients SET archived_at = CASE WHEN $2 THEN now() END WHERE id = $1", w.client, archived)
	}
	archive(true)
	want(domain.NotFound)

	archive(false)
	w.must(connect(domain.Microsoft))
	want(domain.Conflict)
	archive(true)
	want(domain.NotFound)
}

// TestOtherSettings: a run that is in progress while the settings are changed neither
// goes on nor leaves its position to the next one.
func TestOtherSettings(t *testing.T) {
	w := newWorld(t)
	before, after := office(t, domain.Microsoft), serve(t, domain.Microsoft, ada)
	w.connect(w.client, before)
	w.sources["other"] = after
	before.before = func(_ context.Context, position string) error {
		if position == "" {
			return nil
		}
		sealed, err := w.Keys.Seal([]byte("secret"), directory.SealContext(w.client))
		w.must(err)
		return dirsync.Connect(context.Background(), w.DB, w.client, domain.Microsoft, []byte(`{"domain": "other"}`), sealed)
	}
	if _, err := w.runner.Start(context.Background(), w.client, false, nil); !errors.Is(err, db.ErrLeaseLost) {
		t.Fatalf("the run under way ends with %v", err)
	}
	w.wantUsers()

	after.before = func(_ context.Context, position string) error {
		if position != "" {
			t.Errorf("the run reads from %q on", position)
		}
		return nil
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1})
	w.wantUsers(adaLine(domain.Microsoft))
	w.check()
}

// TestStatements: a batch takes the same number of statements whatever its size.
func TestStatements(t *testing.T) {
	counts := map[int]int{}
	for _, n := range []int{3, 450} {
		w, s := newWorld(t), serve(t, domain.Google, people(n)...)
		s.SetPageSize(500)
		w.connect(w.client, s)
		counts[n] = w.Statements.During(func() { wantCounts(t, w.sync(), domain.SyncCounts{Created: n}) })
	}
	if counts[3] != counts[450] {
		t.Errorf("statements by accounts: %v", counts)
	}
}
