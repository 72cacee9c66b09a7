package directory

import (
	"context"
	"sync"
	"time"

	"partnerapi/db"
	"partnerapi/platform/lease"
)

const (
	// atOnce is how many runs a process works on at a time.
	atOnce = 4
	// pollEvery is how often waiting runs and the schedule are polled.
	pollEvery = 5 * time.Second
	// stopWithin is how long runs under way may take to be given back after a stop.
	stopWithin = 30 * time.Second
)

// Run queues runs on schedule and works on all that wait, until ctx ends: a run
// under way is then left to the next process. The error says that it could not be given
// back within stopWithin.
func (r *Runner) Run(ctx context.Context) error {
	runs := lease.NewQueue(lease.Config[*db.SyncLease]{
		Name: "sync runs", Log: r.log, Claim: r.claim, Do: r.workQueued, Concurrency: atOnce, StopWithin: stopWithin,
	})
	schedule := lease.NewLoop(r.log, "queue sync runs on schedule", pollEvery,
		func(ctx context.Context) (time.Duration, error) {
			n, err := r.db.ScheduleSyncs(ctx)
			if n == 0 || err != nil {
				return pollEvery, err
			}
			r.log.DebugContext(ctx, "sync runs queued on schedule", "clients", n)
			runs.Wake()
			return 0, nil
		})

	var scheduling sync.WaitGroup
	defer scheduling.Wait()
	scheduling.Go(func() { schedule.Run(ctx) })
	return runs.Run(ctx)
}

// claim claims the run that has waited longest.
func (r *Runner) claim(ctx context.Context, _ int) ([]*db.SyncLease, time.Duration, error) {
	l, err := r.db.ClaimSync(ctx, leaseLife)
	if err != nil || l == nil {
		return nil, pollEvery, err
	}
	return []*db.SyncLease{l}, 0, nil
}

// workQueued works on a run that waited.
func (r *Runner) workQueued(ctx context.Context, l *db.SyncLease) {
	if _, err := r.Work(ctx, l, nil); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "a sync run was interrupted; it goes on when its lease has ended",
			"client", l.Client.String(), "error", err)
	}
}
