package report

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// MakeWithin is how long one try to make a report may take.
	MakeWithin = 110 * time.Second
	// leaseFor is how long a claim of a report lasts. It is more than MakeWithin, so
	// that no report is taken over while it is worked on.
	leaseFor = 2 * time.Minute
	// finishWithin is how long marking a report as failed, or requeueing it, may take.
	finishWithin = 10 * time.Second
	// makeAfterStop is how long a report in progress may go on after a stop; one that
	// takes longer begins again in another process.
	makeAfterStop = 15 * time.Second
	// makeAtOnce is how many reports a process makes at a time.
	makeAtOnce = 2
	// pollEvery is how often pending reports are polled without a notification.
	pollEvery = 10 * time.Second
	// pollAgain is the least pause between two polls while others have the due reports.
	pollAgain = 100 * time.Millisecond
)

// backoff is the backoff after each failed try of a report.
var backoff = lease.Backoff{time.Second, 16 * time.Second}

// Outcome is how a try to make a report ended.
type Outcome string

// The outcomes.
const (
	Made    Outcome = "made"
	Retried Outcome = "retried" // it will be tried again
	Failed  Outcome = "failed"  // it was the last try, or the client was archived
)

// Observer is notified of what a Worker and a Maintainer do.
type Observer struct {
	// Tried gets how each try ended and how long it took; it may be nil.
	Tried func(outcome Outcome, took time.Duration)
	// Trace makes a span of each try.
	Trace domain.Trace
}

// Worker makes pending reports, each once. A try makes the file on this machine, uploads
// it and marks the report as ready; no transaction is open meanwhile. The file's key is
// the report's, so that a try after a crash, at any step, has the same result.
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
	})
	return w
}

// Run makes reports until ctx ends, and then finishes those in progress, or requeues
// them. The error says that this took too long: they are made when their leases end.
func (w *Worker) Run(ctx context.Context) error { return w.queue.Run(ctx) }

// claim claims reports, and finds out when the next one is due where none is now.
func (w *Worker) claim(ctx context.Context, free int) ([]reports.ReportLease, time.Duration, error) {
	leases, err := reports.ClaimReports(ctx, w.db, free, leaseFor)
	if err != nil || len(leases) > 0 {
		return leases, 0, err
	}
	due, some, err := reports.ReportDue(ctx, w.db)
	if err != nil || !some {
		return nil, pollEvery, err
	}
	return nil, min(pollEvery, max(due.Sub(w.db.Now()), pollAgain)), nil
}

// try makes a leased report in a span of its own. It goes on for up to makeAfterStop after ctx ends.
func (w *Worker) try(ctx context.Context, l reports.ReportLease) {
	ctx, cancel := lease.Outlast(ctx, makeAfterStop)
	defer cancel()
	ctx, end := w.observe.Trace.Begin(ctx, "job report", slog.Int("try", l.Tries+1))
	end(w.Work(ctx, l))
}

// Work makes a leased report, and marks the outcome. An error of the last try marks the
// report as failed; a panic counts as an error, the end of ctx does not.
func (w *Worker) Work(ctx context.Context, l reports.ReportLease) error {
	if l.Tries >= domain.ReportTries {
		return w.giveUp(ctx, l, errors.New("the last try ended with its process"))
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, MakeWithin)
	defer cancel()
	outcome, err := domain.RecoverValue(within, w.log, "make a report", func() (Outcome, error) {
		return w.Process(within, l)
	})
	lasting, done := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer done()

	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Join(ctx.Err(), reports.RequeueReport(lasting, w.db, l, w.db.Now(), false))
	case err == nil && outcome == "":
		return nil
	case errors.Is(err, db.ErrLeaseLost):
		w.log.InfoContext(ctx, "a report is another process's by now", "report", l.Report.String(), "client", l.Client.String())
		return err
	case err == nil:
		w.observe.Tried(outcome, time.Since(began))
		return nil
	case l.Tries+1 < domain.ReportTries:
		w.log.WarnContext(ctx, "a report was not made; it will be tried again",
			"report", l.Report.String(), "client", l.Client.String(), "try", l.Tries+1, "error", err)
		w.observe.Tried(Retried, time.Since(began))
		return errors.Join(err, reports.RequeueReport(lasting, w.db, l, w.db.Now().Add(backoff.After(l.Tries+1)), true))
	}
	w.observe.Tried(Failed, time.Since(began))
	return w.giveUp(lasting, l, err)
}

// giveUp marks a report as failed for good, for the reason of err.
func (w *Worker) giveUp(ctx context.Context, l reports.ReportLease, err error) error {
	w.log.ErrorContext(ctx, "a report failed", "report", l.Report.String(), "client", l.Client.String(), "error", err)
	return errors.Join(err, w.fail(ctx, l))
}

// Process renders a report and returns the outcome: empty for a report that is made, has
// failed or has expired, Failed for one whose client was archived. Only the process that
// held the lease deletes its file: another may have made it since, also in another cell
// with the same store. The error is db.ErrLeaseLost if another process has the report.
func (w *Worker) Process(ctx context.Context, l reports.ReportLease) (Outcome, error) {
	t, err := w.db.AnyTenant(ctx, l.Client)
	if domain.IsCode(err, domain.NotFound) {
		return Failed, w.fail(ctx, l)
	}
	if err != nil {
		return "", err
	}
	r, err := t.Report(ctx, l.Report)
	switch {
	case domain.IsCode(err, domain.NotFound): // it has expired
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
	return Failed, w.store.Delete(ctx, r)
}

// renderAndStore renders the file, uploads it and marks the report, whose status it returns:
// failed where the client was archived meanwhile.
func (w *Worker) renderAndStore(
	ctx context.Context, t *db.Tenant, r domain.Report, l reports.ReportLease,
) (domain.ReportStatus, error) {
	file, discard, err := scratch()
	if err != nil {
		return "", err
	}
	defer discard()
	err = w.db.FromReplica(ctx, func(ctx context.Context) error {
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

// rewind goes back to the beginning of a file.
func rewind(file io.Seeker) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// fail marks a report as failed, unless another process has it by now.
func (w *Worker) fail(ctx context.Context, l reports.ReportLease) error {
	_, err := reports.FinishReport(ctx, w.db, l, domain.ReportFailed)
	if errors.Is(err, db.ErrLeaseLost) {
		return nil
	}
	return err
}
