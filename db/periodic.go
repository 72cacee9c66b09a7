package db

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Leases of periodic jobs, the daily refresh, and the deletion of old rows.

// ErrLeaseLost means that a lease ended, and another process has taken the work over.
var ErrLeaseLost = errors.New("the lease has ended, and another process has taken the work over")

// CheckLease returns the error of a statement under a lease: ErrLeaseLost if it changed no
// row.
func CheckLease(changed int, err error) error {
	if err == nil && changed == 0 {
		err = ErrLeaseLost
	}
	return err
}

// claimIdle bounds the idle time within the transaction of a claim, which locks its rows.
const claimIdle = "5s"

// Claim runs fn in a transaction that claims rows of a queue: mails, deliveries, reports or
// sync runs. fn leaves out the rows of SuspendedClients. The transaction has its id before fn
// reads the suspended clients: either a move waits for the claim to end, or fn sees the
// suspension (db/move). The server rolls back a claim that is idle for claimIdle.
func (d *DB) Claim(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if _, err := pg.Exec(ctx, d, "number a claim", pg.Prepared(pg.SQL(
			"SELECT pg_current_xact_id(), set_config('idle_in_transaction_session_timeout', ?, true)", claimIdle))); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// ListenFor calls wake at each notification of a channel, and once when it begins to
// listen, until ctx ends or the connection fails (pg.DB.Listen). It checks the connection
// after 10 s of silence.
func (d *DB) ListenFor(ctx context.Context, channel string, wake func()) error {
	return d.Listen(ctx, channel, 10*time.Second, func(why pg.ListenEvent) error {
		if why != pg.Silent {
			wake()
		}
		return nil
	})
}

// DiscardedFor is how long failed reports and periodic jobs are counted.
const DiscardedFor = 7 * 24 * time.Hour

// ReportCare is the periodic job of report.Maintainer.
const ReportCare = "report_care"

// PeriodicLease is the right to do a periodic job.
type PeriodicLease struct {
	kind  string
	token uuid.UUID
}

// ClaimPeriodic leases a periodic job for a duration. It returns nil where the job is not
// due, or another process has the lease. A lease that expires counts as a failure.
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

// FinishPeriodic releases a lease: the job is due again at a time. ErrLeaseLost if the lease
// expired and another process claimed the job.
func (d *DB) FinishPeriodic(ctx context.Context, l *PeriodicLease, due time.Time, failed bool) error {
	now, failures := d.Now(), []time.Time{}
	if failed {
		failures = append(failures, now)
	}
	n, err := pg.Exec(ctx, d, "finish a periodic job", pg.SQL(`
		UPDATE periodic_jobs SET lease = NULL, due_at = @due,
			failed_at = ARRAY(SELECT at FROM unnest(failed_at || @failures::timestamptz[]) AS at WHERE at > @keptSince)
		WHERE kind = @kind AND lease = @token`, pg.Named{
		"kind": l.kind, "token": l.token, "due": due, "failures": failures,
		"keptSince": now.Add(-DiscardedFor),
	}))
	return CheckLease(n, err)
}

// refreshBatch is how many users are refreshed in one transaction.
const refreshBatch = 1000

// RefreshDue reports whether today's refresh is not done.
func (d *DB) RefreshDue(ctx context.Context) (bool, error) {
	done, err := d.refreshed(ctx, domain.DateOf(d.Now()))
	return err == nil && !done, err
}

func (d *DB) refreshed(ctx context.Context, day domain.Date) (bool, error) {
	return pg.One[bool](ctx, d, "look for a daily refresh",
		pg.SQL("SELECT EXISTS (SELECT 1 FROM daily_refreshes WHERE day = ?)", day))
}

// DailyRefresh makes the changes that depend on the date, once for a day, today or an
// earlier one (decisions 3.9, 7.1): it assigns courses again whose renewal window has ended,
// touches users whose courses became overdue, decays scores, deletes old rows, and
// refreshes every client's summary. It returns false where the day is done or another process
// does it. progress, if not nil, gets the number of users done. It is background work, for
// all clients that are not archived.
//
// Every step is idempotent, and the day is marked as done after the last: run it again after
// an error. It needs two connections of the pool, and no transaction around it.
func (d *DB) DailyRefresh(ctx context.Context, day domain.Date, progress func(done, total int)) (ran bool, err error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	_, err = d.TryAdvisoryLock(ctx, "daily refresh", func(ctx context.Context) error {
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
		func(ctx context.Context) error { return d.touchOverdue(ctx, day) },
		func(ctx context.Context) error { return d.refreshUsers(ctx, day, progress) },
		d.DropOld,
		d.DropDeletedWebhooks,
		d.ForceSummaries,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	_, err := pg.Exec(ctx, d, "mark the daily refresh as done",
		pg.SQL("INSERT INTO daily_refreshes (day, finished_at) VALUES (?, ?) ON CONFLICT DO NOTHING", day, d.Now()))
	return err
}

// touchOverdue moves updated_at of the users with a course that became overdue since the
// previous refresh: no write moved it when the date passed.
func (d *DB) touchOverdue(ctx context.Context, day domain.Date) error {
	return d.Change(ctx, func(ctx context.Context, c *Change) error {
		late, err := c.LockUserKeys(ctx, pg.SQL(`(u.client_id, u.id) IN (
			SELECT client_id, user_id FROM assignments
			WHERE completed_at IS NULL AND due_on < ?0::date
			AND due_on >= coalesce((SELECT max(day) FROM daily_refreshes WHERE day < ?0::date), '-infinity'))`, day))
		c.TouchUsers(late...)
		return err
	})
}

// refreshUsers renews courses and decays scores of the users of all clients that are not
// archived, a batch in each transaction.
func (d *DB) refreshUsers(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	total, err := pg.One[int](ctx, d, "count users", pg.SQL(
		"SELECT count(*) FROM users AS u JOIN clients AS c ON c.id = u.client_id WHERE c.archived_at IS NULL"))
	if err != nil {
		return err
	}
	var last domain.UserKey // zero is before all others
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

// refreshBatch refreshes the next batch of users, by key, as of a day, and returns them.
func (c *Change) refreshBatch(ctx context.Context, after domain.UserKey, day domain.Date) ([]domain.UserKey, error) {
	batch, err := c.LockUserKeys(ctx, pg.SQL(`(u.client_id, u.id) IN (
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

// renewalDays is the time until a renewed course is due.
const renewalDays = 30

// renew assigns courses again to those locked users who are active, if the renewal window
// after the last completion has ended. A course without a reason is not renewed. A framework
// is a reason only while it requires the course of the user.
func (c *Change) renew(ctx context.Context, keys []domain.UserKey, day domain.Date) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := KeyArrays(keys)
	renewed, err := pg.All[domain.UserKey](ctx, c, "renew courses", pg.SQL(`
		WITH renewed AS (
			INSERT INTO assignments (client_id, user_id, course_id, round, position, from_program, direct, frameworks,
				assigned_at, due_on)
			SELECT a.client_id, a.user_id, a.course_id, a.round + 1, a.position, a.from_program, a.direct, a.standing,
				@now, @renewalDays::date
			FROM (
				SELECT last.*, `+standingSQL+` AS standing
				FROM unnest(@clients::uuid[], @users::uuid[]) AS w (client_id, user_id)
				`+probeUser+` AND u.status = 'active'
				CROSS JOIN LATERAL (
					SELECT DISTINCT ON (course_id) *
					FROM assignments WHERE client_id = w.client_id AND user_id = w.user_id ORDER BY course_id, round DESC
				) AS last
				JOIN courses AS c ON c.id = last.course_id AND c.renewal_months > 0
				WHERE (last.completed_at + make_interval(months => c.renewal_months))::date <= @day::date
			) AS a
			WHERE a.from_program OR a.direct OR a.standing <> '{}'
			ON CONFLICT DO NOTHING RETURNING client_id, user_id, course_id, round
		), superseded AS (
			UPDATE assignments AS a SET superseded = true FROM renewed AS r
			WHERE a.client_id = r.client_id AND a.user_id = r.user_id AND a.course_id = r.course_id AND a.round = r.round - 1
		)
		SELECT client_id AS client, user_id AS "user" FROM renewed`,
		pg.Named{
			"clients": clients, "users": users, "now": c.At, "renewalDays": day.AddDays(renewalDays),
			"day": day,
		}))
	c.NextDueChanged(renewed...)
	return err
}

// dropBatch is how many old rows are deleted in one transaction.
const dropBatch = 10_000

// retained are the tables whose rows are kept for a time, by the column at.
var retained = []struct {
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

// DropOld deletes the expired rows of retained tables, a batch in each transaction. It is
// idempotent, and must not be called in a transaction.
func (d *DB) DropOld(ctx context.Context) error {
	for _, t := range retained {
		err := d.drop(ctx, "drop old rows of "+t.table, pg.SQL("DELETE FROM "+t.table+
			" WHERE ctid = ANY (ARRAY(SELECT ctid FROM "+t.table+" WHERE "+t.at+" < ? LIMIT ?))",
			d.Now().Add(-t.life), dropBatch))
		if err != nil {
			return err
		}
	}
	return nil
}

// drop repeats a statement that deletes up to dropBatch rows until fewer are left.
func (d *DB) drop(ctx context.Context, doing string, statement pg.Query) error {
	for {
		if n, err := pg.Exec(ctx, d, doing, statement); err != nil || n < dropBatch {
			return err
		}
	}
}

// deletedFor is how long after its deletion a subscription may still get deliveries, from a
// transaction that saw it before.
const deletedFor = time.Hour

// DropDeletedWebhooks deletes the deliveries of deleted subscriptions, a batch in
// each transaction. It is idempotent, and must not be called in a transaction.
func (d *DB) DropDeletedWebhooks(ctx context.Context) error {
	ids, err := pg.All[domain.WebhookID](ctx, d, "look for deleted webhooks", pg.SQL("SELECT id FROM deleted_webhooks"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := d.drop(ctx, "delete deliveries", pg.SQL(`
			DELETE FROM webhook_deliveries WHERE webhook_id = ?0 AND id = ANY (ARRAY(
				SELECT id FROM webhook_deliveries WHERE webhook_id = ?0 LIMIT ?1))`, id, dropBatch))
		if err != nil {
			return err
		}
	}
	_, err = pg.Exec(ctx, d, "forget deleted webhooks", pg.SQL(`
		DELETE FROM deleted_webhooks AS g WHERE g.id = ANY(?::uuid[]) AND g.deleted_at < clock_timestamp() - ?::interval
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.webhook_id = g.id)`, pg.IDs(ids), deletedFor))
	return err
}

// RescoreClient computes the scores of a client's users again, a batch in each
// transaction.
func (d *DB) RescoreClient(ctx context.Context, client domain.ClientID) error {
	for last := (domain.UserID{}); ; {
		var batch []domain.UserKey
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			batch, err = c.LockUserKeys(ctx, pg.SQL(`(u.client_id, u.id) IN (
				SELECT client_id, id FROM users WHERE client_id = ? AND id > ? ORDER BY id LIMIT ?)`,
				client, last, refreshBatch))
			c.Rescore(batch...)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].User
	}
}
