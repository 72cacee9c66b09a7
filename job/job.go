// Package job is what is to be done later, and how it is asked for: work is
// enqueued in the transaction of the change that wants it, so that both come to
// be or neither. The workers are in platform; this package only names the work.
package job

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"

	"partnerapi/db"
	"partnerapi/domain"
)

// Mail is the queue of the work that waits for a mail server.
const Mail = "mail"

// mailAttempts is how often a mail is tried, which with the pauses of
// platform/work is some three days (domain.MailLife).
const mailAttempts = 80

// SendMail sends a mail that was asked for (db.HoldMail).
type SendMail struct {
	Client  domain.ClientID  `json:"client_id"`
	Request domain.MessageID `json:"request_id"`
}

// Kind names the work in the database.
func (SendMail) Kind() string { return "mail" }

// InsertOpts says that mail which somebody waits for goes first.
func (SendMail) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Mail, MaxAttempts: mailAttempts, Priority: 1}
}

// SendSimulation sends a simulated phishing mail.
type SendSimulation struct {
	Client domain.ClientID `json:"client_id"`
	Result domain.ResultID `json:"result_id"`
}

// Kind names the work in the database.
func (SendSimulation) Kind() string { return "simulation" }

// InsertOpts says that a simulation goes after other mail.
func (SendSimulation) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Mail, MaxAttempts: mailAttempts, Priority: 2}
}

// Later is work with the time at which it is due; the zero time is now.
type Later struct {
	Work river.JobArgs
	At   time.Time
}

// Now is work that is due at once.
func Now[T river.JobArgs](work ...T) []Later {
	all := make([]Later, len(work))
	for i, w := range work {
		all[i] = Later{Work: w}
	}
	return all
}

// Queue takes work. It is safe for concurrent use.
type Queue struct {
	db     *db.DB
	client *river.Client[*sql.Tx]
}

// NewQueue returns a queue in the database; nothing is read yet.
func NewQueue(d *db.DB) *Queue {
	client, err := river.NewClient(riverdatabasesql.New(nil), &river.Config{})
	if err != nil {
		panic(fmt.Sprintf("a queue that only takes work: %v", err)) // its configuration is a constant
	}
	return &Queue{db: d, client: client}
}

var errNoTx = errors.New("work is enqueued in a transaction only")

// Enqueue asks for work in the transaction of ctx (db.Tx).
func (q *Queue) Enqueue(ctx context.Context, work ...Later) error {
	if len(work) == 0 {
		return nil
	}
	tx, ok := q.db.SQLTx(ctx)
	if !ok {
		return errNoTx
	}
	params := make([]river.InsertManyParams, len(work))
	for i, w := range work {
		params[i] = river.InsertManyParams{Args: w.Work, InsertOpts: &river.InsertOpts{ScheduledAt: w.At}}
	}
	if _, err := q.client.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// Migrate makes the queue's own tables.
func Migrate(ctx context.Context, d *db.DB) error {
	migrator, err := rivermigrate.New(riverdatabasesql.New(d.SQL()), nil)
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return d.Alone(ctx, "queue migrations", func(ctx context.Context) error {
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
}
