package directory

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
)

// Opener decrypts sealed secrets. A secret that was sealed for one context cannot be opened for another.
type Opener interface {
	Open(sealed, context []byte) ([]byte, error)
}

// SealContext returns the context that binds a client's sealed directory credentials to the client (see Opener).
func SealContext(client domain.ClientID) []byte { return []byte("directory:" + client.UUID()) }

const (
	// leaseLife is how long a lease lasts, unless its process extends it: every extendEvery.
	leaseLife   = time.Minute
	extendEvery = leaseLife / 3
	// stalledAfter is how long a run may make no progress before it fails (decisions 8.14).
	stalledAfter = 30 * time.Minute
	// maxDeaths is the number of processes in a row that died while they worked on a run, without progress, at which
	// the run fails (decisions 8.14).
	maxDeaths = 3
	// longestWait bounds the pause between two attempts.
	longestWait = time.Minute
)

var (
	errStalled = errors.New("no progress for 30 minutes")
	errGuarded = errors.New("the guard stopped the run")
	errDeaths  = &failure{text: "three processes in a row ended during the run without progress"}
)

// Runner works on sync runs. It is safe for concurrent use.
type Runner struct {
	db      *db.DB
	keys    Opener
	connect Connect
	log     *slog.Logger
	// wait waits between two attempts; an error ends the run.
	wait func(context.Context, time.Duration) error
	// startTicker returns a channel that ticks whenever a lease is to be extended, until stop is called.
	startTicker func() (ticks <-chan time.Time, stop func())
	observer    Observer
	batchSize   int // of applied accounts
}

// Observer is notified of the work on runs.
type Observer struct {
	// Trace makes a span of the work on each run; nil for none.
	Trace domain.Trace
	// Ended, if not nil, is called with the outcome of the work on each run and its time in this process, by several
	// goroutines. The provider is empty if the connection was deleted.
	Ended func(provider domain.Directory, outcome Outcome, took time.Duration)
}

// Outcome is how a process's work on a run ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	// Stopped means that the guard against mass removals stopped the run, which counts as failed (decisions 8.14).
	Stopped Outcome = "stopped"
	// Interrupted means that the run waits for the next claim, or another process has claimed it.
	Interrupted Outcome = "interrupted"
)

// NewRunner returns a runner that decrypts credentials with keys, and creates sources with connect. If keys is
// nil, runs that must read a directory fail.
func NewRunner(d *db.DB, keys Opener, connect Connect, log *slog.Logger, observer Observer) *Runner {
	startTicker := func() (<-chan time.Time, func()) {
		ticker := time.NewTicker(extendEvery)
		return ticker.C, ticker.Stop
	}
	return &Runner{
		db: d, keys: keys, connect: connect, log: log, wait: domain.Pause, startTicker: startTicker, observer: observer,
		batchSize: dirsync.BatchSize,
	}
}

// Start creates a client's run and works on it, as Work does. force skips the guard against mass removals.
func (r *Runner) Start(
	ctx context.Context, client domain.ClientID, force bool, progress Progress,
) (domain.SyncRun, error) {
	lease, err := dirsync.Start(ctx, r.db, client, force, leaseLife)
	if err != nil {
		return domain.SyncRun{}, err
	}
	return r.Work(ctx, lease, progress)
}

// Progress is called with how many accounts a run has read and applied in this process.
type Progress func(read, applied int)

// Work works on a leased run to its end, and returns the completed or failed run. An error means that the work was
// interrupted, or another process has the run: it then continues at a later claim. progress may be nil.
func (r *Runner) Work(ctx context.Context, lease *dirsync.Lease, progress Progress) (domain.SyncRun, error) {
	began := time.Now()
	ctx, end := r.observer.Trace.Begin(ctx, "sync a directory", slog.String("provider", string(lease.Provider)))
	run, cause, err := r.workOn(ctx, lease, progress) // of a failed run, cause is set and err is nil

	outcome := Completed
	switch {
	case err != nil:
		outcome = Interrupted
	case errors.Is(cause, errGuarded): // the guard against mass removals
		outcome = Stopped
	case run.Status == domain.SyncFailed:
		outcome = Failed
	}
	if r.observer.Ended != nil {
		r.observer.Ended(lease.Provider, outcome, time.Since(began))
	}
	end(cause, slog.String("outcome", string(outcome)))
	return run, err
}

