package domain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanicked reports that background work panicked. Its text may be shown to callers. The log has the panic.
var ErrPanicked = errors.New("something went wrong on our side; the service's log has the details")

// Recover runs one unit of background work (an email, a delivery, a sync run) and returns its error. If work panics,
// Recover logs the panic with its stack and the name of the work, action, and returns ErrPanicked. So a panic is a
// failed attempt, which ends neither the process nor other work. If the work starts goroutines, PanicToError and
// Repanic bring their panics to the goroutine of work.
func Recover(ctx context.Context, log *slog.Logger, action string, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "background work panicked", "doing", action, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			err = ErrPanicked
		}
	}()
	return work()
}

// RecoverValue is Recover for work that also returns a value. After a panic the value is zero.
func RecoverValue[T any](
	ctx context.Context, log *slog.Logger, action string, work func() (T, error),
) (value T, err error) {
	err = Recover(ctx, log, action, func() (err error) {
		value, err = work()
		return err
	})
	return value, err
}

// panicError is a panic of a goroutine, as an error for the goroutine that waits for it.
type panicError struct {
	value any
	stack []byte
}

// Error returns the panic with the stack of its goroutine.
func (c panicError) Error() string { return fmt.Sprintf("%v\n%s", c.value, c.stack) }

// PanicToError wraps the work of a goroutine of an errgroup. It converts a panic to an error. The goroutine that waits
// for the group passes the group's error to Repanic, which panics again.
func PanicToError(work func() error) func() error {
	return func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = panicError{p, debug.Stack()}
			}
		}()
		return work()
	}
}

// Repanic panics if err is or wraps a panic that PanicToError converted. Otherwise it returns err, which may be nil.
func Repanic(err error) error {
	var p panicError
	if errors.As(err, &p) {
		panic(p)
	}
	return err
}
