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
	// careEvery is how often one of the processes cares for reports, and pollCare how
	// often each of them finds out whether it is time.
	careEvery = 5 * time.Minute
	pollCare  = 30 * time.Second
	// retryClaim is the pause after a claim that failed.
	retryClaim = time.Second
	// careBatch is how many reports are cared for in one go.
	careBatch = 500
)

// Carer cares for what time leaves behind. It deletes reports that have expired: first
// the file and then the row, so that no file is left that no row names. And it queues
// the reports of the last month that clients get by mail.
type Carer struct {
	db    *db.DB
	store *Store
	log   *slog.Logger
	trace domain.Trace
}

// NewCarer returns a carer that makes a span of each time by trace.
func NewCarer(d *db.DB, store *Store, log *slog.Logger, trace domain.Trace) *Carer {
	return &Carer{db: d, store: store, log: log, trace: trace}
}

// Run cares until ctx ends, every five minutes unless another process does.
func (c *Carer) Run(ctx context.Context) {
	lease.NewLoop(c.log, "care for reports", retryClaim, c.turn).Run(ctx)
}

// turn cares if it is time.
func (c *Carer) turn(ctx context.Context) (wait time.Duration, err error) {
	l, err := c.db.ClaimPeriodic(ctx, db.ReportCare, leaseFor)
	if err != nil || l == nil {
		return pollCare, err
	}
	within, cancel := context.WithTimeout(ctx, MakeWithin)
	defer cancel()
	within, end := c.trace.Begin(within, "job "+db.ReportCare)
	err = domain.Recover(within, c.log, "care for reports", func() error { return c.Care(within) })
	end(err)

	lasting, done := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer done()
	due := c.db.Now()
	if ctx.Err() == nil {
		due = due.Add(careEvery)
	}
	return pollCare, errors.Join(err, c.db.FinishPeriodic(lasting, l, due, err != nil && ctx.Err() == nil))
}

// Care cares once.
func (c *Carer) Care(ctx context.Context) error {
	n, err := reports.QueueMonthlyReports(ctx, c.db)
	if n > 0 {
		c.log.InfoContext(ctx, "monthly reports queued", "reports", n)
	}
	return errors.Join(err, c.expire(ctx))
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
	return reports.DeleteReports(ctx, c.db, gone)
}
