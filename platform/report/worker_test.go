package report_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestMake makes a report once, however often its job runs.
func TestMake(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r := w.request(domain.RiskOverview)
	worker, l := w.worker(sample), w.lease(r)
	for range 2 {
		w.must(worker.Work(t.Context(), l))
		w.wantStatus(r, domain.ReportReady, 1)
		w.wantFiles(r)
	}
	if fmt.Sprint(w.told) != "[made]" {
		t.Errorf("told of %v", w.told)
	}
	file, err := w.store.Open(t.Context(), r)
	w.must(err)
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil || string(text) != contents(w.client.Name, r) {
		t.Errorf("the file is %.100s…, %v", text, err)
	}
	if info, err := os.Stat(w.folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
}

// TestInterrupted: whatever a process left behind that was killed in the middle of a report, or
// whose store took no file, the next try ends in one file and one event.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := newService(t)
	for name, left := range map[string]func(r domain.Report){
		"while it writes": func(r domain.Report) {
			w.Exec("UPDATE reports SET tries = $1", domain.ReportTries-1)
			ctx, kill := context.WithCancel(t.Context())
			err := w.worker(writes(func(ctx context.Context, to io.Writer, _ *db.Tenant, _ domain.Report) error {
				_, _ = io.WriteString(to, "half")
				kill()
				return errWriting
			})).Work(ctx, w.lease(r))
			if !errors.Is(err, context.Canceled) || len(w.told) > 0 { // it is put back, which is no try
				t.Errorf("ended with %v, told of %v", err, w.told)
			}
		},
		"while it uploads": func(r domain.Report) {
			part := filepath.Join(w.folder, r.Client.UUID(), r.ID.UUID()+"."+string(r.Format)+".18bd1f.tmp")
			w.must(os.MkdirAll(filepath.Dir(part), 0o700))
			w.must(os.WriteFile(part, []byte("half"), 0o600))
		},
		"while the store takes nothing": func(r domain.Report) {
			breakFolder(t, w.folder, r)
			if err := w.worker(sample).Work(t.Context(), w.lease(r)); err == nil {
				t.Error("the report was made")
			}
			w.must(os.Remove(filepath.Join(w.folder, r.Client.UUID())))
			w.Clock.Advance(2 * time.Second)
		},
		"before it marks": func(r domain.Report) {
			w.must(w.store.Put(t.Context(), r, strings.NewReader("of the first try")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Exec("DELETE FROM events")
			r := w.request(domain.RiskOverview)
			left(r)
			w.wantStatus(r, domain.ReportPending, 0)
			w.must(w.worker(sample).Work(t.Context(), w.lease(r)))
			w.wantStatus(r, domain.ReportReady, 1)
			w.wantFiles(r)
			w.must(w.store.Delete(t.Context(), r))
			w.told = nil
		})
	}
	if strings.Contains(w.log.String(), "failed") {
		t.Errorf("logged %s", w.log)
	}
}

// TestReplaced: a file in a folder stays until a new one is complete. A new one takes away what a crash left.
func TestReplaced(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r := w.request(domain.RiskOverview)
	want := func(text string) {
		t.Helper()
		file, err := w.store.Open(t.Context(), r)
		w.must(err)
		defer file.Close()
		if got, err := io.ReadAll(file); err != nil || string(got) != text {
			t.Errorf("the file is %q, %v, not %q", got, err, text)
		}
	}
	w.must(w.store.Put(t.Context(), r, strings.NewReader("first")))

	unreadable := struct {
		io.Reader
		io.Seeker
	}{Reader: iotest.ErrReader(errWriting)}
	if err := w.store.Put(t.Context(), r, unreadable); !errors.Is(err, errWriting) {
		t.Errorf("stored with %v", err)
	}
	want("first")
	w.wantFiles(r)

	part := filepath.Join(w.folder, r.Client.UUID(), r.ID.UUID()+"."+string(r.Format)+".1")
	w.must(os.WriteFile(part, []byte("half"), 0o600)) // as a killed process leaves it
	w.must(w.store.Put(t.Context(), r, strings.NewReader("second")))
	want("second")
	w.wantFiles(r)
}

// TestThreeFailures: a report fails at the third error or panic, each of which is logged
// once, and not before.
func TestThreeFailures(t *testing.T) {
	t.Parallel()
	panicking := writes(func(context.Context, io.Writer, *db.Tenant, domain.Report) error { panic("planted") })
	for want, writer := range map[error]writes{errWriting: failing, domain.ErrPanicked: panicking} {
		w := newService(t)
		r := w.request(domain.RiskOverview)
		worker := w.worker(writer)
		for try := 1; try <= domain.ReportTries; try++ {
			w.wantStatus(r, domain.ReportPending, 0)
			if err := worker.Work(t.Context(), w.lease(r)); !errors.Is(err, want) {
				t.Errorf("try %d ended with %v", try, err)
			}
			if len(w.claim()) > 0 {
				t.Errorf("it is due at once after try %d", try)
			}
			w.Clock.Advance(20 * time.Second)
		}
		w.wantStatus(r, domain.ReportFailed, 0)
		w.wantFiles()
		if n := strings.Count(w.log.String(), want.Error()); n != domain.ReportTries {
			t.Errorf("%d lines: %s", n, w.log)
		}
		if fmt.Sprint(w.told) != "[retried retried failed]" {
			t.Errorf("told of %v", w.told)
		}
		w.must(w.worker(sample).Work(t.Context(), reports.ReportLease{Client: r.Client, Report: r.ID, Tries: 2})) // too late
		w.wantStatus(r, domain.ReportFailed, 0)
	}
}

// TestStoreAway verifies that a store that is away for ten minutes fails no report, and that a report waits for a day,
// or a week if it belongs to a monthly email.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	w := newService(t)
	var waiting []domain.Report
	for range domain.MaxReports {
		waiting = append(waiting, w.request(domain.RiskOverview))
	}
	worker := w.worker(sample)
	work := func() (attempts int) {
		for _, l := range w.claim() {
			attempts++
			_ = worker.Work(t.Context(), l)
		}
		return attempts
	}
	breakFolder(t, w.folder, waiting[0])
	attempts := 0
	for range 600 {
		attempts += work()
		w.Clock.Advance(time.Second)
	}
	if attempts == 0 || attempts > 30*len(waiting) {
		t.Errorf("got %d attempts in ten minutes", attempts)
	}
	if n := w.Number("SELECT sum(tries) FROM reports"); n != 0 {
		t.Errorf("got %d attempts counted, want 0", n)
	}
	w.must(os.Remove(filepath.Join(w.folder, waiting[0].Client.UUID())))
	w.Clock.Advance(5 * time.Minute)
	work()
	for _, r := range waiting {
		w.wantStatus(r, domain.ReportReady, len(waiting))
	}

	one, monthly := w.request(domain.RiskOverview), w.request(domain.RiskOverview)
	w.Exec("UPDATE reports SET mailed_for = '2026-05-01' WHERE id = $1", monthly.ID)
	breakFolder(t, w.folder, one)
	w.Clock.Advance(domain.ReportWait - 2*time.Hour) // request advances the clock, too
	work()
	w.wantStatus(one, domain.ReportPending, len(waiting))
	w.Clock.Advance(3 * time.Hour)
	work()
	w.wantStatus(one, domain.ReportFailed, len(waiting))
	w.wantStatus(monthly, domain.ReportPending, len(waiting))
	w.Clock.Advance(domain.MonthlyReportWait - domain.ReportWait)
	work()
	w.wantStatus(monthly, domain.ReportFailed, len(waiting))
}

