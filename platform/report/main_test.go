package report_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// service is a client whose reports are kept in a folder of the test's own.
type service struct {
	*v2test.Harness
	tenant v2test.Partner
	client api.Client
	folder string
	store  *report.Store
	links  report.Links
	log    *strings.Builder
	told   []report.Outcome
}

func newService(t *testing.T) *service {
	t.Helper()
	w := &service{Harness: v2test.New(t, v2test.Options{Limits: v2test.Unlimited}), log: &strings.Builder{}}
	w.tenant = w.AddPartner("Partner")
	w.client = w.AddClient(w.tenant, "Æther & Co")
	w.folder = filepath.Join(t.TempDir(), "reports")
	store, err := report.OpenStore(t.Context(), "", w.folder, w.logger())
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	w.links = report.NewLinks([]byte("secret"), "https://api.example/", w.DB.Now)
	return w
}

// breakFolder puts a file where the store in a folder has that of the report's client.
func breakFolder(t *testing.T, folder string, r domain.Report) {
	t.Helper()
	of := filepath.Join(folder, r.Client.UUID())
	if err := errors.Join(os.RemoveAll(of), os.WriteFile(of, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (w *service) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.log, nil)) }

// writes is a report.Writer.
type writes func(ctx context.Context, to io.Writer, t *db.Tenant, r domain.Report) error

// Write calls the function.
func (fn writes) Write(ctx context.Context, to io.Writer, t *db.Tenant, r domain.Report) error {
	return fn(ctx, to, t, r)
}

// sample writes 100,000 bytes that depend on the report.
var sample writes = func(_ context.Context, to io.Writer, t *db.Tenant, r domain.Report) error {
	_, err := io.WriteString(to, contents(t.Name, r))
	return err
}

func contents(client string, r domain.Report) string {
	line := fmt.Sprintf("%s of %s as %s\n", r.Type, client, r.Format)
	return strings.Repeat(line, 100_000/len(line)+1)[:100_000]
}

var errWriting = errors.New("the data is strange")

// failing writes a part and fails.
var failing writes = func(_ context.Context, to io.Writer, _ *db.Tenant, _ domain.Report) error {
	_, _ = io.WriteString(to, "half of")
	return errWriting
}

func (w *service) worker(writer report.Writer) *report.Worker {
	return report.NewWorker(w.DB, w.store, writer, w.logger(), report.Observer{Tried: func(o report.Outcome, _ time.Duration) {
		w.told = append(w.told, o)
	}})
}

// request asks for a report, more than an hour after the one before.
func (w *service) request(kind domain.ReportType) domain.Report {
	w.T.Helper()
	w.Clock.Advance(61 * time.Minute)
	out, err := op.Call(w.tenant.Ctx, &w.API.Set, api.RequestReport, w.asked(kind))
	w.must(err)
	return w.report(out.ID)
}

func (w *service) asked(kind domain.ReportType) *api.RequestReportInput {
	in := &api.RequestReportInput{}
	in.Path.ClientID, in.Body.Type = w.client.ID, kind
	return in
}

// report reads a report.
func (w *service) report(id domain.ReportID) domain.Report {
	w.T.Helper()
	t, err := w.DB.Tenant(w.tenant.Ctx, w.client.ID)
	w.must(err)
	r, err := t.Report(w.T.Context(), id)
	w.must(err)
	return r
}

// made asks for a report and makes it.
func (w *service) made(kind domain.ReportType) domain.Report {
	w.T.Helper()
	r := w.request(kind)
	outcome, err := w.worker(sample).Process(w.T.Context(), reports.ReportLease{Client: r.Client, Report: r.ID})
	if outcome != report.Made {
		w.T.Fatalf("making it ended as %q, %v", outcome, err)
	}
	return w.report(r.ID)
}

// claim leases the pending reports that are due.
func (w *service) claim() []reports.ReportLease {
	w.T.Helper()
	leases, err := reports.ClaimReports(w.T.Context(), w.DB, 10, report.LeaseFor)
	w.must(err)
	return leases
}

// lease leases a report, which is the only one that is due.
func (w *service) lease(r domain.Report) reports.ReportLease {
	w.T.Helper()
	leases := w.claim()
	if len(leases) != 1 || leases[0].Report != r.ID || leases[0].Client != r.Client {
		w.T.Fatalf("claimed %+v", leases)
	}
	return leases[0]
}

// wantFiles wants the store to have the files of the reports and no others.
func (w *service) wantFiles(reports ...domain.Report) {
	w.T.Helper()
	want := []string{}
	for _, r := range reports {
		want = append(want, r.Client.UUID()+"/"+r.ID.UUID()+"."+string(r.Format))
	}
	slices.Sort(want)
	got, err := fs.Glob(os.DirFS(w.folder), "*/*")
	if w.must(err); !slices.Equal(got, want) {
		w.T.Errorf("the files are %v, not %v", got, want)
	}
}

// wantStatus wants a report to have a status, and as many events to say that a
// report is ready.
func (w *service) wantStatus(r domain.Report, want domain.ReportStatus, events int) {
	w.T.Helper()
	if got := w.report(r.ID).Status; got != want {
		w.T.Errorf("the report is %s, not %s", got, want)
	}
	if n := w.Number("SELECT count(*) FROM events WHERE type = 'report.ready'"); n != events {
		w.T.Errorf("%d events, not %d", n, events)
	}
}

func (w *service) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}
