package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/dirsync"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
	"partnerapi/v2/v2test"
)

// world is a service with a client that has a directory.
type world struct {
	*v2test.Harness
	t      testing.TB
	tenant v2test.Partner
	client domain.ClientID
	runner *directory.Runner
	log    *slog.Logger // of new runners
	// sources are the directories by their settings' domain.
	sources map[string]directory.Source
}

func newWorld(t testing.TB) *world {
	w := &world{Harness: v2test.New(t, v2test.Options{Limits: v2test.Unlimited}), t: t, sources: map[string]directory.Source{}, log: slog.New(slog.DiscardHandler)}
	w.tenant = w.AddPartner("Partner")
	w.client = w.AddClient(w.tenant, "Client").ID
	w.runner = w.newRunner(directory.Observer{})
	return w
}

func (w *world) newRunner(observer directory.Observer) *directory.Runner {
	return directory.NewRunner(w.DB, w.Keys, func(
		_ domain.Directory, settings json.RawMessage, credentials []byte,
	) (directory.Source, error) {
		var s directory.GoogleSettings
		if err := json.Unmarshal(settings, &s); err != nil {
			return nil, err
		}
		if string(credentials) != "secret" {
			return nil, fmt.Errorf("the credentials are %q", credentials)
		}
		source := w.sources[s.Domain]
		if served, ok := source.(*served); ok { // a process remembers nothing of those before it
			served.source = served.open()
		}
		return source, nil
	}, w.log, observer)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// connect gives a client a directory.
func (w *world) connect(client domain.ClientID, s directory.Source) {
	w.t.Helper()
	w.sources[client.String()] = s
	sealed, err := w.Keys.Seal([]byte("secret"), directory.SealContext(client))
	w.must(err)
	settings, err := json.Marshal(directory.GoogleSettings{Domain: client.String()})
	w.must(err)
	w.must(dirsync.Connect(context.Background(), w.DB, client, domain.Microsoft, settings, sealed))
}

// sync runs a sync of the client by command, and wants it to complete.
func (w *world) sync() domain.SyncRun {
	w.t.Helper()
	run := w.try(false)
	if run.Status != domain.SyncCompleted {
		w.t.Fatalf("the run is %s: %s", run.Status, *run.Error)
	}
	return run
}

// try is sync for a run that may fail.
func (w *world) try(force bool) domain.SyncRun {
	w.t.Helper()
	run, err := w.runner.Start(context.Background(), w.client, force, nil)
	w.must(err)
	return run
}

// fataler is a test of testing or of rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// syncKilled runs a sync whose process ends after each of the given numbers of steps, pages and batches, and requires it
// to complete. What is left of the sync is claimed by the next process, with a source of its own.
func (w *world) syncKilled(t fataler, kills ...int) domain.SyncRun {
	t.Helper()
	lease, err := dirsync.Start(context.Background(), w.DB, w.client, true /* force */, 0)
	if err != nil {
		t.Fatalf("start a run: %v", err)
	}
	for _, steps := range kills {
		ctx, kill := context.WithCancel(context.Background())
		run, err := w.runner.Work(ctx, lease, func(int, int) {
			if steps--; steps < 0 {
				kill()
			}
		})
		kill()
		switch {
		case err == nil && run.Status == domain.SyncCompleted:
			return run
		case !errors.Is(err, context.Canceled):
			t.Fatalf("the run ended as %+v, %v", run, err)
		}
		lease = w.claim()
	}
	run, err := w.runner.Work(context.Background(), lease, nil)
	if err != nil || run.Status != domain.SyncCompleted {
		t.Fatalf("the run ended as %+v: %s, %v", run, domain.OrZero(run.Error), err)
	}
	return run
}

// syncFailed runs a sync that fails after a number of steps, pages and batches, unless it completes before.
func (w *world) syncFailed(t fataler, steps int) {
	t.Helper()
	lease, err := dirsync.Start(context.Background(), w.DB, w.client, true /* force */, 0)
	if err != nil {
		t.Fatalf("start a run: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	run, err := w.runner.Work(ctx, lease, func(int, int) {
		if steps--; steps < 0 {
			stop()
		}
	})
	if errors.Is(err, context.Canceled) {
		run, err = dirsync.Fail(context.Background(), w.DB, w.claim(), "the database could not be reached")
	} else if err == nil && run.Status != domain.SyncCompleted {
		err = errors.New(domain.OrZero(run.Error))
	}
	if err != nil {
		t.Fatalf("the run ended as %+v, %v", run, err)
	}
}

// users lists the client's users, a line each in the order of their addresses.
func (w *world) users() []string {
	w.t.Helper()
	lines, err := pg.All[string](context.Background(), w.DB, "list users", pg.SQL(`
		SELECT concat_ws('|', u.email, u.first_name, u.last_name, coalesce(u.department, '-'),
			coalesce(u.job_title, '-'), coalesce(u.manager_email, '-'), u.status, u.role, u.preferred_language, u.source, g.name)
		FROM users AS u LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id
		WHERE u.client_id = ? ORDER BY u.email`, w.client))
	w.must(err)
	return lines
}

func (w *world) wantUsers(want ...string) {
	w.t.Helper()
	if got := w.users(); !slices.Equal(got, want) {
		w.t.Fatalf("the users are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantCounts(t testing.TB, run domain.SyncRun, want domain.SyncCounts) {
	t.Helper()
	if run.SyncCounts != want {
		t.Fatalf("the run counts %+v, not %+v", run.SyncCounts, want)
	}
}

// check holds what is kept of users against a recount.
func (w *world) check() {
	w.t.Helper()
	for what, query := range map[string]string{
		"counters of users": `SELECT count(*) FROM clients AS c WHERE (users_active, users_inactive) <> (
			SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status = 'inactive') FROM users WHERE client_id = c.id)`,
		"users without a score": "SELECT count(*) FROM users AS u WHERE NOT EXISTS (SELECT 1 FROM user_risks AS r WHERE r.user_id = u.id)",
		"users without the program": `SELECT count(*) FROM users AS u WHERE (SELECT count(*) FROM assignments AS a WHERE a.user_id = u.id)
			<> (SELECT count(*) FROM program_courses AS p WHERE p.client_id = u.client_id)`,
		"users whose next course is wrong": `SELECT count(*) FROM users AS u WHERE next_due_on IS DISTINCT FROM
			(SELECT min(due_on) FROM assignments AS a WHERE a.user_id = u.id AND completed_at IS NULL)`,
		"staged accounts left": "SELECT count(*) FROM sync_accounts AS s WHERE NOT EXISTS (SELECT 1 FROM sync_runs AS r WHERE r.client_id = s.client_id AND r.status = 'running')",
		"events of creation":   "SELECT abs((SELECT count(*) FROM users) - (SELECT count(*) FROM events WHERE type = 'user.created'))",
	} {
		if n := w.Number(query); n != 0 {
			w.t.Errorf("%s: %d", what, n)
		}
	}
}

// everyLeaseEnds moves the clock past all leases: a process that died held them.
func (w *world) everyLeaseEnds() { w.Clock.Advance(2 * time.Minute) }

// claim takes the run that waits.
func (w *world) claim() *dirsync.Lease {
	w.t.Helper()
	lease, err := dirsync.Claim(context.Background(), w.DB, time.Minute)
	w.must(err)
	if lease == nil {
		w.t.Fatal("no run waits")
	}
	return lease
}

func TestMain(m *testing.M) { dbtest.Main(m) }

// served is a directory that a vendor's server shows: Microsoft's by changes, Google's whole each time.
type served struct {
	*directorytest.Directory
	vendor
	// open connects to the server; source is the connection of the last run.
	open   func() directory.Source
	source directory.Source
	// before, if not nil, is called before each page is handed over; an error is the source's.
	before func(ctx context.Context, position string) error
}

func serve(t *testing.T, provider domain.Directory, accounts ...directorytest.Account) *served {
	t.Helper()
	return servePart(t, provider, "", accounts...)
}

// servePart is serve for a group, or a domain.
func servePart(t *testing.T, provider domain.Directory, part string, accounts ...directorytest.Account) *served {
	t.Helper()
	d := directorytest.New(accounts...)
	var v vendor = microsoft(t, d)
	if provider == domain.Google {
		v = googleServer(t, d)
	}
	v.SetPageSize(2)
	open := func() directory.Source {
		s, _ := source(t, provider, v, part)
		return s
	}
	return &served{Directory: d, vendor: v, open: open}
}

// graph is the server of Microsoft's directory.
func (s *served) graph() *directorytest.Microsoft { return s.vendor.(*directorytest.Microsoft) }

// Read reads from a position on.
func (s *served) Read(ctx context.Context, position string) iter.Seq2[directory.Page, error] {
	return func(yield func(directory.Page, error) bool) {
		for page, err := range s.source.Read(ctx, position) {
			if s.before != nil && err == nil {
				if failed := s.before(ctx, position); failed != nil {
					yield(directory.Page{}, failed)
					return
				}
			}
			if !yield(page, err) {
				return
			}
			position = page.Next
		}
	}
}
