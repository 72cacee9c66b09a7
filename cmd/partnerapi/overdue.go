package main

import (
	"context"
	"time"

	"partnerapi/platform/lease"
)

// overdueEvery is how often assignments that became overdue are looked up: their
// events are recorded within 10 minutes (decisions 8.1).
const overdueEvery = 2 * time.Minute

// noteOverdue records the events of assignments that became overdue.
func (w *background) noteOverdue(ctx context.Context) {
	lease.NewLoop(w.log, "note overdue assignments", overdueEvery, func(ctx context.Context) (time.Duration, error) {
		n, more, err := w.db.NoteOverdue(ctx)
		if n > 0 {
			w.log.DebugContext(ctx, "overdue assignments noted", "assignments", n)
		}
		if more {
			return 0, err
		}
		return overdueEvery, err
	}).Run(ctx)
}
