package db

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Leases of periodic jobs, the daily refresh, and what it drops.

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
	return d.Listen(ctx, channel, listenSilence, func(why pg.ListenEvent) error {
		if why != pg.Silent {
			wake()
		}
		return nil
	})
}

// DiscardedFor is how long failed reports and periodic jobs are counted.
const DiscardedFor = 7 * 24 * time.Hour

// ReportCare is the periodic job that cares for reports (report.Maintainer).
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

const (
	// refreshLock is the advisory lock of the process that does the daily refresh.
	refreshLock = "daily refresh"
	// refreshBatch is how many users are refreshed in one transaction.
	refreshBatch = 1000
)

// RefreshDue reports whether the refresh of today is not done.
func (d *DB) RefreshDue(ctx context.Context) (bool, error) {
	done, err := d.refreshed(ctx, domain.DateOf(d.Now()))
	return err == nil && !done, err
}

func (d *DB) refreshed(ctx context.Context, day domain.Date) (bool, error) {
	return pg.One[bool](ctx, d, "look for a daily refresh",
		pg.SQL("SELECT EXISTS (SELECT 1 FROM daily_refreshes WHERE day = ?)", day))
}

// DailyRefresh does once for a day, today or an earlier one, what the clock
// asks for (decisions 3.9, 7.1): it assigns courses again whose renewal window
// has ended, marks users as updated whose courses became overdue, lets scores
// decay, drops what is kept for a bounded time, refreshes every client's summary, and divides
// large blocks of users. It
// reports false where the day is done or another process is at it. progress,
// if not nil, is told how many users are done. It is background work, for all
// clients that are not archived.
//
// Every step is idempotent, and the day is marked as done after the last: a
// refresh that was cut short is simply run again. It needs two connections of
// the pool, and no transaction around it.
func (d *DB) DailyRefresh(ctx context.Context, day domain.Date, progress func(done, total int)) (ran bool, err error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	_, err = d.TryAdvisoryLock(ctx, refreshLock, func(ctx context.Context) error {
		if done, err := d.refreshed(ctx, day); err != nil || done {
			return err
		}
		ran = true
		return d.refresh(ctx, day, progress)
	})
	return ran && err == nil, err
}

func (d *DB) refresh(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return d.markOverdue(ctx, day) },
		func(ctx context.Context) error { return d.refreshUsers(ctx, day, progress) },
		d.DropOld,
		d.DropDeletedWebhooks,
		d.ForceSummaries,
		d.DivideUsers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	_, err := pg.Exec(ctx, d, "mark the daily refresh as done",
		pg.SQL("INSERT INTO daily_refreshes (day, finished_at) VALUES (?, ?) ON CONFLICT DO NOTHING", day, d.Now()))
	return err
}

// markOverdue moves updated_at of the users for whom a course became overdue
// since the refresh before this one: nothing but the date has changed.
func (d *DB) markOverdue(ctx context.Context, day domain.Date) error {
	return d.Change(ctx, func(ctx context.Context, c *Change) error {
		late, err := c.lockUsers(ctx, pg.SQL(`(u.client_id, u.id) IN (
			SELECT client_id, user_id FROM assignments
			WHERE completed_at IS NULL AND due_on < ?0::date
			AND due_on >= coalesce((SELECT max(day) FROM daily_refreshes WHERE day < ?0::date), '-infinity'))`, day))
		c.touch(late...)
		return err
	})
}

// refreshUsers renews courses and lets scores decay for the users of all
// clients that are not archived, a batch in each transaction.
func (d *DB) refreshUsers(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	total, err := pg.One[int](ctx, d, "count users", pg.SQL(
		"SELECT count(*) FROM users AS u JOIN clients AS c ON c.id = u.client_id WHERE c.archived_at IS NULL"))
	if err != nil {
		return err
	}
	var last domain.UserKey // its ids are those before all others
	for done := 0; ; {
		var batch []domain.UserKey
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			batch, err = c.refreshBatch(ctx, last, day)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1]
		done += len(batch)
		progress(done, max(done, total))
	}
}

// refreshBatch refreshes the users next after one, as of a day, and returns them.
func (c *Change) refreshBatch(ctx context.Context, after domain.UserKey, day domain.Date) ([]domain.UserKey, error) {
	batch, err := c.lockUsers(ctx, pg.SQL(`(u.client_id, u.id) IN (
		SELECT n.client_id, n.id FROM users AS n JOIN clients AS c ON c.id = n.client_id
		WHERE (n.client_id, n.id) > (?, ?) AND c.archived_at IS NULL
		ORDER BY n.client_id, n.id LIMIT ?)`, after.Client, after.User, refreshBatch))
	if err != nil {
		return nil, err
	}
	c.Rescore(batch...)
	c.users.day = day
	return batch, c.renew(ctx, batch, day)
}

