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
	// tryWithin is how long one try of a mail may take, from the claim on.
	tryWithin = time.Minute
	// markWithin is what marking may take beyond that, so that a mail that was
	// sent at the last moment is marked, too.
	markWithin = 10 * time.Second
	// leaseFor is how long a claim lasts: longer than any try and its mark take.
	// After that time, others take over the mails of a process that died.
	leaseFor = tryWithin + markWithin + 5*time.Second
	// StopWithin is how long the mails in progress may take after a stop.
	StopWithin = sendWithin + markWithin + 10*time.Second
	// restartAfter is the delay of a mail whose try did not begin.
	restartAfter = 3 * time.Second
	// pollEvery is how often the outbox is polled without a notification: one may be
	// lost with its connection.
	pollEvery = 10 * time.Second
	// pollAgain is the least pause between two polls while other processes have the
	// due mails.
	pollAgain = 50 * time.Millisecond
	// marksAtOnce is how many mails are marked in one transaction.
	marksAtOnce = 100
)

// DefaultWorkers is the default number of mails in progress per process.
const DefaultWorkers = 20

// Draft is a written mail, or the reason why it must not be sent any more.
type Draft struct {
	Message  Message
	Unwanted string // empty where it is wanted
	// SwitchedOff says that the client does not want mail of this type.
	SwitchedOff bool
	// User is the client's user with the address; nil where there is none.
	User *domain.UserID
	// Due is when the mail was to be sent first: domain.MailLife after that it is
	// given up.
	Due time.Time
}

// Writer writes one kind of mail of the outbox.
type Writer interface {
	// Write writes a leased mail. An error that is a *RefusedError says that the
	// mail can never be written.
	Write(ctx context.Context, l outbox.Lease) (Draft, error)
}

// Outcome is the outcome of an attempt to send a mail.
type Outcome string

// The outcomes. A mail that was put back without a try has none.
const (
	Sent    Outcome = "sent"
	Failed  Outcome = "failed"
	Retried Outcome = "retried"
	// Suppressed says that the client does not want mail of this type.
	Suppressed Outcome = "suppressed"
	// Lost says that the lease ended before the mail was marked.
	Lost Outcome = "lost"
)

// errUnmarked is returned for a mail that was sent but not marked.
var errUnmarked = errors.New("it could not be marked as sent")

// Dispatcher sends the mails of the outbox (outbox.ClaimMails): it claims due mails, writes them, delivers them to
// a sender outside any transaction, and marks the outcome. Any number of dispatchers may work on one database.
//
// A mail goes out twice only if its process dies, or loses the database or the server's answer, between the
// server's acceptance of the message and the commit of the mark: the acceptance is then unknown, and another
// dispatcher sends the mail again when the lease ends. A marked mail never goes out again.
type Dispatcher struct {
	db      *db.DB
	sender  Sender
	writers map[db.OutboxKind]Writer
	log     *slog.Logger
	observe func(db.OutboxKind, Outcome)
	turns   *outbox.MailTurns // of claims, which are one at a time
	queue   *lease.Queue[outbox.Lease]
	marks   *lease.Marks[outbox.SentMail]
	trace   domain.Trace
}

// NewDispatcher returns a dispatcher with a number of workers, at least 1, and a writer for each kind of mail. It
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
		Log: log, Doing: "mark mails as sent", MaxBatch: marksAtOnce, Within: markWithin, Write: dispatcher.markSent,
	})
	dispatcher.queue = lease.NewQueue(lease.Config[outbox.Lease]{
		Name: "mails", Log: log, Claim: dispatcher.claim, Do: dispatcher.try, Concurrency: workers, StopWithin: StopWithin,
		Listen: func(ctx context.Context, wake func()) error { return d.ListenFor(ctx, db.OutboxChannel, wake) },
	})
	return dispatcher
}

// Run sends mails until ctx ends. Then it claims no more, finishes and marks a mail being delivered, and requeues
// others at once. It returns an error if that takes longer than StopWithin: those mails are sent again when their
// leases end.
func (d *Dispatcher) Run(ctx context.Context) error { return d.queue.Run(ctx) }

// claim claims mails, and returns when the next one is due if none is now.
func (d *Dispatcher) claim(ctx context.Context, free int) ([]outbox.Lease, time.Duration, error) {
	leases, err := outbox.ClaimMails(ctx, d.db, d.turns, free, leaseFor)
	if err != nil || len(leases) > 0 {
		return leases, 0, err
	}
	due, some, err := outbox.MailDue(ctx, d.db)
	if err != nil || !some {
		return nil, pollEvery, err
	}
	return nil, min(pollEvery, max(due.Sub(d.db.Now()), pollAgain)), nil
}

// try sends one mail and marks it. A stop, which ends ctx, does not interrupt a started delivery.
func (d *Dispatcher) try(ctx context.Context, l outbox.Lease) {
	ctx, end := d.trace.Begin(ctx, "send a mail", slog.String("kind", string(l.Kind)), slog.Int("try", l.Attempts+1))
	begin, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	lasting, done := context.WithTimeout(context.WithoutCancel(ctx), tryWithin+markWithin)
	defer done()
	outcome, err := d.Send(begin, lasting, l)
	if errors.Is(err, db.ErrLeaseLost) {
		outcome = Lost
	}
	if outcome != "" {
		d.observe(l.Kind, outcome)
	}
	end(err, slog.String("outcome", string(outcome)))
	if err != nil {
		what := "a mail was not sent; it will be tried again"
		if errors.Is(err, errUnmarked) {
			what = "a mail was sent; it will be sent again unless another process has marked it"
		}
		d.log.WarnContext(ctx, what,
			"kind", l.Kind, "client", l.Client.UUID(), "mail", l.ID.UUID(), "attempts", l.Attempts+1, "error", err)
	}
}

