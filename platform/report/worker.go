package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

// Writer writes the file of a client's report.
type Writer interface {
	Write(ctx context.Context, w io.Writer, t *db.Tenant, r domain.Report) error
}

const (
	// MakeWithin is the maximum time of one attempt to make a report.
	MakeWithin = 110 * time.Second
	// leaseFor is how long a claim of a report lasts. It is more than MakeWithin, so
	// that no other process claims a report in progress.
	leaseFor = 2 * time.Minute
	// finishWithin is how long marking a report as failed, or requeueing it, may take.
	finishWithin = 10 * time.Second
	// makeAfterStop is how long a report in progress may continue after a stop; after
	// that it is requeued, and another process makes it from the start.
	makeAfterStop = 15 * time.Second
	// makeAtOnce is the maximum number of reports that a process makes at a time.
	makeAtOnce = 2
	// pollEvery is how often pending reports are polled without a notification.
	pollEvery = 10 * time.Second
	// pollAgain is the least pause between two polls while other processes hold the due reports.
	pollAgain = 100 * time.Millisecond
)

// backoff is the pause after each failed attempt at a report.
var backoff = lease.Backoff{time.Second, 16 * time.Second}

// waitLeast and waitMost bound the pause of a report that waits for the store, the disk or the database. Between them
// it is a quarter of the time since the request, so that it grows from seconds to minutes.
const waitLeast, waitMost = time.Second, 5 * time.Minute

// Outcome is how an attempt to make a report ended.
type Outcome string

// The outcomes.
const (
	Made    Outcome = "made"
	Retried Outcome = "retried" // it will be tried again
	Waiting Outcome = "waiting" // it waits for the store, the disk or the database, which is no attempt
	Failed  Outcome = "failed"  // it was the last attempt, or the client was archived
)

// Observer is notified of what a Worker and a Maintainer do.
type Observer struct {
	// Tried, if not nil, is called with the outcome and the duration of each attempt.
	Tried func(outcome Outcome, took time.Duration)
	// Trace makes a span of each attempt.
	Trace domain.Trace
}

// Worker makes pending reports. An attempt makes the file on this machine, uploads it and
// marks the report as ready, with no transaction open while it uploads. The file's key
// comes from the report, so an attempt after a crash overwrites the file of the previous.
type Worker struct {
	db      *db.DB
	store   *Store
	writer  Writer
	log     *slog.Logger
	observe Observer
	queue   *lease.Queue[reports.ReportLease]
}

// NewWorker returns a worker, which does nothing before Run.
func NewWorker(d *db.DB, store *Store, writer Writer, log *slog.Logger, observe Observer) *Worker {
	if observe.Tried == nil {
		observe.Tried = func(Outcome, time.Duration) {}
	}
	w := &Worker{db: d, store: store, writer: writer, log: log, observe: observe}
	w.queue = lease.NewQueue(lease.Config[reports.ReportLease]{
		Name: "reports", Log: log, Claim: w.claim, Do: w.try, Concurrency: makeAtOnce,
		StopWithin: makeAfterStop + finishWithin,
		Listen:     func(ctx context.Context, wake func()) error { return d.ListenFor(ctx, db.ReportChannel, wake) },
		Stepped:    d.Stepped,
		Renew: func(ctx context.Context, held []reports.ReportLease) error {
			return db.RenewLeases(ctx, d, held, leaseFor)
		},
	})
	return w
}

// Run makes reports until ctx ends, and then finishes or requeues the reports in progress. It returns an error if this
// takes too long: the reports that are left are generated when their leases end.
func (w *Worker) Run(ctx context.Context) error { return w.queue.Run(ctx) }

// claim leases up to free due reports. wait is the time until the next call, unless err is set: 0 if there were due
// reports, pollEvery if no report waits, otherwise the time until one is due, from pollAgain to pollEvery.
func (w *Worker) claim(ctx context.Context, free int) (leases []reports.ReportLease, wait time.Duration, err error) {
	leases, err = reports.ClaimReports(ctx, w.db, free, leaseFor)
	if err != nil || len(leases) > 0 {
		return leases, 0, err
	}
	due, ok, err := reports.ReportDue(ctx, w.db)
	if err != nil || !ok {
		return nil, pollEvery, err
	}
	return nil, min(pollEvery, max(due.Sub(w.db.Now()), pollAgain)), nil
}

// try makes a leased report in its own span. It may continue for makeAfterStop after ctx ends.
func (w *Worker) try(ctx context.Context, l reports.ReportLease) {
	ctx, cancel := lease.Outlast(ctx, makeAfterStop)
	defer cancel()
	ctx, end := w.observe.Trace.Begin(ctx, "job report", slog.Int("try", l.Tries+1))
	end(w.Work(ctx, l))
}

