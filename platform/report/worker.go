package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
)

// Writer writes the file of a client's report.
type Writer interface {
	Write(ctx context.Context, w io.Writer, t *db.Tenant, r domain.Report) error
}

const (
	// MakeWithin is how long one try to make a report may take.
	MakeWithin = 110 * time.Second
	// RescueAfter is when a job is taken over of a process that was killed. It is more
	// than MakeWithin: no job is taken over that is still worked on.
	RescueAfter = 2 * time.Minute
	// finishWithin is how long marking a report as failed may take.
	finishWithin = 10 * time.Second
)

// Outcome is how a try to make a report ended.
type Outcome string

// The outcomes.
const (
	Made    Outcome = "made"
	Retried Outcome = "retried" // it will be tried again
	Failed  Outcome = "failed"  // it was the last try, or the client was archived
)

// Worker makes reports, each once. A try makes the file on this machine, uploads it
// and marks the report as ready; no transaction is open meanwhile. The file's key is
// the report's, so that a try after a crash, at whichever step, ends in the same.
type Worker struct {
	river.WorkerDefaults[job.ReportArgs]
	db     *db.DB
	store  *Store
	writer Writer
	log    *slog.Logger
	tell   func(Outcome, time.Duration)
}

// NewWorker returns a worker. tell is told how each try ended and how long it took.
func NewWorker(
	d *db.DB, store *Store, writer Writer, log *slog.Logger, tell func(Outcome, time.Duration),
) *Worker {
	return &Worker{db: d, store: store, writer: writer, log: log, tell: tell}
}

// Timeout bounds a try.
func (w *Worker) Timeout(*river.Job[job.ReportArgs]) time.Duration { return MakeWithin }

// Work makes the report of a job. The error of the last try marks the report as
// failed; a try that the end of the process cuts off is none.
func (w *Worker) Work(ctx context.Context, j *river.Job[job.ReportArgs]) error {
	began := time.Now()
	outcome, err := w.Make(ctx, j.Args.Client, j.Args.Report)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // by which the queue knows that it is no try
	case err == nil && outcome == "":
		return nil
	case err == nil:
		w.tell(outcome, time.Since(began))
		return nil
	case j.Attempt < j.MaxAttempts:
		w.log.WarnContext(ctx, "a report was not made; it will be tried again",
			"report", j.Args.Report.String(), "client", j.Args.Client.String(), "try", j.Attempt, "error", err)
		w.tell(Retried, time.Since(began))
		return err
	}

	w.log.ErrorContext(ctx, "a report failed", "report", j.Args.Report.String(), "client", j.Args.Client.String(),
		"tries", j.Attempt, "error", err)
	w.tell(Failed, time.Since(began))
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	return errors.Join(err, w.fail(finish, j.Args.Client, j.Args.Report))
}

// Make makes a report, and says how that ended: nothing is done for a report that
// is made, has failed or has expired, and one whose client was archived fails.
func (w *Worker) Make(ctx context.Context, client domain.ClientID, id domain.ReportID) (Outcome, error) {
	t, err := w.db.AnyTenant(ctx, client)
	if domain.IsCode(err, domain.NotFound) {
		return Failed, w.fail(ctx, client, id)
	}
	if err != nil {
		return "", err
	}
	r, err := t.Report(ctx, id)
	switch {
	case domain.IsCode(err, domain.NotFound): // it has expired
		return "", nil
	case err != nil || r.Status != domain.ReportPending:
		return "", err
	}

	status, err := w.produce(ctx, t, r)
	switch {
	case err != nil:
		return "", err
	case status == domain.ReportReady:
		return Made, nil
	}
	return Failed, w.store.Delete(ctx, r)
}

// produce makes the file, uploads it and marks the report, whose status it returns:
// failed where the client was archived meanwhile.
func (w *Worker) produce(ctx context.Context, t *db.Tenant, r domain.Report) (domain.ReportStatus, error) {
	file, discard, err := scratch()
	if err != nil {
		return "", err
	}
	defer discard()
	if err := w.writer.Write(ctx, file, t, r); err != nil {
		return "", fmt.Errorf("write a report: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read a temporary file: %w", err)
	}
	if err := w.store.Put(ctx, r, file); err != nil {
		return "", err
	}
	return w.db.FinishReport(ctx, r.Client, r.ID, domain.ReportReady)
}

// fail marks a report as failed; one that is not there any more has expired.
func (w *Worker) fail(ctx context.Context, client domain.ClientID, id domain.ReportID) error {
	_, err := w.db.FinishReport(ctx, client, id, domain.ReportFailed)
	if domain.IsCode(err, domain.NotFound) {
		return nil
	}
	return err
}