// Send sends one leased mail: it starts the delivery only while begin lasts, and marks the outcome while lasting
// does. The outcome is empty if there was no attempt. The error says why the mail will be retried. A panic is a
// failed attempt.
func (d *Dispatcher) Send(begin, lasting context.Context, l outbox.Lease) (Outcome, error) {
	draft, err := domain.RecoverValue(begin, d.log, "write a mail", func() (Draft, error) {
		return d.writers[l.Kind].Write(begin, l)
	})
	switch {
	case err != nil:
	case draft.SwitchedOff: // not a failure, even if the mail is unwanted too
		return Suppressed, outbox.MarkSuppressed(lasting, d.db, l)
	case draft.Unwanted != "":
		return d.fail(lasting, l, draft.Unwanted)
	}
	if err == nil {
		if err = d.deliver(begin, draft.Message); err == nil {
			m := draft.Message
			err = d.marks.Mark(lasting, outbox.SentMail{Lease: l, User: draft.User, From: m.From.Address, Subject: m.Subject})
			if err != nil {
				err = fmt.Errorf("%w: %w", errUnmarked, err)
			}
			if !errors.Is(err, domain.ErrPanicked) {
				return Sent, err
			}
			err = &MaybeSentError{err}
		}
	}
	return d.retryOrFail(begin, lasting, l, draft.Due, err)
}

// markSent marks mails in one transaction.
func (d *Dispatcher) markSent(ctx context.Context, mails []outbox.SentMail) (func(outbox.SentMail) error, error) {
	marked, err := outbox.MarkSent(ctx, d.db, mails)
	return func(m outbox.SentMail) error {
		if !marked[m.ID] {
			return db.ErrLeaseLost
		}
		return nil
	}, err
}

// deliver passes a message to the sender. After a panic the message may have been sent.
func (d *Dispatcher) deliver(ctx context.Context, m Message) error {
	ctx, end := d.trace.Begin(ctx, "hand a mail over")
	err := domain.Recover(ctx, d.log, "hand a mail over", func() error { return d.sender.Send(ctx, m) })
	if errors.Is(err, domain.ErrPanicked) {
		err = &MaybeSentError{err}
	}
	end(err)
	return err
}

// retryOrFail requeues a mail that failed with an error, or gives it up. due is when it was first due; zero if
// unknown.
func (d *Dispatcher) retryOrFail(
	begin, lasting context.Context, l outbox.Lease, due time.Time, err error,
) (Outcome, error) {
	var refused *RefusedError
	var maybe *MaybeSentError
	q := outbox.Requeue{At: d.db.Now(), MaybeSent: errors.As(err, &maybe)}
	switch {
	case errors.As(err, &refused):
		return d.fail(lasting, l, refused.Reason)
	case domain.IsCode(err, domain.NotFound):
		return d.fail(lasting, l, err.Error())
	case errors.Is(err, ErrNotStarted), begin.Err() != nil: // which does not count as a try
		if !errors.Is(begin.Err(), context.Canceled) {
			q.At = q.At.Add(restartAfter)
		}
		return "", d.requeue(lasting, l, q)
	case !due.IsZero() && d.db.Now().Sub(due) > domain.MailLife, minRetryAge(l.Attempts) > domain.MailLife:
		return d.fail(lasting, l, fmt.Sprintf("given up: %v", err))
	}
	q.At, q.Failed = q.At.Add(backoff.After(l.Attempts+1)), true
	return Retried, errors.Join(err, d.requeue(lasting, l, q))
}

// requeue requeues a mail, retrying while the database is unavailable.
func (d *Dispatcher) requeue(lasting context.Context, l outbox.Lease, q outbox.Requeue) error {
	return lease.RetryUnavailable(lasting, func() error { return outbox.RequeueMail(lasting, d.db, l, q) })
}

// fail marks a mail as failed for good. The reason, in which servers name the address, is stored and not logged.
func (d *Dispatcher) fail(lasting context.Context, l outbox.Lease, reason string) (Outcome, error) {
	d.log.WarnContext(lasting, "a mail is given up; its row says why", "kind", l.Kind, "client", l.Client.UUID(), "mail",
		l.ID.UUID())
	return Failed, outbox.MarkFailed(lasting, d.db, l, reason)
}

// backoff is the pauses after failed attempts at a mail; the last one repeats until the mail is given up
// (domain.MailLife).
var backoff = lease.Backoff{
	5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute,
	time.Hour,
}

// minRetryAge returns the least time since the first attempt of a mail that has failed that often.
func minRetryAge(tries int) (total time.Duration) {
	for n := range tries {
		pause := backoff[min(n, len(backoff)-1)]
		total += pause - pause/10
	}
	return total
}
