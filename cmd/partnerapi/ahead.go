package main

import (
	"context"
	"log/slog"
	"time"
)

// aheadEvery is how often summaries are refreshed that are about to be stale:
// often enough that none is stale before its turn comes.
const aheadEvery = 30 * time.Second

// refreshAhead keeps the summaries fresh of the clients that are read, so that
// reads do not have to.
func (w *background) refreshAhead(ctx context.Context) {
	tick := time.NewTicker(aheadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		n, err := w.db.RefreshAhead(ctx)
		if n > 0 || err != nil {
			w.traces.Done(ctx, "refresh summaries ahead", began, err, slog.Int("clients", n))
		}
		switch {
		case ctx.Err() != nil: // the service stops
		case err != nil:
			w.log.WarnContext(ctx, "summaries were not refreshed ahead; reads refresh them", "error", err)
		case n > 0:
			w.log.DebugContext(ctx, "summaries refreshed ahead", "clients", n)
		}
	}
}

// assignEvery is how often the background work looks for users who wait for a
// course.
const assignEvery = time.Second

// assignWaiting gives courses to the users of large audiences, batch after batch.
func (w *background) assignWaiting(ctx context.Context) {
	tick := time.NewTicker(assignEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		n, err := w.db.AssignWaiting(ctx)
		if n > 0 || err != nil {
			w.traces.Done(ctx, "assign courses", began, err, slog.Int("users", n))
		}
		if err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "courses were not assigned; it will be tried again", "error", err)
		}
		if n > 0 && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