// TestStoreAwayAtMidnight verifies that every client gets the email of a month whose reports are requested at midnight
// of the first, while the store is away for ten minutes: once, to each admin.
func TestStoreAwayAtMidnight(t *testing.T) {
	t.Parallel()
	w := newService(t)
	clients := []domain.ClientID{w.client.ID, w.AddClient(w.tenant, "Second").ID, w.AddClient(w.tenant, "Third").ID}
	for n, client := range clients {
		w.must(outbox.SwitchMail(t.Context(), w.DB, client, domain.MonthlyReportMail, true))
		for i := range 2 {
			w.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
				VALUES (gen_random_uuid(), $1, $2, $3, 'Ada', 'owner', now())`, w.tenant.ID, client, fmt.Sprintf("ada%d%d@example.com", n, i))
		}
	}
	worker := w.worker(sample)
	work := func() {
		for _, l := range w.claim() {
			_ = worker.Work(t.Context(), l)
		}
	}
	w.Clock.Set(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	for _, client := range clients {
		breakFolder(t, w.folder, domain.Report{Client: client})
	}
	w.care()
	for range 60 {
		work()
		w.Clock.Advance(10 * time.Second)
	}
	count := func(condition string) int {
		return w.Number("SELECT count(*) FROM reports WHERE mailed_for IS NOT NULL AND " + condition)
	}
	if n, tried := count("status = 'pending'"), count("tries > 0"); n != len(clients) || tried != 0 {
		t.Errorf("after ten minutes %d reports wait, and %d have failed attempts", n, tried)
	}
	for _, client := range clients {
		w.must(os.Remove(filepath.Join(w.folder, client.UUID())))
	}
	for range 2 {
		w.care()
		w.Clock.Advance(5 * time.Minute)
		work()
	}
	if n := count("status = 'ready'"); n != len(clients) {
		t.Errorf("%d of %d reports are ready", n, len(clients))
	}
	if n := w.Number("SELECT count(*) FROM mail_requests AS m JOIN outbox AS o USING (client_id, id) WHERE m.report_id IS NOT NULL"); n != 2*len(clients) {
		t.Errorf("%d emails to %d admins", n, 2*len(clients))
	}
}

// TestArchived: the report of a client that is archived before it is made, or
// meanwhile, fails, and leaves no file.
func TestArchived(t *testing.T) {
	t.Parallel()
	w := newService(t)
	before, meanwhile := w.request(domain.RiskOverview), w.request(domain.PolicyReport)
	leases := map[domain.ReportID]reports.ReportLease{}
	for _, l := range w.claim() {
		leases[l.Report] = l
	}
	archive := func() { w.Exec("UPDATE clients SET archived_at = now()") }
	w.must(w.worker(writes(func(ctx context.Context, to io.Writer, t *db.Tenant, r domain.Report) error {
		archive()
		return sample(ctx, to, t, r)
	})).Work(t.Context(), leases[meanwhile.ID]))
	w.must(w.worker(sample).Work(t.Context(), leases[before.ID]))
	if n := w.Number("SELECT count(*) FROM reports WHERE status = 'failed'"); n != 2 {
		t.Errorf("%d reports failed", n)
	}
	w.wantFiles()
	if fmt.Sprint(w.told) != "[failed failed]" {
		t.Errorf("told of %v", w.told)
	}
}

func (w *service) care() {
	w.T.Helper()
	w.must(report.NewMaintainer(w.DB, w.store, w.logger(), nil).Maintain(w.T.Context()))
}

// TestCareExpires: after 90 days a report's file and row go, of archived clients
// too. A row whose file cannot be deleted stays.
func TestCareExpires(t *testing.T) {
	t.Parallel()
	w := newService(t)
	old, pending := w.made(domain.PolicyReport), w.request(domain.PolicyReport)
	w.Clock.Set(pending.CreatedAt.Add(domain.ReportLife - time.Hour))
	young := w.made(domain.PolicyReport)
	w.Exec("UPDATE clients SET archived_at = now()")

	folder := t.TempDir()
	broken, err := report.OpenStore(t.Context(), "", folder, w.logger())
	w.must(err)
	breakFolder(t, folder, old)
	w.must(report.NewMaintainer(w.DB, broken, w.logger(), nil).Maintain(t.Context()))
	if n := w.Number("SELECT count(*) FROM reports"); n != 3 || !strings.Contains(w.log.String(), "the deletion will be retried") {
		t.Errorf("%d reports are left of 3 whose files are, logged %s", n, w.log)
	}
	w.care()
	if n := w.Number("SELECT count(*) FROM reports WHERE id IN ($1, $2)", old.ID, pending.ID); n != 0 {
		t.Errorf("%d expired reports are there", n)
	}
	if n := w.Number("SELECT count(*) FROM reports WHERE id = $1", young.ID); n != 1 {
		t.Error("a report is gone that has not expired")
	}
	w.wantFiles(young)
}

// TestMonthlyReports: on the first of a month, or up to a week later, each client
// that wants it gets a report of the month before, once. Its mails to the admins are
// asked for when it is ready, and it counts towards no limit.
func TestMonthlyReports(t *testing.T) {
	t.Parallel()
	w := newService(t)
	without := w.AddClient(w.tenant, "Does not want them")
	archived := w.AddClient(w.tenant, "Archived")
	for _, client := range []domain.ClientID{w.client.ID, archived.ID} {
		w.must(outbox.SwitchMail(t.Context(), w.DB, client, domain.MonthlyReportMail, true))
	}
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", archived.ID)
	admin := db.NewID[domain.AdminKind]()
	w.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		VALUES ($1, $2, $3, 'ada@example.com', 'Ada', 'owner', now())`, admin, w.tenant.ID, w.client.ID)
	monthly := func() int {
		t.Helper()
		w.care()
		w.care()
		if n := w.Number("SELECT count(*) FROM reports WHERE client_id IN ($1, $2)", without.ID, archived.ID); n != 0 {
			t.Errorf("%d reports of clients that get none", n)
		}
		return w.Number("SELECT count(*) FROM reports WHERE mailed_for IS NOT NULL")
	}

	w.Clock.Set(time.Date(2026, 7, 9, 12, 0, 0, 0, time.UTC)) // too late for June's
	if n := monthly(); n != 0 {
		t.Fatalf("%d reports more than a week after the first", n)
	}
	w.Clock.Set(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	if n := monthly(); n != 1 {
		t.Fatalf("%d reports of July", n)
	}
	w.must(outbox.SwitchMail(t.Context(), w.DB, without.ID, domain.MonthlyReportMail, true)) // from the next month on
	w.Clock.Set(time.Date(2026, 8, 3, 0, 0, 0, 0, time.UTC))
	if n := monthly(); n != 1 {
		t.Fatalf("%d reports of July two days later", n)
	}

	in := &api.ListReportsInput{}
	in.Path.ClientID, in.Query.Limit = w.client.ID, 10
	page, err := op.Call(w.tenant.Ctx, &w.API.Set, api.ListReports, in)
	w.must(err)
	r := w.report(page.Data[0].ID)
	if r.Type != domain.MonthlyReport || r.Period.Start.String() != "2026-07-01" || r.Period.End.String() != "2026-07-31" {
		t.Errorf("queued %+v", r)
	}
	for range domain.MaxReports { // as many as without it
		_, err := op.Call(w.tenant.Ctx, &w.API.Set, api.RequestReport, w.asked(domain.PolicyReport))
		w.must(err)
	}
	for range domain.MaxReports { // which are made first
		leases, err := reports.ClaimReports(t.Context(), w.DB, 1, time.Minute)
		if w.must(err); len(leases) != 1 || leases[0].Report == r.ID {
			t.Errorf("claimed %+v", leases)
		}
	}
	outcome, err := w.worker(report.NewRenderer(nil)).Process(t.Context(), w.lease(r))
	w.must(err)
	if outcome != report.Made {
		t.Errorf("the report was %s", outcome)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests AS m JOIN outbox AS o USING (client_id, id) WHERE m.report_id = $1 AND m.admin_id = $2", r.ID, admin); n != 1 {
		t.Errorf("%d mails to the admin", n)
	}
	pdf, err := report.NewAttachments(w.DB, w.store, report.NewRenderer(nil)).ReportPDF(t.Context(), r.Client, r.ID)
	if err != nil || string(pdf[:5]) != "%PDF-" {
		t.Errorf("the mail brings %.20q, %v", pdf, err)
	}
	w.Exec("UPDATE clients SET archived_at = now()")
	if _, err := report.NewAttachments(w.DB, w.store, report.NewRenderer(nil)).ReportPDF(t.Context(), r.Client, r.ID); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("of an archived client: %v", err)
	}
}
