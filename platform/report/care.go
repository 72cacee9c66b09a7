package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
)

// Carer cares for what crashes and time leave behind. It queues pending reports
// that have no job, as a demonstration's have not, and fails those whose job has
// ended: a process that is killed in a report's last try cannot say so. It deletes
// reports that have expired: first the file and then the row, so that no file is left
// that no row names. And it queues the reports of the last month that clients get by
// mail.
type Carer struct {
	river.WorkerDefaults[job.CareArgs]
	db    *db.DB
	queue *job.Queue
	store *Store
	log   *slog.Logger
}

// NewCarer returns a carer.
func NewCarer(d *db.DB, queue *job.Queue, store *Store, log *slog.Logger) *Carer {
	return &Carer{db: d, queue: queue, store: store, log: log}
}

// careBatch is how many reports are cared for in one go.
const careBatch = 500

// Work cares once.
func (c *Carer) Work(ctx context.Context, _ *river.Job[job.CareArgs]) error {
	return errors.Join(c.settle(ctx), c.expire(ctx), c.month(ctx))
}

// month queues the monthly reports where that is due.
func (c *Carer) month(ctx context.Context) error {
	n, err := c.db.QueueMonthlyReports(ctx, func(ctx context.Context, reports []db.ReportKey) error {
		list := make([]job.ReportArgs, len(reports))
		for i, r := range reports {
			list[i] = job.ReportArgs{Client: r.ClientID, Report: r.ID}
		}
		return c.queue.MakeMonthly(ctx, c.db, list)
	})
	if n > 0 {
		c.log.InfoContext(ctx, "monthly reports queued", "reports", n)
	}
	return err
}

// settle queues the pending reports that have no job, and fails those whose job
// has ended.
func (c *Carer) settle(ctx context.Context) error {
	pending, err := c.db.PendingReports(ctx, c.db.Now(), careBatch)
	if err != nil {
		return err
	}
	for _, r := range pending {
		err := c.db.Tx(ctx, func(ctx context.Context) error {
			return c.queue.MakeReport(ctx, c.db, job.ReportArgs{Client: r.ClientID, Report: r.ID})
		})
		if errors.Is(err, job.ErrJobEnded) {
			err = c.fail(ctx, r)
		}
		if err != nil && !domain.IsCode(err, domain.NotFound) {
			return err
		}
	}
	return nil
}

// fail marks a report as failed whose job has ended. It may be ready by now.
func (c *Carer) fail(ctx context.Context, r db.ReportKey) error {
	status, err := c.db.FinishReport(ctx, r.ClientID, r.ID, domain.ReportFailed)
	if err == nil && status == domain.ReportFailed {
		c.log.ErrorContext(ctx, "a report failed: its last try ended with its process",
			"report", r.ID.String(), "client", r.ClientID.String())
	}
	return err
}

// expire deletes the reports that are older than they are kept. A file that cannot
// be deleted keeps its row, for the next time, and does not keep the others.
func (c *Carer) expire(ctx context.Context) error {
	old, err := c.db.ExpiredReports(ctx, careBatch)
	if err != nil {
		return err
	}
	var gone []domain.Report
	var failures []error
	for _, r := range old {
		if err := c.store.Delete(ctx, r); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.ID, err))
			continue
		}
		gone = append(gone, r)
	}
	if len(failures) > 0 {
		c.log.WarnContext(ctx, "files of expired reports were not deleted; it will be tried again",
			"files", len(failures), "error", failures[0])
	}
	if len(gone) == 0 {
		return nil
	}
	return c.db.DeleteReports(ctx, gone)
}
