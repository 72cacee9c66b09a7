package main

import (
	"context"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/lease"
)

// dailyRetry is when a daily refresh that failed, or that another process had
// begun, is looked at again.
const dailyRetry = 5 * time.Minute

// refreshDaily runs the daily refresh when it is due: at the start, and after
// each midnight (UTC).
func (w *background) refreshDaily(ctx context.Context) {
	_ = domain.Recover(ctx, w.log, "recount", func() error { recountDue(ctx, w.db, w.log); return nil }) // it is logged
	lease.NewLoop(w.log, "refresh daily", dailyRetry, w.refreshOnce).Run(ctx)
}

// refreshOnce refreshes what is due and returns how long to wait for the next.
func (w *background) refreshOnce(ctx context.Context) (wait time.Duration, err error) {
	now := w.db.Now()
	today := domain.DateOf(now)
	if due, err := w.db.RefreshDue(ctx); err != nil || !due {
		return today.AddDays(1).Time().Sub(now), err
	}
	start := time.Now()
	ran, err := w.db.DailyRefresh(ctx, today, func(done, total int) {
		w.log.DebugContext(ctx, "daily refresh", "users", done, "of", total)
	})
	if ran || err != nil {
		w.traces.Done(ctx, "daily refresh", start, err)
	}
	if err != nil || !ran { // another process is at it
		return dailyRetry, err
	}
	w.log.InfoContext(ctx, "daily refresh done", "day", today.String(), "took", time.Since(start))
	recountDue(ctx, w.db, w.log)
	return today.AddDays(1).Time().Sub(w.db.Now()), nil
}