// workOn works on a leased run while a goroutine extends the lease, and returns the completed or failed run. cause is
// why it failed or was interrupted, or nil. err is nil unless the run was interrupted, or another process has it. After
// maxDeaths leases without progress, the run fails at once. If ctx ends, workOn releases the lease.
func (r *Runner) workOn(
	ctx context.Context, lease *dirsync.Lease, progress Progress,
) (run domain.SyncRun, cause, err error) {
	if lease.Deaths >= maxDeaths {
		run, err = r.fail(ctx, lease, errDeaths)
		return run, errDeaths, err
	}
	w := &activeRun{Runner: r, lease: lease, onProgress: progress}
	w.progressAt.Store(int64(r.db.Elapsed()))
	runCtx, cancel := context.WithCancelCause(ctx)
	extendEnded := make(chan struct{})
	go func() {
		defer close(extendEnded)
		if err := domain.Recover(ctx, r.log, "extend the lease of a sync run", func() error {
			w.extend(runCtx, cancel)
			return nil
		}); err != nil {
			cancel(err)
		}
	}()
	run, err = domain.RecoverValue(ctx, r.log, "sync a directory", func() (domain.SyncRun, error) {
		return w.run(runCtx)
	})
	cancelCause := context.Cause(runCtx) // of w.extend, or of ctx
	cancel(nil)
	<-extendEnded

	switch {
	case err == nil:
		r.log.InfoContext(ctx, "directory synced", "client", lease.Client.String(), "created", run.Created,
			"updated", run.Updated, "deactivated", run.Deactivated, "merged", run.Merged, "unchanged", run.Unchanged,
			"without_email", run.WithoutEmail)
		return run, nil, nil
	case errors.Is(err, db.ErrLeaseLost), errors.Is(cancelCause, db.ErrLeaseLost):
		return run, db.ErrLeaseLost, db.ErrLeaseLost
	case ctx.Err() != nil:
		return run, ctx.Err(), errors.Join(ctx.Err(), dirsync.Release(context.WithoutCancel(ctx), r.db, lease))
	case errors.Is(cancelCause, errStalled):
		err = stallFailure(err)
	}
	cause = err
	run, err = r.fail(ctx, lease, err)
	return run, cause, err
}

// stallFailure returns the failure of a run that made no progress. The text names the cause: err, or no answer of the
// directory if err is only the cancellation by extend.
func stallFailure(err error) error {
	if errors.Is(err, context.Canceled) {
		return &failure{errStalled.Error() + ": the directory did not respond, or asked to wait longer", err}
	}
	return &failure{errStalled.Error() + ": " + redact(err), err}
}

// failure is an error with a text for the client.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// sourceFailure returns a failure caused by err, an error of a source. The client is shown the text of err.
func sourceFailure(err error) error { return &failure{err.Error(), err} }

// redact returns a text about err for the client: a failure's own text or, because other errors are only logged, a
// general text.
func redact(err error) string {
	var failed *failure
	switch {
	case errors.As(err, &failed):
		return failed.text
	case domain.IsCode(err, domain.Unavailable):
		return "the database could not be reached"
	}
	return domain.ErrPanicked.Error() // a general text, also for errors that are no panic
}

// fail ends a run as failed, with the redacted text of err.
func (r *Runner) fail(ctx context.Context, lease *dirsync.Lease, err error) (domain.SyncRun, error) {
	r.log.WarnContext(ctx, "a directory sync failed", "client", lease.Client.String(), "error", err)
	return dirsync.Fail(ctx, r.db, lease, redact(err))
}

// activeRun is a run in progress.
type activeRun struct {
	*Runner
	lease         *dirsync.Lease
	onProgress    Progress // may be nil
	read, applied int
	progressAt    atomic.Int64 // the time of the last progress, by Elapsed
}

// recordProgress records the time of progress, and passes the counts to onProgress, if it is set.
func (w *activeRun) recordProgress() {
	w.progressAt.Store(int64(w.db.Elapsed()))
	if w.onProgress != nil {
		w.onProgress(w.read, w.applied)
	}
}

// isStalled reports whether the run has made no progress for too long.
func (w *activeRun) isStalled() bool {
	return w.db.Elapsed()-time.Duration(w.progressAt.Load()) >= stalledAfter
}

// extend extends the lease until ctx ends, at each tick and after the clock was set. It cancels the run if the lease is lost or the run stalls.
func (w *activeRun) extend(ctx context.Context, cancel context.CancelCauseFunc) {
	ticks, stop := w.startTicker()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.db.Stepped():
		case <-ticks:
		}
		if w.isStalled() {
			cancel(errStalled)
			return
		}
		switch err := dirsync.Extend(ctx, w.db, w.lease); {
		case errors.Is(err, db.ErrLeaseLost):
			cancel(err)
			return
		case err != nil && ctx.Err() == nil:
			w.log.WarnContext(ctx, "the lease of a sync run was not extended; the extension will be retried", "error", err)
		}
	}
}

