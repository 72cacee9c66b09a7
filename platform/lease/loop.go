package lease

import (
	"context"
	"log/slog"
	"time"

	"partnerapi/domain"
)

// Loop repeats one step of background work.
type Loop struct {
	log   *slog.Logger
	doing string
	retry time.Duration
	step  func(context.Context) (wait time.Duration, err error)
	wake  chan struct{}
}

// NewLoop returns a loop. step returns how long to wait before the next step, 0 if there is more to do. After an
// error or a panic of step the wait is retry. doing names the step in the log.
func NewLoop(
	log *slog.Logger, doing string, retry time.Duration, step func(context.Context) (wait time.Duration, err error),
) *Loop {
	return &Loop{log: log, doing: doing, retry: retry, step: step, wake: make(chan struct{}, 1)}
}

// Wake ends the wait between two steps, except after an error. It does not wait.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // Wake was called before
	}
}

// Run repeats the step until ctx ends. After an error it logs and waits l.retry; otherwise it waits as long as the step
// says, or until Wake.
func (l *Loop) Run(ctx context.Context) {
	for failing := false; ; {
		wait, err := domain.RecoverValue(ctx, l.log, l.doing, func() (time.Duration, error) { return l.step(ctx) })
		if ctx.Err() != nil {
			return
		}
		l.logChange(ctx, err, failing)
		failing = err != nil

		switch {
		case failing:
			_ = domain.Pause(ctx, l.retry)
		case wait > 0:
			l.sleep(ctx, wait)
		}
	}
}

// logChange logs the first of successive errors as a warning and the others at the level debug. It logs the first
// success after an error, and no other success. failing is true if the previous step failed.
func (l *Loop) logChange(ctx context.Context, err error, failing bool) {
	level := slog.LevelWarn
	switch {
	case err == nil && failing:
		l.log.InfoContext(ctx, "background work continues", "doing", l.doing)
		return
	case err == nil:
		return
	case failing:
		level = slog.LevelDebug
	}
	l.log.Log(ctx, level, "background work failed; it will be retried", "doing", l.doing, "error", err)
}

// sleep waits until wait has passed, Wake is called or ctx ends.
func (l *Loop) sleep(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-timer.C:
	}
}
