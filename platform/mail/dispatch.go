package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
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
	// lookEvery is how often the outbox is looked at even if nothing tells of new
	// mails: a notification may be lost with its connection.
	lookEvery = 10 * time.Second
	// lookAgain is the least pause between two looks at an outbox whose due mails
	// others have.
	lookAgain = 50 * time.Millisecond
	// outageFor is the pause after the database could not be used.
	outageFor = time.Second
)

// DefaultWorkers is how many mails one process has under way unless told.
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
	Write(ctx context.Context, l db.Lease) (Draft, error)
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

// Dispatcher sends the mails of the outbox (db.ClaimOutbox): it claims those that
// are due, writes them, hands them to a sender with no transaction open, and
// marks what became of them. Any number of dispatchers may work on one database.
//
// A mail goes out twice only if its process dies, or loses the database or the
// server's answer, between the server's taking of the message and the commit of
// the mark: nobody knows then that it was taken, and another dispatcher takes the
// mail over when the lease ends. What is marked never goes out again.
type Dispatcher struct {
	db      *db.DB
	sender  Sender
	writers map[db.OutboxKind]Writer
	log     *slog.Logger
	observe func(db.OutboxKind, Outcome)
	slots   chan struct{} // one for each mail that may be under way
	wake    chan struct{}
	under   sync.WaitGroup
	marks   marks
	trace   domain.Trace
}

// Option changes what a Dispatcher does beside sending.
type Option func(*Dispatcher)

// WithTrace makes a span of each try of a mail, and of its hand-over.
func WithTrace(trace domain.Trace) Option { return func(d *Dispatcher) { d.trace = trace } }

// NewDispatcher returns a dispatcher of so many workers, from 1, with a writer
// for each kind of mail. It does not close the sender. observe, if not nil, is
// told of every outcome; it is called by several goroutines.
func NewDispatcher(
	d *db.DB, sender Sender, workers int, writers map[db.OutboxKind]Writer, log *slog.Logger,
	observe func(db.OutboxKind, Outcome), options ...Option,
) *Dispatcher {
	if observe == nil {
		observe = func(db.OutboxKind, Outcome) {}
	}
	made := &Dispatcher{
		db: d, sender: sender, writers: writers, log: log, observe: observe,
		slots: make(chan struct{}, workers), wake: make(chan struct{}, 1),
	}
	for _, option := range options {
		option(made)
	}
	return made
}

// Run sends mails until ctx ends. Then it claims no more; a mail that is being
// handed over is finished and marked, and one that is not is put back at once.
// The error says that this took longer than StopWithin: those mails are taken
// over when their leases end.
func (d *Dispatcher) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { d.listen(ctx) })
	d.claimAll(ctx)
	loops.Wait()

	done := make(chan struct{})
	go func() { d.under.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(StopWithin):
		return errors.New("stop the background work: mails are still under way")
	}
}

// listen wakes the dispatcher when mails are put into the outbox.
func (d *Dispatcher) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := d.db.ListenOutbox(ctx, func() {
			select {
			case d.wake <- struct{}{}:
			default:
			}
		})
		if ctx.Err() == nil {
			d.log.DebugContext(ctx, "new mails are not told of; the outbox is looked at meanwhile", "error", err)
			pause(ctx, outageFor)
		}
	}
}

// pause waits, and not longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// claimAll claims mails and begins them until ctx ends.
func (d *Dispatcher) claimAll(ctx context.Context) {
	away := false // whether the log says that the database is
	for ctx.Err() == nil {
		begun, err := d.claim(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if !away {
				d.log.WarnContext(ctx, "the outbox cannot be read; it will be tried again", "error", err)
			}
			away = true
			pause(ctx, outageFor)
		case begun == 0:
			err = d.wait(ctx)
		}
		if err == nil && away {
			d.log.InfoContext(ctx, "the outbox can be read again")
			away = false
		}
	}
}

// claim claims as many mails as there are free workers, of which it waits for
// one, and begins them.
func (d *Dispatcher) claim(ctx context.Context) (begun int, err error) {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, nil
	}
	free := 1
	for ; free < cap(d.slots) && d.free(); free++ {
	}
	leases, err := d.db.ClaimOutbox(ctx, free, leaseFor)
	for range free - len(leases) {
		<-d.slots
	}
	for _, l := range leases {
		d.under.Go(func() {
			defer func() { <-d.slots }()
			d.try(ctx, l)
		})
	}
	return len(leases), err
}

// free takes a slot if one is free.
func (d *Dispatcher) free() bool {
	select {
	case d.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait waits until a mail is due, or new ones are told of.
func (d *Dispatcher) wait(ctx context.Context) error {
	due, some, err := d.db.OutboxDue(ctx)
	if err != nil {
		return err
	}
	until := lookEvery
	if some {
		until = min(until, max(due.Sub(d.db.Now()), lookAgain))
	}
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-time.After(until):
	}
	return nil
}

// try sends one mail and has it marked. A stop, which ends ctx, does not end what
// was begun.
func (d *Dispatcher) try(ctx context.Context, l db.Lease) {
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
		d.log.WarnContext(ctx, "a mail was not sent; it will be tried again",
			"kind", l.Kind, "client", l.Client.UUID(), "mail", l.ID.UUID(), "attempts", l.Attempts+1, "error", err)
	}
}

// Send sends one leased mail: it begins while begin lasts, and marks what became
// of the mail while lasting does. The outcome is empty where there was no try.
// The error says why the mail is tried again.
func (d *Dispatcher) Send(begin, lasting context.Context, l db.Lease) (Outcome, error) {
	draft, err := d.writers[l.Kind].Write(begin, l)
	switch {
	case err != nil:
	case draft.SwitchedOff: // which is no failure, whatever else is the matter
		return Suppressed, d.db.MarkSuppressed(lasting, l)
	case draft.Unwanted != "":
		return d.fail(lasting, l, draft.Unwanted)
	}
	if err == nil {
		handing, end := d.trace.Begin(begin, "hand a mail over")
		err = d.sender.Send(handing, draft.Message)
		end(err)
	}
	var refused *RefusedError
	switch {
	case err == nil:
		m := draft.Message
		return Sent, d.mark(lasting, db.SentMail{Lease: l, User: draft.User, From: m.From.Address, Subject: m.Subject})
	case errors.As(err, &refused):
		return d.fail(lasting, l, refused.Reason)
	case domain.IsCode(err, domain.NotFound):
		return d.fail(lasting, l, err.Error())
	case errors.Is(err, ErrNotBegun), begin.Err() != nil: // which was no try
		at := d.db.Now()
		if !errors.Is(begin.Err(), context.Canceled) {
			at = at.Add(beginAgain)
		}
		return "", d.db.Requeue(lasting, l, at, false)
	case !draft.Due.IsZero() && d.db.Now().Sub(draft.Due) > domain.MailLife:
		return d.fail(lasting, l, fmt.Sprintf("given up: %v", err))
	}
	return Retried, errors.Join(err, d.db.Requeue(lasting, l, d.db.Now().Add(pauseAfter(l.Attempts+1)), true))
}

// fail records that a mail will never be sent. The reason, in which servers name
// the address, is for the table and not for the log.
func (d *Dispatcher) fail(lasting context.Context, l db.Lease, reason string) (Outcome, error) {
	d.log.WarnContext(lasting, "a mail is given up; its row says why", "kind", l.Kind, "client", l.Client.UUID(), "mail",
		l.ID.UUID())
	return Failed, d.db.MarkFailed(lasting, l, reason)
}