// renewalDays is how long users have for a course that is assigned again.
const renewalDays = 30

// renew assigns courses again to the active ones of locked users: those whose
// last round was completed so long ago that the course's renewal window has
// ended. A framework is a reason only as long as it asks the user for the course;
// a course without a reason is not renewed.
func (c *Change) renew(ctx context.Context, keys []domain.UserKey, day domain.Date) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := keyLists(keys)
	renewed, err := pg.All[domain.UserKey](ctx, c, "renew courses", pg.SQL(`
		INSERT INTO assignments (client_id, user_id, course_id, round, position, from_program, direct, frameworks,
			assigned_at, due_on)
		SELECT a.client_id, a.user_id, a.course_id, a.round + 1, a.position, a.from_program, a.direct, a.standing,
			?2, ?3::date
		FROM (
			SELECT last.*, `+standingSQL+` AS standing
			FROM unnest(?0::uuid[], ?1::uuid[]) AS w (client_id, user_id)
			`+probeUser+` AND u.status = 'active'
			CROSS JOIN LATERAL (
				SELECT DISTINCT ON (course_id) *
				FROM assignments WHERE client_id = w.client_id AND user_id = w.user_id ORDER BY course_id, round DESC
			) AS last
			JOIN courses AS c ON c.id = last.course_id AND c.renewal_months > 0
			WHERE (last.completed_at + make_interval(months => c.renewal_months))::date <= ?4::date
		) AS a
		WHERE a.from_program OR a.direct OR a.standing <> '{}'
		ON CONFLICT DO NOTHING RETURNING client_id AS client, user_id AS "user"`,
		clients, users, c.At, day.AddDays(renewalDays), day))
	c.courseDueMoved(renewed...)
	return err
}

// dropBatch is how many old rows are deleted in one transaction.
const dropBatch = 10_000

// bounded are the tables whose rows are kept for a bounded time.
var bounded = []struct {
	// table has a column named by at: since when a row is kept.
	table, at string
	life      time.Duration
}{
	{"idempotency_records", "created_at", domain.OutcomeLife},
	{"audit_entries", "at", domain.AuditLife},
	{"published_events", "created_at", domain.EventLife}, // events itself is an outbox, and loses nothing
	{"email_classifications", "classified_at", domain.ClassificationLife},
	{"sync_runs", "queued_at", domain.SyncRunLife},
	{"webhook_deliveries", "created_at", domain.DeliveryLife},
}

// DropOld deletes the rows that are older than they are kept, a batch in each
// transaction. It may be repeated, and must not be called in a transaction.
func (d *DB) DropOld(ctx context.Context) error {
	for _, b := range bounded {
		drop := pg.SQL("DELETE FROM "+b.table+" WHERE ctid = ANY (ARRAY(SELECT ctid FROM "+b.table+
			" WHERE "+b.at+" < ? LIMIT ?))", d.Now().Add(-b.life), dropBatch)
		for dropped := dropBatch; dropped == dropBatch; {
			var err error
			if dropped, err = pg.Exec(ctx, d, "drop old rows of "+b.table, drop); err != nil {
				return err
			}
		}
	}
	return nil
}

// deletedFor is how long after its deletion a subscription may still be given
// deliveries, by a transaction that saw it before.
const deletedFor = time.Hour

// DropDeletedWebhooks deletes the deliveries of deleted subscriptions, a batch in
// each transaction. It may be cut short and repeated, and must not be called in a
// transaction.
func (d *DB) DropDeletedWebhooks(ctx context.Context) error {
	ids, err := pg.All[domain.WebhookID](ctx, d, "look for deleted webhooks", pg.SQL("SELECT id FROM deleted_webhooks"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		for dropped := dropBatch; dropped == dropBatch; {
			dropped, err = pg.Exec(ctx, d, "delete deliveries", pg.SQL(`
				DELETE FROM webhook_deliveries WHERE webhook_id = ?0 AND id = ANY (ARRAY(
					SELECT id FROM webhook_deliveries WHERE webhook_id = ?0 LIMIT ?1))`, id, dropBatch))
			if err != nil {
				return err
			}
		}
	}
	_, err = pg.Exec(ctx, d, "forget deleted webhooks", pg.SQL(`
		DELETE FROM deleted_webhooks AS g WHERE g.id = ANY(?::uuid[]) AND g.deleted_at < clock_timestamp() - ?::interval
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.webhook_id = g.id)`, pg.IDs(ids), deletedFor))
	return err
}
