// Package runner runs the background work: it takes the jobs that operations
// enqueued from the database, tries those that failed again, and takes over
// those of a process that died.
package runner

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"partnerapi/db"
	"partnerapi/job"
)

const (
	// JobTimeout is how long one job may take.
	JobTimeout = time.Minute
	// StopWithin is how long the jobs under way may take after a stop, which
	// tells them not to begin anything more.
	StopWithin = 50 * time.Second
	// rescueAfter is when a job under way is taken to be that of a process that
	// died: later than any job ends, and marks what it did. With the half
	// minute between two looks for such jobs, a restart goes on with all of
	// them within two minutes.
	rescueAfter = 75 * time.Second
	// pollEvery is how often the database is asked for jobs; nothing tells of
	// new ones through database/sql.
	pollEvery = 500 * time.Millisecond
	// cooldown is the least time between two fetches while jobs are plenty.
	cooldown = 50 * time.Millisecond
)

// DefaultWorkers is how many jobs run at a time in one process.
const DefaultWorkers = 50

// Conns is how many connections a database needs for so many workers: each job
// may hold one while it waits for the world, and the runner needs its own.
func Conns(workers int) int { return workers + 5 }

// Runner runs background work.
type Runner struct {
	client *river.Client[*sql.Tx]
	log    *slog.Logger
}

// New returns a runner on a database that has Conns(workers) connections to
// spare. Each of register adds the workers of one part of the service.
func New(d *db.DB, workers int, log *slog.Logger, register ...func(*river.Workers)) (*Runner, error) {
	all := river.NewWorkers()
	for _, add := range register {
		add(all)
	}
	client, err := river.NewClient(riverdatabasesql.New(d.SQL()), &river.Config{
		Queues:  map[string]river.QueueConfig{job.Mail: {MaxWorkers: workers}},
		Workers: all, Logger: log.With("part", "background work"),
		JobTimeout: JobTimeout, RescueStuckJobsAfter: rescueAfter, RetryPolicy: backoff{},
		FetchPollInterval: pollEvery, FetchCooldown: cooldown, PollOnly: true,
	})
	if err != nil {
		return nil, fmt.Errorf("configure the background work: %w", err)
	}
	return &Runner{client: client, log: log}, nil
}

// startEvery is how long to wait for a database that is away when the work is
// to begin.
const startEvery = time.Second

// start begins the work, and tries again while the database is away: requests
// are answered 503 meanwhile, and go on by themselves too. It reports false
// when ctx ended before that.
func (r *Runner) start(ctx, lasting context.Context) bool {
	for {
		err := r.client.Start(lasting)
		if err == nil {
			return true
		}
		r.log.WarnContext(ctx, "the background work cannot begin; it will be tried again", "error", err)
		_ = r.client.Stop(lasting) // which failed to start, but counts as running until it is stopped
		select {
		case <-ctx.Done():
			return false
		case <-time.After(startEvery):
		}
	}
}

// Run works until ctx ends. Then it takes no more jobs, and cancels the contexts
// of those under way: what a job has begun it finishes, and what it has not it
// puts back. What is left even then is taken over by the next process.
func (r *Runner) Run(ctx context.Context) error {
	lasting := context.WithoutCancel(ctx)
	if !r.start(ctx, lasting) {
		return nil
	}
	<-ctx.Done()
	finish, cancel := context.WithTimeout(lasting, StopWithin)
	defer cancel()
	if err := r.client.StopAndCancel(finish); err != nil {
		return fmt.Errorf("stop the background work: %w", err)
	}
	return nil
}
