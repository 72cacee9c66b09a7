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
	// leaseFor is how long a mail is its claimer's: longer than any try and its
	// mark take. So long after a process died, others take its mails over.
	leaseFor = tryWithin + markWithin + 5*time.Second
	// StopWithin is how long the mails under way may take after a stop.
	StopWithin = sendWithin + markWithin + 10*time.Second
	// beginAgain is when a mail that was not begun is tried again.
	beginAgain = 3 * time.Second
	// pollEvery is how often the outbox is polled without a notification: one may be
	// lost with its connection.
	pollEvery = 10 * time.Second
	// pollAgain is the least pause between two polls of an outbox whose due mails
	// others have.
	pollAgain = 50 * time.Millisecond
	// marksAtOnce is how many mails are marked in one transaction.
	marksAtOnce = 100
)

// DefaultWorkers is how many mails one process has under way by default.
const DefaultWorkers = 20

// Draft is a mail that was written, or why it is not to be sent any more.
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

// Writer reads what one kind of mail of the outbox needs, and writes it.
type Writer interface {
	// Write writes a leased mail. An error that is a *RefusedError says that the
	// mail can never be written.
	Write(ctx context.Context, l outbox.Lease) (Draft, error)
}

// Outcome is what became of a try of a mail.
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

// errUnmarked says that a mail was handed over.
var errUnmarked = errors.New("it could not be marked as sent")

// Dispatcher sends the mails of the outbox (outbox.ClaimMails): it claims those that
// are due, writes them, hands them to a sender with no transaction open, and
// marks what became of them. Any number of dispatchers may work on one database.
//
// A mail goes out twice only if its process dies, or loses the database or the
// server's answer, between the server's taking of the message and the commit of
// the mark: it is then unknown that it was taken, and another dispatcher takes the
// mail over when the lease ends. What is marked never goes out again.
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

// Option changes what a Dispatcher does beside sending.
type Option func(*Dispatcher)

// WithTrace makes a span of each try of a mail, and of its hand-over.
func WithTrace(trace domain.Trace) Option { return func(d *Dispatcher) { d.trace = trace } }

// NewDispatcher returns a dispatcher of the given number of workers, from 1, with a writer
// for each kind of mail. It does not close the sender. observe, if not nil, is
// called with every outcome, by several goroutines.
func NewDispatcher(
	d *db.DB, sender Sender, workers int, writers map[db.OutboxKind]Writer, log *slog.Logger,
	observe func(db.OutboxKind, Outcome), options ...Option,
) *Dispatcher {
	if observe == nil {
		observe = func(db.OutboxKind, Outcome) {}
	}
	dispatcher := &Dispatcher{
		db: d, sender: sender, writers: writers, log: log, observe: observe, turns: outbox.NewMailTurns(),
	}
	dispatcher.marks = lease.NewMarks(lease.MarksConfig[outbox.SentMail]{
		Log: log, Doing: "mark mails as sent", MaxBatch: marksAtOnce, Within: markWithin, Write: dispatcher.markSent,
	})
	dispatcher.queue = lease.NewQueue(lease.Config[outbox.Lease]{
		Name: "mails", Log: log, Claim: dispatcher.claim, Do: dispatcher.try, Concurrency: workers, StopWithin: StopWithin,
		Listen: func(ctx context.Context, wake func()) error { return outbox.ListenMails(ctx, d, wake) },
	})
	for _, option := range options {
		option(dispatcher)
	}
	return dispatcher
}

// Run sends mails until ctx ends. Then it claims no more; a mail that is being
// handed over is finished and marked, and one that is not is put back at once.
// The error says that this took longer than StopWithin: those mails are taken
// over when their leases end.
func (d *Dispatcher) Run(ctx context.Context) error { return d.queue.Run(ctx) }

// claim claims mails, and finds out when the next one is due where none is now.
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

// try sends one mail and has it marked. A stop, which ends ctx, does not end what
// was begun.
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

// Send sends one leased mail: it begins while begin lasts, and marks what became
// of the mail while lasting does. The outcome is empty where there was no try.
// The error says why the mail is tried again. A panic is a failed try.
func (d *Dispatcher) Send(begin, lasting context.Context, l outbox.Lease) (Outcome, error) {
	draft, err := domain.RecoverValue(begin, d.log, "write a mail", func() (Draft, error) {
		return d.writers[l.Kind].Write(begin, l)
	})
	switch {
	case err != nil:
	case draft.SwitchedOff: // which is no failure, whatever else is the matter
		return Suppressed, outbox.MarkSuppressed(lasting, d.db, l)
	case draft.Unwanted != "":
		return d.fail(lasting, l, draft.Unwanted)
	}
	if err == nil {
		if err = d.handOver(begin, draft.Message); err == nil {
			m := draft.Message
			err = d.marks.Mark(lasting, outbox.SentMail{Lease: l, User: draft.User, From: m.From.Address, Subject: m.Subject})
			if err != nil {
				err = fmt.Errorf("%w: %w", errUnmarked, err)
			}
			if !errors.Is(err, domain.ErrPanicked) {
				return Sent, err
			}
		}
	}
	return d.again(begin, lasting, l, draft.Due, err)
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

// handOver gives a message to the sender.
func (d *Dispatcher) handOver(ctx context.Context, m Message) error {
	ctx, end := d.trace.Begin(ctx, "hand a mail over")
	err := domain.Recover(ctx, d.log, "hand a mail over", func() error { return d.sender.Send(ctx, m) })
	end(err)
	return err
}

// again puts a mail back that was not sent because of an error, or gives it up. due is
// when it was to be sent first; zero where that is not known.
func (d *Dispatcher) again(
	begin, lasting context.Context, l outbox.Lease, due time.Time, err error,
) (Outcome, error) {
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return d.fail(lasting, l, refused.Reason)
	case domain.IsCode(err, domain.NotFound):
		return d.fail(lasting, l, err.Error())
	case errors.Is(err, ErrNotBegun), begin.Err() != nil: // which was no try
		at := d.db.Now()
		if !errors.Is(begin.Err(), context.Canceled) {
			at = at.Add(beginAgain)
		}
		return "", d.requeue(lasting, l, at, false)
	case !due.IsZero() && d.db.Now().Sub(due) > domain.MailLife, triedFor(l.Attempts) > domain.MailLife:
		return d.fail(lasting, l, fmt.Sprintf("given up: %v", err))
	}
	return Retried, errors.Join(err, d.requeue(lasting, l, d.db.Now().Add(backoff.After(l.Attempts+1)), true))
}

// requeue puts a mail back, also when the database comes back meanwhile.
func (d *Dispatcher) requeue(lasting context.Context, l outbox.Lease, at time.Time, tried bool) error {
	return lease.Insist(lasting, func() error { return outbox.RequeueMail(lasting, d.db, l, at, tried) })
}

// fail records that a mail will never be sent. The reason, in which servers name
// the address, is for the table and not for the log.
func (d *Dispatcher) fail(lasting context.Context, l outbox.Lease, reason string) (Outcome, error) {
	d.log.WarnContext(lasting, "a mail is given up; its row says why", "kind", l.Kind, "client", l.Client.UUID(), "mail",
		l.ID.UUID())
	return Failed, outbox.MarkFailed(lasting, d.db, l, reason)
}
