package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

const (
	// EndsWithin is how long a message that was begun may take until it is
	// marked as sent. A process that stops must give it that time.
	EndsWithin = sendWithin + markWithin
	// markWithin is what a mail may take beyond the time of its job, so that
	// one that was sent can be marked although the job's time is up.
	markWithin = 10 * time.Second
	// AskAgain is when a mail that another worker holds is looked at again.
	AskAgain = 10 * time.Second
	// beginAgain is when a mail that was not begun is looked at again.
	beginAgain = 3 * time.Second
)

// Outlast is the context of the transaction that marks a mail: a cancelled job
// does not end it, but time does.
func Outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadline(lasting, end.Add(markWithin))
	}
	return lasting, func() {}
}

// GivenUp reports whether a mail that failed with the error is not to be tried
// again, and why: it was refused for good, or this was the last try.
func GivenUp(err error, last bool) (reason string, yes bool) {
	var refused *Refused
	switch {
	case errors.Is(err, ErrNotBegun): // which was no try
	case errors.As(err, &refused):
		return refused.Reason, true
	case last:
		return fmt.Sprintf("given up: %v", err), true
	}
	return "", false
}

// TryAgain is what a job returns for the error of a mail that is not given up.
// One that was not begun is put back as if nobody had taken it.
func TryAgain(err error) error {
	if errors.Is(err, ErrNotBegun) {
		return river.JobSnooze(beginAgain)
	}
	return err
}
