package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

const (
	// maintainEvery is how often one of the processes maintains reports, and pollMaintenance
	// how often each process checks whether maintenance is due.
	maintainEvery   = 5 * time.Minute
	pollMaintenance = 30 * time.Second
	// retryClaim is the pause after a claim that failed.
	retryClaim = time.Second
	// maintainBatch is the maximum number of expired reports that one maintenance deletes.
	maintainBatch = 500
)

// Maintainer does the periodic maintenance of reports. It queues the monthly reports that clients get by email, and
// deletes expired reports: first the file and then the row, so that no file is left without a row.
type Maintainer struct {
	db    *db.DB
	store *Store
	log   *slog.Logger
	trace domain.Trace
}

// NewMaintainer returns a Maintainer that makes a span of each maintenance with trace.
func NewMaintainer(d *db.DB, store *Store, log *slog.Logger, trace domain.Trace) *Maintainer {
	return &Maintainer{db: d, store: store, log: log, trace: trace}
}

// Run maintains reports until ctx ends, every maintainEvery unless another process does it.
func (m *Maintainer) Run(ctx context.Context) {
	lease.NewLoop(m.log, "care for reports", retryClaim, m.maintainIfDue).Run(ctx)
}

// maintainIfDue maintains reports if that is due and no other process does it. The next maintenance is due after
// maintainEvery, failed or not, or at once if ctx ended: an error is then returned, not recorded.
func (m *Maintainer) maintainIfDue(ctx context.Context) (wait time.Duration, err error) {
	l, err := m.db.ClaimPeriodic(ctx, db.ReportCare, leaseFor)
	if err != nil || l == nil { // nil: not due, or another process does it
		return pollMaintenance, err
	}
	within, cancel := context.WithTimeout(ctx, MakeWithin)
	defer cancel()
	within, end := m.trace.Begin(within, "job "+db.ReportCare)
	err = domain.Recover(within, m.log, "care for reports", func() error { return m.Maintain(within) })
	end(err)

	finishCtx, done := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer done()
	due := m.db.Now()
	if ctx.Err() == nil {
		due = due.Add(maintainEvery)
	}
	return pollMaintenance, errors.Join(err, m.db.FinishPeriodic(finishCtx, l, due, err != nil && ctx.Err() == nil))
}

// Maintain queues the monthly reports that are due, and then deletes expired reports, even after an error of queueing.
func (m *Maintainer) Maintain(ctx context.Context) error {
	n, err := reports.QueueMonthlyReports(ctx, m.db)
	if n > 0 {
		m.log.InfoContext(ctx, "monthly reports queued", "reports", n)
	}
	return errors.Join(err, m.expire(ctx))
}

// expire deletes expired reports. If a file cannot be deleted, its row stays for the next time, and the other reports
// are deleted.
func (m *Maintainer) expire(ctx context.Context) error {
	expired, err := m.db.ExpiredReports(ctx, maintainBatch)
	if err != nil {
		return err
	}
	var withoutFile []domain.Report
	var failures []error
	for _, r := range expired {
		if err := m.store.Delete(ctx, r); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.ID, err))
			continue
		}
		withoutFile = append(withoutFile, r)
	}
	if len(failures) > 0 {
		m.log.WarnContext(ctx, "files of expired reports were not deleted; the deletion will be retried",
			"files", len(failures), "error", failures[0])
	}
	if len(withoutFile) == 0 {
		return nil
	}
	return reports.DeleteReports(ctx, m.db, withoutFile)
}
