package db

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
)

// ErrLeaseLost says that a lease ended, and the work is another's.
var ErrLeaseLost = errors.New("the lease has ended, and another process has taken the work over")

// Held is the error of a statement that needs the lease and changed n rows.
func Held(n int, err error) error {
	if err == nil && n == 0 {
		err = ErrLeaseLost
	}
	return err
}

// listenSilence is how long a channel may be silent until its connection is checked.
const listenSilence = 10 * time.Second

// ListenFor calls wake whenever a channel is notified, and once when it begins to
// listen, until ctx ends or the connection fails (pg.DB.Listen).
func (d *DB) ListenFor(ctx context.Context, channel string, wake func()) error {
	return d.Listen(ctx, channel, listenSilence, func(why pg.Heard) error {
		if why != pg.Silent {
			wake()
		}
		return nil
	})
}

// DiscardedFor is how long failed reports and periodic jobs are counted.
const DiscardedFor = 7 * 24 * time.Hour

// ReportCare is the periodic job that cares for reports (report.Carer).
const ReportCare = "report_care"

// PeriodicLease is the right to do a periodic job.
type PeriodicLease struct {
	kind  string
	token uuid.UUID
}

// ClaimPeriodic leases a periodic job for so long. It is nil where the job is not due,
// or another process is at it. A lease that ended counts as a failure.
func (d *DB) ClaimPeriodic(ctx context.Context, kind string, life time.Duration) (*PeriodicLease, error) {
	now, l := d.Now(), &PeriodicLease{kind: kind, token: uuid.New()}
	n, err := pg.Exec(ctx, d, "claim a periodic job", pg.SQL(`
		INSERT INTO periodic_jobs AS p (kind, due_at, lease) VALUES (?0, ?1, ?2)
		ON CONFLICT (kind) DO UPDATE SET due_at = excluded.due_at, lease = excluded.lease,
			failed_at = CASE WHEN p.lease IS NULL THEN p.failed_at ELSE p.failed_at || p.due_at END
		WHERE p.due_at <= ?3`, kind, now.Add(life), l.token, now))
	if err != nil || n == 0 {
		return nil, err
	}
	return l, nil
}

// FinishPeriodic gives a lease back: the job is due again at a time. failed says that it
// failed. ErrLeaseLost where the lease had ended.
func (d *DB) FinishPeriodic(ctx context.Context, l *PeriodicLease, due time.Time, failed bool) error {
	now, failures := d.Now(), []time.Time{}
	if failed {
		failures = append(failures, now)
	}
	n, err := pg.Exec(ctx, d, "finish a periodic job", pg.SQL(`
		UPDATE periodic_jobs SET lease = NULL, due_at = ?2,
			failed_at = ARRAY(SELECT at FROM unnest(failed_at || ?3::timestamptz[]) AS at WHERE at > ?4)
		WHERE kind = ?0 AND lease = ?1`, l.kind, l.token, due, failures, now.Add(-DiscardedFor)))
	return Held(n, err)
}
