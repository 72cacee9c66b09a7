package phishing

import (
	"context"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/platform/mail"
)

// scans takes note of what scanners did with mails that were being handed over.
type scans struct {
	river.WorkerDefaults[job.NoteScan]

	db *db.DB
}

// Work takes note of one step once nobody holds the mail. If the mail was not
// sent after all, a later copy will be scanned again, and the step is dropped.
// A step from before the mark counts as one of that moment, for nothing is done
// with a mail before it was sent.
func (w *scans) Work(ctx context.Context, j *river.Job[job.NoteScan]) error {
	lasting, cancel := mail.Outlast(ctx) // a stop does not end what is done in a moment
	defer cancel()
	return w.db.Tx(lasting, func(tx context.Context) error {
		s, held, err := w.db.HoldSimulation(tx, j.Args.Result)
		if err := mail.Held(held, err); err != nil || s.SentAt == nil {
			return err
		}
		step := domain.ResultStep{Result: j.Args.Result, Kind: j.Args.Step, At: j.Args.At, Automated: j.Args.Reason}
		if step.At.Before(*s.SentAt) {
			step.At = *s.SentAt
		}
		return w.db.AdvanceResults(tx, []domain.ResultStep{step})
	})
}
