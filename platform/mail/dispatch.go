package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

const (
	// tryWithin is the maximum time of one attempt at an email, from the claim on.
	tryWithin = time.Minute
	// markWithin is the maximum time for marking an email after that, so that an email that was sent at the last moment is
	// marked too.
	markWithin = 10 * time.Second
	// leaseFor is how long a claim lasts: longer than any attempt with its mark. After that time, other processes claim
	// the emails of a process that died.
	leaseFor = tryWithin + markWithin + 5*time.Second
	// StopWithin is how long the emails in progress may take after a stop.
	StopWithin = sendWithin + markWithin + 10*time.Second
	// restartAfter is the delay of an email whose attempt did not begin.
	restartAfter = 3 * time.Second
	// pollEvery is how often the outbox is polled without a notification: one may be lost with its connection.
	pollEvery = 10 * time.Second
	// pollAgain is the least pause between two polls while other processes hold the due emails.
	pollAgain = 50 * time.Millisecond
	// pollHeld is that pause while scheduled emails wait because the clock is not trusted.
	pollHeld = 2 * time.Second
	// marksAtOnce is the maximum number of emails that are marked in one transaction.
	marksAtOnce = 100
)

// DefaultWorkers is the default number of emails in progress per process.
const DefaultWorkers = 20

// Draft is a written email, or the reason why it must not be sent any more.
type Draft struct {
	Message  Message
	Unwanted string // the reason; empty for an email to be sent
	// SwitchedOff means that the client has switched off emails of this type.
	SwitchedOff bool
	// User is the client's user with the address; nil if there is none.
	User *domain.UserID
	// Due is the time at which the email was first due: domain.MailLife later it is given up.
	Due time.Time
}

// Writer writes one kind of email of the outbox.
type Writer interface {
	// Write writes a leased email. A *RefusedError or NotFound means that the email can never be written; other errors
	// are temporary.
	Write(ctx context.Context, l outbox.Lease) (Draft, error)
}

// Outcome is the outcome of an attempt to send an email.
type Outcome string

// The outcomes. An email that was requeued without an attempt has no outcome.
const (
	Sent    Outcome = "sent"
	Failed  Outcome = "failed"
	Retried Outcome = "retried"
	// Suppressed means that the client has switched off emails of this type.
	Suppressed Outcome = "suppressed"
	// Lost means that the lease ended before the email was marked.
	Lost Outcome = "lost"
)

// errUnmarked is returned for an email that was sent but not marked.
var errUnmarked = errors.New("it could not be marked as sent")

// Dispatcher sends the emails of the outbox (outbox.ClaimMails): it claims due emails, writes them, delivers them to
// a sender outside any transaction, and marks the outcome. Any number of dispatchers may work on one database.
//
// An email goes out twice only if, between the server's acceptance of the message and the commit of the mark, its
// process dies, panics, or loses the database or the server's answer: the email is then sent again, after a pause or
// when the lease ends. A marked email never goes out again.
type Dispatcher struct {
	db      *db.DB
	sender  Sender
	writers map[db.OutboxKind]Writer
	log     *slog.Logger
	observe func(db.OutboxKind, Outcome)
	turns   *outbox.MailTurns // used by one claim at a time
	queue   *lease.Queue[outbox.Lease]
	marks   *lease.Marks[outbox.SentMail]
	trace   domain.Trace
}

// NewDispatcher returns a dispatcher with a number of workers, at least 1, and a writer for each kind of email. It
// does not close the sender. observe, if not nil, is called with every outcome, by several goroutines. trace makes
// a span of each attempt and of its delivery to the sender; nil for none.
func NewDispatcher(
	d *db.DB, sender Sender, workers int, writers map[db.OutboxKind]Writer, log *slog.Logger,
	observe func(db.OutboxKind, Outcome), trace domain.Trace,
) *Dispatcher {
	if observe == nil {
		observe = func(db.OutboxKind, Outcome) {}
	}
	dispatcher := &Dispatcher{
		db: d, sender: sender, writers: writers, log: log, observe: observe, trace: trace, turns: outbox.NewMailTurns(),
	}
	dispatcher.marks = lease.NewMarks(lease.MarksConfig[outbox.SentMail]{
		Log: log, Doing: "mark emails as sent", MaxBatch: marksAtOnce, Within: markWithin, Write: dispatcher.markSent,
	})
	dispatcher.queue = lease.NewQueue(lease.Config[outbox.Lease]{
		Name: "emails", Log: log, Claim: dispatcher.claim, Do: dispatcher.try, Concurrency: workers, StopWithin: StopWithin,
		Listen:  func(ctx context.Context, wake func()) error { return d.ListenFor(ctx, db.OutboxChannel, wake) },
		Stepped: d.Stepped,
		Renew:   func(ctx context.Context, held []outbox.Lease) error { return db.RenewLeases(ctx, d, held, leaseFor) },
	})
	return dispatcher
}

