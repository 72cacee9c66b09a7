package directory

import (
	"context"
	"sync"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/platform/lease"
)

const (
	// maxConcurrentRuns is the maximum number of runs on which a process works at a time.
	maxConcurrentRuns = 4
	// pollEvery is how often waiting runs and the schedule are polled.
	pollEvery = 5 * time.Second
	// stopWithin is how long releasing the leases of runs in progress may take after a stop.
	stopWithin = 30 * time.Second
)

// Run queues scheduled runs and works on all queued runs until ctx ends; it then releases the runs in progress, for
// another process to continue. It returns an error if that takes longer than stopWithin.
func (r *Runner) Run(ctx context.Context) error {
	runs := lease.NewQueue(lease.Config[*dirsync.Lease]{
		Name: "sync runs", Log: r.log, Claim: r.claim, Do: r.workQueued, Concurrency: maxConcurrentRuns,
		StopWithin: stopWithin,
	})
	schedule := lease.NewLoop(r.log, "queue sync runs on schedule", pollEvery,
		func(ctx context.Context) (time.Duration, error) {
			n, err := dirsync.Schedule(ctx, r.db)
			if n == 0 || err != nil {
				return pollEvery, err
			}
			r.log.DebugContext(ctx, "sync runs queued on schedule", "clients", n)
			runs.Wake()
			return 0, nil // there may be more than one batch
		})

	var scheduling sync.WaitGroup
	defer scheduling.Wait()
	scheduling.Go(func() { schedule.Run(ctx) })
	return runs.Run(ctx)
}

// claim claims only the run that has waited longest. If there is one, the wait until the next claim is 0.
func (r *Runner) claim(ctx context.Context, _ /* free */ int) ([]*dirsync.Lease, time.Duration, error) {
	l, err := dirsync.Claim(ctx, r.db, leaseLife)
	if err != nil || l == nil {
		return nil, pollEvery, err
	}
	return []*dirsync.Lease{l}, 0, nil
}

// workQueued works on a claimed run. It logs an interruption, unless the process is stopping.
func (r *Runner) workQueued(ctx context.Context, l *dirsync.Lease) {
	if _, err := r.Work(ctx, l, nil); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "a sync run was interrupted; it continues when its lease ends",
			"client", l.Client.String(), "error", err)
	}
}
