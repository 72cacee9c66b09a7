package main

import (
	"context"
	"time"

	"partnerapi/domain"
)

// dailyRetry is when a daily refresh that failed, or that another process had
// begun, is looked at again.
const dailyRetry = 5 * time.Minute

// refreshDaily runs the daily refresh when it is due: at the start, and after
// each midnight (UTC).
func (w *background) refreshDaily(ctx context.Context) {
	for pause(ctx, w.refreshOnce(ctx)) {
	}
}

// pause waits for a time, and reports false where ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// refreshOnce refreshes what is due and returns how long to wait for the next.
func (w *background) refreshOnce(ctx context.Context) time.Duration {
	now := w.db.Now()
	today := domain.DateOf(now)
	if due, err := w.db.RefreshDue(ctx); err != nil || !due {
		if ctx.Err() != nil {
			return dailyRetry // the service stops
		}
		if err != nil {
			w.log.WarnContext(ctx, "whether the daily refresh is due cannot be read; it will be tried again", "error", err)
			return dailyRetry
		}
		return today.AddDays(1).Time().Sub(now)
	}
	start := time.Now()
	ran, err := w.db.DailyRefresh(ctx, today, func(done, total int) {
		w.log.DebugContext(ctx, "daily refresh", "users", done, "of", total)
	})
	if ran || err != nil {
		w.traces.Done(ctx, "daily refresh", start, err)
	}
	switch {
	case err != nil:
		w.log.WarnContext(ctx, "the daily refresh failed; it will be tried again", "error", err)
		return dailyRetry
	case !ran: // another process is at it
		return dailyRetry
	}
	w.log.InfoContext(ctx, "daily refresh done", "day", today.String(), "took", time.Since(start))
	return today.AddDays(1).Time().Sub(w.db.Now())
}