// Run sends emails until ctx ends. Then it claims no more, finishes and marks an email being delivered, and requeues
// others at once. It returns an error if that takes longer than StopWithin: the emails that are left are sent again
// when their leases end.
func (d *Dispatcher) Run(ctx context.Context) error { return d.queue.Run(ctx) }

// claim leases up to free due emails, of the clients that are next in d.turns. wait is the time until the next call,
// unless err is set: 0 if there were due emails, pollEvery if no email waits, otherwise the time until one is due, from
// pollAgain (while the clock is not trusted: pollHeld) to pollEvery.
func (d *Dispatcher) claim(ctx context.Context, free int) (leases []outbox.Lease, wait time.Duration, err error) {
	leases, err = outbox.ClaimMails(ctx, d.db, d.turns, free, leaseFor)
	if err != nil || len(leases) > 0 {
		return leases, 0, err
	}
	due, ok, err := outbox.MailDue(ctx, d.db)
	if err != nil || !ok {
		return nil, pollEvery, err
	}
	now, least := d.db.Now(), pollAgain
	if trusted, err := d.db.ClockTrusted(ctx, now); err != nil || !trusted {
		least = pollHeld
	}
	return nil, min(pollEvery, max(due.Sub(now), least)), nil
}

// try sends one email, marks it, and logs an error. A stop, which ends ctx, does not interrupt a started delivery.
func (d *Dispatcher) try(ctx context.Context, l outbox.Lease) {
	ctx, end := d.trace.Begin(ctx, "send an email", slog.String("kind", string(l.Kind)), slog.Int("try", l.Attempts+1))
	startCtx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	markCtx, done := context.WithTimeout(context.WithoutCancel(ctx), tryWithin+markWithin)
	defer done()
	outcome, err := d.Send(startCtx, markCtx, l)
	if errors.Is(err, db.ErrLeaseLost) {
		outcome = Lost
	}
	if outcome != "" {
		d.observe(l.Kind, outcome)
	}
	end(err, slog.String("outcome", string(outcome)))
	if err != nil {
		text := "an email was not sent; it will be retried"
		if errors.Is(err, errUnmarked) {
			text = "an email was sent but not marked; it will be sent again unless another process has marked it"
		}
		d.log.WarnContext(ctx, text,
			"kind", l.Kind, "client", l.Client.UUID(), "mail", l.ID.UUID(), "attempts", l.Attempts+1, "error", err)
	}
}

// Send writes, delivers and marks one leased email. It starts the delivery only before startCtx ends, and marks the
// outcome before markCtx ends. The outcome is empty if no attempt is counted. The error says why the email will be
// retried, or was not marked: one that was sent but not marked is Sent, and may go out again. A panic, also while
// marking, is a failed attempt: else the email could go out for ever. Failed is also the outcome of an unwanted email.
func (d *Dispatcher) Send(startCtx, markCtx context.Context, l outbox.Lease) (Outcome, error) {
	draft, err := domain.RecoverValue(startCtx, d.log, "write an email", func() (Draft, error) {
		return d.writers[l.Kind].Write(startCtx, l)
	})
	switch {
	case err != nil:
		return d.retryOrFail(startCtx, markCtx, l, draft.Due, err)
	case draft.SwitchedOff: // not a failure, even if the email is unwanted too
		return Suppressed, outbox.MarkSuppressed(markCtx, d.db, l)
	case draft.Unwanted != "":
		return d.fail(markCtx, l, draft.Unwanted)
	}

	m := draft.Message
	if err := d.deliver(startCtx, m); err != nil {
		return d.retryOrFail(startCtx, markCtx, l, draft.Due, err)
	}
	err = d.marks.Mark(markCtx, outbox.SentMail{Lease: l, User: draft.User, From: m.From.Address, Subject: m.Subject})
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnmarked, err)
	}
	if errors.Is(err, domain.ErrPanicked) { // the email was sent, but marking it panicked
		return d.retryOrFail(startCtx, markCtx, l, draft.Due, &MaybeSentError{err})
	}
	return Sent, err
}

