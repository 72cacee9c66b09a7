// Package lease does work that waits in a table of the database, such as emails,
// deliveries of events, sync runs and reports.
//
// A Queue claims due rows, each under a lease, and calls Do for each with no transaction open. Do marks the row, which
// succeeds only while the lease is held. After the clock was set, the queue renews the leases of its rows in progress.
// When a process dies, its leases end, and another process claims the rows. How rows are claimed and marked depends on
// the table (package db), and goes by the database's clock.
//
// Marks writes marks in groups. Loop is the poll by itself, for work that is not leased.
package lease

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/domain"
)

const (
	// retryClaim is the pause after a claim, or a listening connection, that failed.
	retryClaim = time.Second
	// recheckAfter bounds the wait of a full queue, which normally ends when a row is finished.
	recheckAfter = 10 * time.Second
)

// Config configures a Queue.
type Config[T any] struct {
	// Name is the word for the rows, in the plural.
	Name string
	Log  *slog.Logger
	// Claim leases at most free of the due rows, and returns how long to wait before the
	// next claim if nothing wakes the queue; 0, with or without rows, to claim again at once.
	Claim func(ctx context.Context, free int) (rows []T, wait time.Duration, err error)
	// Do works on a row, and marks it. It is called by several goroutines. Its context
	// ends when the queue is stopped; work in progress may continue (see Outlast).
	Do func(ctx context.Context, row T)
	// Concurrency is the maximum number of rows in progress at a time.
	Concurrency int
	// StopWithin is how long rows in progress may take after a stop.
	StopWithin time.Duration
	// Listen calls wake whenever there are new rows, until ctx ends or its connection
	// fails; it is then called again. If it is nil, the queue only polls.
	Listen func(ctx context.Context, wake func()) error
	// Renew extends the leases of the rows in progress. It is called after the clock was set, by which leases go: Stepped
	// returns a channel that is closed then (pg.DB.Stepped). If Renew is nil, Do renews its lease itself.
	Renew   func(ctx context.Context, rows []T) error
	Stepped func() <-chan struct{}
}

// Queue works on the rows of a table. Any number of processes may run one on the same table.
type Queue[T any] struct {
	Config[T]
	loop    *Loop
	rows    sync.WaitGroup // the rows in progress
	running atomic.Int64   // their number
	mu      sync.Mutex
	held    map[*T]struct{} // the rows in progress
	// full is true if claim found Concurrency rows in progress: a finished row then wakes the loop.
	full atomic.Bool
}

// NewQueue returns a queue, which claims nothing before Run.
func NewQueue[T any](c Config[T]) *Queue[T] {
	q := &Queue[T]{Config: c, held: map[*T]struct{}{}}
	q.loop = NewLoop(c.Log, "claim "+c.Name, retryClaim, q.claim)
	return q
}

// Wake makes the queue claim at once. It does not wait.
func (q *Queue[T]) Wake() { q.loop.Wake() }

// Run claims rows and calls Do for each until ctx ends, then waits for the rows in progress. It returns an error if
// they take longer than StopWithin: other processes claim them when their leases end.
func (q *Queue[T]) Run(ctx context.Context) error {
	if q.Renew != nil {
		renewCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // rows in progress are renewed after a stop too
		defer stop()
		go q.renewAfterSteps(renewCtx, q.Stepped())
	}
	var listening sync.WaitGroup
	if q.Listen != nil {
		listening.Go(func() { q.listen(ctx) })
	}
	q.loop.Run(ctx)
	listening.Wait()

	ended := make(chan struct{})
	go func() { q.rows.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-time.After(q.StopWithin):
		return fmt.Errorf("stop the background work: %s are still in progress", q.Name)
	}
}

// claim is the step of the loop: it claims at most as many rows as may start, and starts them. If Concurrency rows are
// in progress, it returns recheckAfter, and the next finished row wakes the loop earlier.
func (q *Queue[T]) claim(ctx context.Context) (wait time.Duration, err error) {
	q.full.Store(true) // before reading running, so that a row that finishes in between wakes the loop
	free := q.Concurrency - int(q.running.Load())
	if free <= 0 {
		return recheckAfter, nil
	}
	q.full.Store(false)

	var stepped <-chan struct{}
	if q.Renew != nil {
		stepped = q.Stepped()
	}
	rows, wait, err := q.Claim(ctx, free)
	q.start(ctx, rows)
	select {
	case <-stepped: // perhaps before the rows were held
		q.renew(ctx)
	default:
	}
	return wait, err
}

// renewAfterSteps renews the rows in progress whenever the clock was set, until ctx ends. stepped is that of Stepped.
func (q *Queue[T]) renewAfterSteps(ctx context.Context, stepped <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-stepped:
			stepped = q.Stepped() // before renewing, so that no step is missed
			q.renew(ctx)
		}
	}
}

// renew extends the leases of the rows in progress. While the database is unavailable it tries again, until ctx ends.
// It logs an error.
func (q *Queue[T]) renew(ctx context.Context) {
	err := RetryUnavailable(ctx, func() error {
		rows := q.inProgress()
		if len(rows) == 0 {
			return nil
		}
		return domain.Recover(ctx, q.Log, "renew "+q.Name, func() error { return q.Renew(ctx, rows) })
	})
	if err != nil && ctx.Err() == nil {
		q.Log.WarnContext(ctx, "leases were not renewed after the clock was set", "of", q.Name, "error", err)
	}
}

// inProgress returns the rows in progress.
func (q *Queue[T]) inProgress() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	rows := make([]T, 0, len(q.held))
	for row := range q.held {
		rows = append(rows, *row)
	}
	return rows
}

// start calls Do in a goroutine for each row. A panic is logged.
func (q *Queue[T]) start(ctx context.Context, rows []T) {
	for _, row := range rows {
		q.running.Add(1)
		q.mu.Lock()
		q.held[&row] = struct{}{}
		q.mu.Unlock()
		q.rows.Go(func() {
			defer q.finishRow(&row)
			_ = domain.Recover(ctx, q.Log, "work on "+q.Name, func() error { q.Do(ctx, row); return nil })
		})
	}
}

// finishRow counts a row as finished, and wakes the loop if claim found the queue full.
func (q *Queue[T]) finishRow(row *T) {
	q.mu.Lock()
	delete(q.held, row)
	q.mu.Unlock()
	q.running.Add(-1)
	if q.full.Load() {
		q.Wake()
	}
}

// listen calls Listen until ctx ends. It logs each return, also one without an error, and pauses for retryClaim.
func (q *Queue[T]) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := domain.Recover(ctx, q.Log, "listen for "+q.Name, func() error { return q.Listen(ctx, q.Wake) })
		if ctx.Err() == nil {
			q.Log.DebugContext(ctx, "cannot listen for notifications; polling the table meanwhile", "of", q.Name, "error", err)
			_ = domain.Pause(ctx, retryClaim)
		}
	}
}

// Outlast returns a context that ends grace after ctx ends, to finish work that was started before a stop. The returned
// function must be called when the work is finished.
func Outlast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = domain.Pause(longer, grace)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// Backoff holds the pauses after failed attempts at a row. The last pause repeats.
type Backoff []time.Duration

// After returns the pause after a number of failed attempts; 0 counts as 1. It has 10% jitter, so that rows that
// failed together are not all retried together.
func (p Backoff) After(attempts int) time.Duration {
	pause := p[min(max(attempts, 1), len(p))-1]
	return pause - pause/10 + rand.N(pause/5)
}
