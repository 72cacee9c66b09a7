// Package job says what is to be done later: the arguments of each kind of job,
// and how one is put into the queue in the transaction that asks for it. River
// keeps the queue in PostgreSQL; whoever works on jobs is in platform.
package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"partnerapi/db"
	"partnerapi/domain"
)

// Reports is the name of the queue of the jobs about reports.
const Reports = "reports"

// ReportArgs are those of the job that makes a report. There is one job for a
// report, whatever became of it.
type ReportArgs struct {
	Client domain.ClientID `json:"client"`
	Report domain.ReportID `json:"report"`
}

// Kind names the job.
func (ReportArgs) Kind() string { return "report" }

// InsertOpts bounds the tries. The states make the job unique whatever its state
// is, for as long as the queue remembers it.
func (ReportArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: Reports, MaxAttempts: domain.ReportTries,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()},
	}
}

// CareArgs are those of the periodic job that cares for what crashes and time
// leave behind: reports without a job, and expired ones.
type CareArgs struct{}

// Kind names the job.
func (CareArgs) Kind() string { return "report_care" }

// InsertOpts keeps a second job from being queued beside one that waits or runs.
func (CareArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue: Reports, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateScheduled, rivertype.JobStateRetryable,
		}},
	}
}

// Queue puts jobs into the queue. It is safe for concurrent use.
type Queue struct {
	client *river.Client[pgx.Tx]
}

// NewQueue returns the queue of whatever database the transactions are of.
func NewQueue() *Queue {
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{})
	if err != nil {
		panic(err) // the configuration is a constant
	}
	return &Queue{client}
}

// ErrJobEnded says that a report has had its job, which has ended.
var ErrJobEnded = errors.New("the report's job has ended")

// MakeReport asks for a report to be made, in the transaction of ctx. Where its
// job waits or runs already, it does nothing.
func (q *Queue) MakeReport(ctx context.Context, d *db.DB, args ReportArgs) error {
	tx := d.Transaction(ctx)
	if tx == nil {
		return errNoTransaction
	}
	done, err := q.client.InsertTx(ctx, tx, args, nil)
	switch {
	case err != nil:
		return d.TranslateError("queue a report", err)
	case done.UniqueSkippedAsDuplicate && slices.Contains(ended, done.Job.State):
		return fmt.Errorf("%w: it is %s", ErrJobEnded, done.Job.State)
	}
	return nil
}

// monthlyPriority is below that of reports that somebody waits for: 1 is the
// highest, 4 the lowest.
const monthlyPriority = 4

// MakeMonthly asks for the service's own reports to be made, in the transaction of
// ctx, after those that callers ask for.
func (q *Queue) MakeMonthly(ctx context.Context, d *db.DB, list []ReportArgs) error {
	tx := d.Transaction(ctx)
	if tx == nil {
		return errNoTransaction
	}
	jobs := make([]river.InsertManyParams, len(list))
	for i, args := range list {
		jobs[i] = river.InsertManyParams{Args: args, InsertOpts: &river.InsertOpts{Priority: monthlyPriority}}
	}
	_, err := q.client.InsertManyFastTx(ctx, tx, jobs)
	return d.TranslateError("queue monthly reports", err)
}

var errNoTransaction = errors.New("a job is queued in no transaction")

// ended are the states of jobs that nothing is done for any more.
var ended = []rivertype.JobState{
	rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded,
}