// Work makes a leased report (see Process). After an error or a panic it requeues the report, or marks it as failed if
// that was the last attempt, and returns the error. A failure of the store, the disk or the database is no attempt: the
// report waits, up to its limit (domain.ReportWait). If a process died at the last attempt, Work only marks the report
// as failed. If ctx ends, it requeues the report and counts no attempt. If the lease is lost, it changes nothing.
func (w *Worker) Work(ctx context.Context, l reports.ReportLease) error {
	if l.Tries >= domain.ReportTries {
		return w.giveUp(ctx, l, errors.New("the last attempt ended with its process"))
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, MakeWithin)
	defer cancel()
	outcome, err := domain.RecoverValue(within, w.log, "make a report", func() (Outcome, error) {
		return w.Process(within, l)
	})
	finishCtx, done := lease.Outlast(ctx, finishWithin)
	defer done()

	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Join(ctx.Err(), w.requeue(finishCtx, l, 0, false /* failed */))
	case err == nil && outcome == "": // nothing to make
		return nil
	case errors.Is(err, db.ErrLeaseLost):
		w.log.InfoContext(ctx, "another process has taken over a report",
			"report", l.Report.String(), "client", l.Client.String())
		return err
	case err == nil:
		w.observe.Tried(outcome, time.Since(began))
		return nil
	case isOutside(err) && !w.isOver(finishCtx, l):
		w.log.WarnContext(ctx, "a report waits for the report store, the disk or the database",
			"report", l.Report.String(), "client", l.Client.String(), "error", err)
		w.observe.Tried(Waiting, time.Since(began))
		return errors.Join(err, w.requeue(finishCtx, l, min(max(w.waited(l)/4, waitLeast), waitMost), false /* failed */))
	case l.Tries+1 < domain.ReportTries && !isOutside(err):
		w.log.WarnContext(ctx, "a report was not created; it will be retried",
			"report", l.Report.String(), "client", l.Client.String(), "try", l.Tries+1, "error", err)
		w.observe.Tried(Retried, time.Since(began))
		return errors.Join(err, w.requeue(finishCtx, l, backoff.After(l.Tries+1), true /* failed */))
	}
	w.observe.Tried(Failed, time.Since(began))
	return w.giveUp(finishCtx, l, err)
}

// isOutside reports whether a report failed for a reason that is not its own: the store, the disk or the database.
func isOutside(err error) bool {
	var stored *storeError
	var disk *fs.PathError
	return errors.As(err, &stored) || errors.As(err, &disk) || domain.IsCode(err, domain.Unavailable)
}

// isOver reports whether a report has waited for its limit, by a clock that is trusted.
func (w *Worker) isOver(ctx context.Context, l reports.ReportLease) bool {
	if w.waited(l) < waitLimit(l) {
		return false
	}
	trusted, err := w.db.ClockTrusted(ctx, w.db.Now())
	return err == nil && trusted
}

// waited returns the time since the request of a report.
func (w *Worker) waited(l reports.ReportLease) time.Duration { return w.db.Now().Sub(l.CreatedAt) }

// waitLimit returns how long a report waits for what is outside.
func waitLimit(l reports.ReportLease) time.Duration {
	if l.Monthly {
		return domain.MonthlyReportWait
	}
	return domain.ReportWait
}

// requeue makes a report due again after a pause. While the database is unavailable it tries again, until ctx ends:
// otherwise the end of the lease would count as a failed attempt.
func (w *Worker) requeue(ctx context.Context, l reports.ReportLease, pause time.Duration, failed bool) error {
	return lease.RetryUnavailable(ctx, func() error {
		return reports.RequeueReport(ctx, w.db, l, w.db.Now().Add(pause), failed)
	})
}

// giveUp logs err and marks a report as failed. It returns err, joined with an error of the marking.
func (w *Worker) giveUp(ctx context.Context, l reports.ReportLease, err error) error {
	w.log.ErrorContext(ctx, "a report failed", "report", l.Report.String(), "client", l.Client.String(), "error", err)
	return errors.Join(err, w.fail(ctx, l))
}

// Process renders a report, stores the file, and marks the report. The outcome is Made, or empty if the report is no
// longer pending or has expired, or Failed if its client was archived. If the client was archived while the file was
// made, Process deletes the file. If the lease was lost meanwhile, the error is db.ErrLeaseLost, and the file stays:
// another process, or a service on another database (cell) with the same store, may have made it.
func (w *Worker) Process(ctx context.Context, l reports.ReportLease) (Outcome, error) {
	t, err := w.db.AnyTenant(ctx, l.Client)
	if domain.IsCode(err, domain.NotFound) { // the client was archived
		return Failed, w.fail(ctx, l)
	}
	if err != nil {
		return "", err
	}
	r, err := t.Report(ctx, l.Report)
	switch {
	case domain.IsCode(err, domain.NotFound): // the report has expired
		return "", nil
	case err != nil || r.Status != domain.ReportPending:
		return "", err
	}

	status, err := w.renderAndStore(ctx, t, r, l)
	switch {
	case err != nil:
		return "", err
	case status == domain.ReportReady:
		return Made, nil
	}
	return Failed, w.store.Delete(ctx, r) // the client was archived meanwhile
}

// renderAndStore renders the file, uploads it and marks the report. It returns the report's status: ready, or failed if
// the client was archived while the file was generated.
func (w *Worker) renderAndStore(
	ctx context.Context, t *db.Tenant, r domain.Report, l reports.ReportLease,
) (domain.ReportStatus, error) {
	file, discard, err := createTemporary()
	if err != nil {
		return "", err
	}
	defer discard()
	err = w.db.FromReplica(ctx, func(ctx context.Context) error { // may be called twice
		if err := errors.Join(file.Truncate(0), rewind(file)); err != nil {
			return err
		}
		return w.writer.Write(ctx, file, t, r)
	})
	if err != nil {
		return "", fmt.Errorf("write a report: %w", err)
	}
	if err := rewind(file); err != nil {
		return "", fmt.Errorf("read a temporary file: %w", err)
	}
	if err := w.store.Put(ctx, r, file); err != nil {
		return "", err
	}
	return reports.FinishReport(ctx, w.db, l, domain.ReportReady)
}

// rewind sets the offset of a file to its beginning.
func rewind(file io.Seeker) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// fail marks a report as failed, unless the lease was lost.
func (w *Worker) fail(ctx context.Context, l reports.ReportLease) error {
	_, err := reports.FinishReport(ctx, w.db, l, domain.ReportFailed)
	if errors.Is(err, db.ErrLeaseLost) {
		return nil
	}
	return err
}