// run continues the run from its stored stage: it reads the directory, checks the number of removals, applies the
// accounts, and finishes the run. Each of the first two steps sets the lease's next stage.
func (w *activeRun) run(ctx context.Context) (run domain.SyncRun, err error) {
	if w.lease.Stage == dirsync.Reading {
		source, err := w.openSource()
		if err != nil {
			return run, err
		}
		if err := w.retry(ctx, func() error { return w.readAll(ctx, source) }); err != nil {
			return run, err
		}
	}
	if w.lease.Stage == dirsync.Checking {
		if err := w.retry(ctx, func() error { return w.check(ctx) }); err != nil {
			return run, err
		}
	}
	if err := w.retry(ctx, func() error { return w.applyAll(ctx) }); err != nil {
		return run, err
	}
	err = w.retry(ctx, func() error {
		run, err = dirsync.Finish(ctx, w.db, w.lease)
		return err
	})
	return run, err
}

// openSource creates the source of the run's connection. It returns a failure if the connection was deleted or its
// credentials cannot be decrypted, or if connect rejects it.
func (w *activeRun) openSource() (Source, error) {
	if w.lease.Provider == "" {
		return nil, &failure{text: "directory sync is no longer configured for this client"}
	}
	if w.keys == nil {
		return nil, &failure{text: "the directory's credentials cannot be decrypted, as the service has no --encryption-key"}
	}
	credentials, err := w.keys.Open(w.lease.Credentials, SealContext(w.lease.Client))
	if err != nil {
		return nil, &failure{"the directory's credentials cannot be decrypted; run the service with the --encryption-key " +
			"that they were stored with, or store them again with \"partnerapi directory connect\"", err}
	}
	source, err := w.connect(w.lease.Provider, w.lease.Settings, credentials)
	if err != nil {
		return nil, sourceFailure(err)
	}
	return source, nil
}

// retry repeats try, with backoff, while its error is Temporary or the database is unavailable. It ends when the run
// stalls or wait fails. The backoff starts again after progress.
func (w *activeRun) retry(ctx context.Context, try func() error) error {
	for tries := 0; ; tries++ {
		lastProgress := w.progressAt.Load()
		err := try()
		var temporary *Temporary
		if err == nil || !errors.As(err, &temporary) && !domain.IsCode(err, domain.Unavailable) {
			return err
		}
		if w.progressAt.Load() != lastProgress {
			tries = 0
		}
		if w.isStalled() {
			return stallFailure(err)
		}
		pause := min(time.Second<<min(tries, 10), longestWait)
		w.log.InfoContext(ctx, "a directory sync waits before it retries", "client", w.lease.Client.String(),
			"in", pause, "error", err)
		if waitErr := w.wait(ctx, pause); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

// readAll stages the directory's accounts, from the run's position to the last page. It reads from the start again if
// the position is foreign or, once in a run, if it has expired. Any other error of the source is a failure.
func (w *activeRun) readAll(ctx context.Context, source Source) error {
	for page, err := range source.Read(ctx, w.lease.Position) {
		if errors.Is(err, ErrStartOver) {
			expired := !errors.Is(err, errForeign)
			if expired && w.lease.StartedOver {
				return sourceFailure(err)
			}
			if err := dirsync.StartOver(ctx, w.db, w.lease, expired); err != nil {
				return err
			}
			return w.readAll(ctx, source)
		}
		if err != nil {
			return sourceFailure(err)
		}
		if err := dirsync.StagePage(ctx, w.db, w.lease, dirsync.Page(page)); err != nil {
			return err
		}
		w.read += len(page.Accounts)
		w.recordProgress()
		if page.Last {
			return nil
		}
	}
	return sourceFailure(&Temporary{errors.New("the directory's response ended before its last page")})
}

// check applies the guard against mass removals. If it refuses the run, the error is a failure caused by errGuarded.
func (w *activeRun) check(ctx context.Context) error {
	refusal, err := dirsync.Check(ctx, w.db, w.lease)
	if err == nil && refusal != "" {
		err = &failure{refusal, errGuarded}
	}
	return err
}

// applyAll applies the staged accounts in batches.
func (w *activeRun) applyAll(ctx context.Context) error {
	for {
		n, err := dirsync.Apply(ctx, w.db, w.lease, w.batchSize)
		if err != nil || n == 0 {
			return err
		}
		w.applied += n
		w.recordProgress()
	}
}
