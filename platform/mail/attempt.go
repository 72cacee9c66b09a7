package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"partnerapi/domain"
)

const (
	// EndsWithin is how long a message that was begun may take until it is
	// marked as sent. A process that stops must give it that time.
	EndsWithin = sendWithin + markWithin
	// markWithin is what a mail may take beyond the time of its job, so that
	// one that was sent can be marked although the job's time is up.
	markWithin = 10 * time.Second
	// askAgain is when a mail that another worker holds is looked at again.
	askAgain = 10 * time.Second
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

// Held is what a job returns for a mail that it could not get hold of: held and
// err are what was told of that. It is nil where the job holds the mail.
func Held(held bool, err error) error {
	switch {
	case domain.IsCode(err, domain.NotFound):
		return river.JobCancel(err)
	case err != nil:
		return err
	case !held:
		return river.JobSnooze(askAgain)
	}
	return nil
}

// Attempt writes a mail and hands it to the sender, as long as ctx lasts, and
// has it marked what became of it: sent, or failed where it was refused for good
// or this was the last try. An error means that it is to be tried again.
func Attempt(ctx context.Context, to Sender, write func() (Message, error), last bool, sent func(Message) error, failed func(reason string) error) error {
	message, err := write()
	if err == nil {
		err = to.Send(ctx, message)
	}
	var refused *RefusedError
	switch {
	case err == nil:
		return sent(message)
	case errors.Is(err, ErrNotBegun): // which was no try: it is put back as if nobody had taken it
		return river.JobSnooze(beginAgain)
	case errors.As(err, &refused):
		return failed(refused.Reason)
	case last:
		return failed(fmt.Sprintf("given up: %v", err))
	}
	return err
}