// markSent marks emails in one transaction. It returns a function with the error of each email: db.ErrLeaseLost if it
// was not marked.
func (d *Dispatcher) markSent(ctx context.Context, mails []outbox.SentMail) (func(outbox.SentMail) error, error) {
	marked, err := outbox.MarkSent(ctx, d.db, mails)
	return func(m outbox.SentMail) error {
		if !marked[m.ID] {
			return db.ErrLeaseLost
		}
		return nil
	}, err
}

// deliver passes a message to the sender. A panic is a *MaybeSentError.
func (d *Dispatcher) deliver(ctx context.Context, m Message) error {
	ctx, end := d.trace.Begin(ctx, "send an email to the server")
	err := domain.Recover(ctx, d.log, "send an email to the server", func() error { return d.sender.Send(ctx, m) })
	if errors.Is(err, domain.ErrPanicked) {
		err = &MaybeSentError{err}
	}
	end(err)
	return err
}

// retryOrFail marks an email as failed if err is permanent. Else, if no attempt began or startCtx has ended, it counts
// no attempt and does not return err: the email is due again after restartAfter, or at once if the process is stopping.
// Else the email is marked as failed if it is too old (see isTooOld). Any other email is requeued, after a backoff, and
// err returned.
func (d *Dispatcher) retryOrFail(
	startCtx, markCtx context.Context, l outbox.Lease, due time.Time, err error,
) (Outcome, error) {
	var refused *RefusedError
	var maybe *MaybeSentError
	q := outbox.Requeue{At: d.db.Now(), MaybeSent: errors.As(err, &maybe)}
	switch {
	case errors.As(err, &refused):
		return d.fail(markCtx, l, domain.FailureRefused+": "+refused.Reason)
	case domain.IsCode(err, domain.NotFound):
		return d.fail(markCtx, l, err.Error())
	case errors.Is(err, ErrNotStarted), startCtx.Err() != nil: // no attempt is counted
		if !errors.Is(startCtx.Err(), context.Canceled) { // the process is not stopping
			q.At = q.At.Add(restartAfter)
		}
		return "", d.requeue(markCtx, l, q)
	case d.isTooOld(markCtx, l, due):
		return d.fail(markCtx, l, domain.FailureGivenUp+": "+OneLine(err.Error()))
	}
	q.At, q.Failed = q.At.Add(backoff.After(l.Attempts+1)), true
	return Retried, errors.Join(err, d.requeue(markCtx, l, q))
}

// isTooOld reports whether domain.MailLife has passed since due, when the email was first due (zero if unknown), by a
// clock that is trusted, or, by minRetryAge, since its first attempt.
func (d *Dispatcher) isTooOld(ctx context.Context, l outbox.Lease, due time.Time) bool {
	if minRetryAge(l.Attempts) > domain.MailLife {
		return true
	}
	now := d.db.Now()
	if due.IsZero() || now.Sub(due) <= domain.MailLife {
		return false
	}
	trusted, err := d.db.ClockTrusted(ctx, now)
	return err == nil && trusted
}

// requeue requeues an email, retrying while the database is unavailable.
func (d *Dispatcher) requeue(ctx context.Context, l outbox.Lease, q outbox.Requeue) error {
	return lease.RetryUnavailable(ctx, func() error { return outbox.RequeueMail(ctx, d.db, l, q) })
}

// fail marks an email as failed, which is final. The reason may contain the address, so it is stored but not logged.
func (d *Dispatcher) fail(ctx context.Context, l outbox.Lease, reason string) (Outcome, error) {
	d.log.WarnContext(ctx, "an email failed permanently; its row contains the reason", "kind", l.Kind, "client", l.Client.UUID(), "mail",
		l.ID.UUID())
	return Failed, outbox.MarkFailed(ctx, d.db, l, reason)
}

// backoff holds the pauses after failed attempts at an email.
var backoff = lease.Backoff(domain.MailPauses)

// minRetryAge returns the least time from an email's first attempt to the one after a number of failures: the sum of
// the pauses.
func minRetryAge(attempts int) (total time.Duration) {
	for n := range attempts {
		pause := backoff[min(n, len(backoff)-1)]
		total += pause - pause/10 // the shortest with jitter
	}
	return total
}
