package report_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
)

// wantJobs compares the jobs that metrics count, by kind and state.
func (w *service) wantJobs(want string) {
	w.T.Helper()
	var all []string
	for name, value := range worldtest.Figures(w.T, w.DB) {
		if labels, ok := strings.CutPrefix(name, "jobs "); ok {
			all = append(all, fmt.Sprint(labels, " ", value))
		}
	}
	slices.Sort(all)
	if got := strings.Join(all, ", "); got != want {
		w.T.Errorf("the jobs are %q, not %q", got, want)
	}
}

// TestLeases: a report is one process's while its lease lasts, by the database's clock; who has
// lost it puts nothing back. One whose processes die fails after as many tries as any, and counts
// as one that was given up.
func TestLeases(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r := w.request(domain.RiskOverview)
	w.wantJobs("report available 1")
	first := w.lease(r)
	w.wantJobs("report running 1")
	w.Clock.Advance(report.LeaseFor - time.Microsecond)
	if len(w.claim()) > 0 {
		t.Error("a report is claimed twice")
	}
	w.Clock.Advance(time.Microsecond)
	w.wantJobs("report available 1")
	second := w.lease(r)
	if first.Tries != 0 || second.Tries != 1 {
		t.Errorf("%d tries, then %d", first.Tries, second.Tries)
	}
	if err := reports.RequeueReport(t.Context(), w.DB, first, w.Clock.Now(), true); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the first puts it back: %v", err)
	}
	w.must(reports.RequeueReport(t.Context(), w.DB, second, w.Clock.Now().Add(time.Second), true))
	w.wantJobs("report retryable 1")
	w.Clock.Advance(time.Second)
	if third := w.lease(r); third.Tries != 2 {
		t.Errorf("%d tries", third.Tries)
	}
	w.Clock.Advance(report.LeaseFor)
	w.wantStatus(r, domain.ReportPending, 0)
	if err := w.worker(sample).Work(t.Context(), w.lease(r)); err == nil {
		t.Error("it was made")
	}
	w.wantStatus(r, domain.ReportFailed, 0)
	if n := strings.Count(w.log.String(), "a report failed"); n != 1 || len(w.claim()) > 0 {
		t.Errorf("logged %s", w.log)
	}
	w.wantJobs("report discarded 1")
	w.Clock.Advance(8 * 24 * time.Hour)
	w.wantJobs("")
}

// TestFileOfLostLease: who lost a lease marks nothing, and deletes no file that another may
// have made since.
func TestFileOfLostLease(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r := w.request(domain.RiskOverview)
	var second reports.ReportLease
	late := w.worker(writes(func(ctx context.Context, to io.Writer, of *db.Tenant, r domain.Report) error {
		w.Clock.Advance(report.LeaseFor)
		second = w.lease(r)
		w.Exec("UPDATE clients SET archived_at = $1", w.Clock.Now())
		return sample(ctx, to, of, r)
	}))
	if err := late.Work(t.Context(), w.lease(r)); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the first marks it: %v", err)
	}
	if n := w.Number("SELECT count(*) FROM reports WHERE status = 'pending'"); n != 1 {
		t.Error("the report is marked")
	}
	w.wantFiles(r)
	w.must(w.worker(sample).Work(t.Context(), second))
	if n := w.Number("SELECT count(*) FROM reports WHERE status = 'failed'"); n != 1 {
		t.Error("the report of an archived client has not failed")
	}
}

// TestRun: a process makes reports soon after they are asked for, each try in a span. One that
// is stopped before its work begins ends well.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newService(t)
	made := make(chan report.Outcome, 10)
	spans := make(chan string, 10)
	worker := report.NewWorker(w.DB, w.store, sample, slog.New(slog.DiscardHandler), report.Observer{
		Tried: func(o report.Outcome, _ time.Duration) { made <- o },
		Trace: func(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
			return ctx, func(err error, _ ...slog.Attr) { spans <- fmt.Sprint(name, attrs, err) }
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	for range 3 {
		r := w.request(domain.RiskOverview)
		if o := <-made; o != report.Made {
			t.Errorf("it was %s", o)
		}
		w.must(w.store.Delete(t.Context(), r))
		if span := <-spans; span != "job report[try=1] <nil>" {
			t.Error(span)
		}
	}
	stop()
	w.must(<-ended)
	w.must(worker.Run(ctx))
	report.NewMaintainer(w.DB, w.store, w.logger(), nil).Run(ctx)
}

// TestCareTurns: one of several processes cares every five minutes. A time that fails,
// or whose process dies, is counted for a week.
func TestCareTurns(t *testing.T) {
	t.Parallel()
	w := newService(t)
	w.made(domain.PolicyReport)
	var times int
	trace := func(ctx context.Context, _ string, _ ...slog.Attr) (context.Context, func(error, ...slog.Attr)) {
		times++
		return ctx, func(error, ...slog.Attr) {}
	}
	one, other := report.NewMaintainer(w.DB, w.store, w.logger(), trace), report.NewMaintainer(w.DB, w.store, w.logger(), trace)
	turns := func(want int) {
		t.Helper()
		times = 0
		w.must(one.Turn(t.Context()))
		w.must(other.Turn(t.Context()))
		if times != want {
			t.Errorf("%d times, want %d", times, want)
		}
	}
	led := func(want bool) {
		t.Helper()
		if got := worldtest.Figures(t, w.DB)["job_leader"] == 1; got != want {
			t.Errorf("led: got %t, want %t", got, want)
		}
	}
	led(false)
	turns(1)
	led(true)
	w.Clock.Advance(report.MaintainEvery - time.Microsecond)
	turns(0)
	w.Clock.Advance(time.Microsecond)
	w.wantJobs("report_care available 1")
	turns(1)
	w.wantJobs("")
	w.Clock.Advance(report.MaintainEvery + 2*time.Minute)
	led(false)

	_, err := w.DB.ClaimPeriodic(t.Context(), db.ReportCare, report.LeaseFor) // by a process that dies
	w.must(err)
	w.wantJobs("report_care running 1")
	turns(0)
	w.Clock.Advance(report.LeaseFor)
	turns(1)
	w.wantJobs("report_care discarded 1")

	w.Clock.Advance(report.MaintainEvery)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_ = one.Turn(stopped) // claims nothing
	turns(1)
	w.Exec("ALTER TABLE monthly_mailings RENAME TO away")
	w.Clock.Set(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	if err := one.Turn(t.Context()); err == nil {
		t.Error("a time that fails is none")
	}
	w.wantJobs("report_care discarded 1") // the first was longer ago than a week
	w.Exec("ALTER TABLE away RENAME TO monthly_mailings")
	w.Clock.Advance(8 * 24 * time.Hour)
	turns(1)
	w.wantJobs("")
}
