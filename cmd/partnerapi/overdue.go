package main

import (
	"context"
	"time"
)

// overdueEvery is how often it is looked for assignments that became overdue: their
// events are recorded within 10 minutes (decisions 8.1).
const overdueEvery = 2 * time.Minute

// noteOverdue records the events of assignments that became overdue.
func (w *background) noteOverdue(ctx context.Context) {
	tick := time.NewTicker(overdueEvery)
	defer tick.Stop()
	for {
		n, more, err := w.db.NoteOverdue(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "overdue assignments were not noted; it will be tried again", "error", err)
		}
		if n > 0 {
			w.log.DebugContext(ctx, "overdue assignments noted", "assignments", n)
		}
		if more && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
