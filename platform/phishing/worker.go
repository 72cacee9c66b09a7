package phishing

import (
	"context"
	"log/slog"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/platform/mail"
)

// Worker sends the simulated mails.
type Worker struct {
	river.WorkerDefaults[job.SendSimulation]

	db       *db.DB
	sender   mail.Sender
	composer *Composer
	log      *slog.Logger
}

// NewWorker returns a worker. It does not close the sender.
func NewWorker(d *db.DB, sender mail.Sender, composer *Composer, log *slog.Logger) *Worker {
	return &Worker{db: d, sender: sender, composer: composer, log: log}
}

// Register adds the worker to those of a runner, and with it the one for what
// scanners do while it hands mails over.
func (w *Worker) Register(all *river.Workers) {
	river.AddWorker(all, w)
	river.AddWorker(all, &scans{db: w.db})
}

// Work sends one mail, in a transaction that holds its result: that it was sent
// is marked and counted in it, so that no other try finds it unsent. A mail
// that is refused for good, no longer wanted, or undeliverable for too long is
// recorded as failed. An error means that it is to be tried again. What the
// mail's worker says of repetitions holds here too.
func (w *Worker) Work(ctx context.Context, j *river.Job[job.SendSimulation]) error {
	lasting, cancel := mail.Outlast(ctx)
	defer cancel()
	return w.db.Tx(lasting, func(tx context.Context) error {
		s, held, err := w.db.HoldSimulation(tx, j.Args.Result)
		if err := mail.Held(held, err); err != nil {
			return err
		}
		switch {
		case s.Settled:
			return nil
		case s.Unwanted != "":
			return w.fail(tx, s, s.Unwanted)
		}
		last := j.Attempt >= j.MaxAttempts || w.db.Now().Sub(s.SendAt) > domain.MailLife
		return mail.Attempt(ctx, w.sender, func() (mail.Message, error) { return w.composer.Compose(s, w.db.Now()) }, last,
			func(sent mail.Message) error { return w.db.SimulationSent(tx, s, sent.From.Address, sent.Subject) },
			func(reason string) error { return w.fail(tx, s, reason) })
	})
}

// fail records that a mail will not be sent. The reason, in which servers name
// the address, is for the table and not for the log.
func (w *Worker) fail(tx context.Context, s domain.Simulation, reason string) error {
	w.log.WarnContext(tx, "a simulated mail is given up; its phishing_results row says why", "client", s.Client.UUID(), "result", s.Result.UUID())
	return w.db.SimulationFailed(tx, s, reason)
}
