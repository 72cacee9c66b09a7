package main

import (
	"context"
	"log/slog"
	"time"

	"partnerapi/platform/lease"
)

const (
	// aheadEvery is how often summaries are refreshed that are about to be stale:
	// often enough that none is stale before its turn comes.
	aheadEvery = 30 * time.Second
	// assignEvery is how often the background work polls for users who wait for a
	// course.
	assignEvery = time.Second
)

// refreshAhead keeps the summaries fresh of the clients that are read, so that
// reads do not have to.
func (w *background) refreshAhead(ctx context.Context) {
	lease.NewLoop(w.log, "refresh summaries ahead", aheadEvery, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		n, err := w.db.RefreshAhead(ctx)
		if n > 0 || err != nil {
			w.traces.Done(ctx, "refresh summaries ahead", began, err, slog.Int("clients", n))
			w.log.DebugContext(ctx, "summaries refreshed ahead", "clients", n)
		}
		return aheadEvery, err
	}).Run(ctx)
}

// assignWaiting gives courses to the users of large audiences, batch after batch.
func (w *background) assignWaiting(ctx context.Context) {
	lease.NewLoop(w.log, "assign courses", assignEvery, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		n, err := w.db.AssignWaiting(ctx)
		if n == 0 && err == nil {
			return assignEvery, nil
		}
		w.traces.Done(ctx, "assign courses", began, err, slog.Int("users", n))
		return 0, err
	}).Run(ctx)
}
