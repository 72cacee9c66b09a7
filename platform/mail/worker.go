package mail

import (
	"context"
	"log/slog"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
)

// Worker sends the mails that were asked for.
type Worker struct {
	river.WorkerDefaults[job.SendMail]

	db       *db.DB
	sender   Sender
	composer *Composer
	log      *slog.Logger
}

// NewWorker returns a worker. It does not close the sender.
func NewWorker(d *db.DB, sender Sender, composer *Composer, log *slog.Logger) *Worker {
	return &Worker{db: d, sender: sender, composer: composer, log: log}
}

// Register adds the worker to those of a runner.
func (w *Worker) Register(all *river.Workers) { river.AddWorker(all, w) }

// Work sends one mail, in a transaction that holds its request: what was sent
// is marked and recorded in it, so that no other try finds it unsent. A mail
// that is refused for good, no longer wanted, or undeliverable for too long is
// recorded as failed. An error means that it is to be tried again.
//
// Only a crash, or a loss of the database or of the server's answer, between
// the server's taking of the message and the commit makes a mail go out twice.
// A job that is cancelled meanwhile does not: its transaction goes on.
func (w *Worker) Work(ctx context.Context, j *river.Job[job.SendMail]) error {
	lasting, cancel := Outlast(ctx)
	defer cancel()
	return w.db.Tx(lasting, func(tx context.Context) error {
		m, held, err := w.db.HoldMail(tx, j.Args.Client, j.Args.Request)
		if err := Held(held, err); err != nil {
			return err
		}
		switch {
		case m.Settled:
			return nil
		case m.Unwanted != "":
			return w.fail(tx, m, m.Unwanted)
		}
		last := j.Attempt >= j.MaxAttempts || w.db.Now().Sub(m.RequestedAt) > domain.MailLife
		return Attempt(ctx, w.sender, func() (Message, error) { return w.composer.Compose(m, w.db.Now()) }, last,
			func(sent Message) error { return w.db.MailSent(tx, m, sent.From.Address, sent.Subject) },
			func(reason string) error { return w.fail(tx, m, reason) })
	})
}

// fail records that a mail will not be sent. The reason, in which servers name
// the address, is for the table and not for the log.
func (w *Worker) fail(tx context.Context, m domain.Mail, reason string) error {
	w.log.WarnContext(tx, "a mail is given up; its mail_requests row says why", "client", m.Client.UUID(), "mail", m.ID.UUID(), "type", m.Type)
	return w.db.MailFailed(tx, m, reason)
}
