package db

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Leases of periodic jobs, the daily refresh, and the deletion of old rows.

// ErrLeaseLost reports that a lease has expired, and another process has taken over the work.
var ErrLeaseLost = errors.New("the lease has ended, and another process has taken the work over")

// claimIdle bounds the idle time of the transaction of a claim, which holds row locks.
const claimIdle = "5s"

// Claim runs fn in a transaction that claims rows of a queue: emails, deliveries, reports or sync runs. fn must leave
// out the rows of SuspendedClients. The transaction gets its id before fn reads these: either a move of a partner
// (db/move) waits for the end of the claim, or fn sees the suspension. A claim that idles for claimIdle is rolled back.
func (d *DB) Claim(ctx context.Context, fn func(ctx context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if err := pg.Run(ctx, d, "assign a transaction id to a claim", pg.Prepared(pg.SQL(
			"SELECT pg_current_xact_id(), set_config('idle_in_transaction_session_timeout', ?, true)", claimIdle))); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// Leased is a lease on a row of a table whose key is an owner and an ID, and whose columns due_at and lease are the end
// of the lease and its token.
type Leased interface{ LeasedRow() LeasedRow }

// LeasedRow is the row of a lease: its table, the table's column of owners, the row's key, and the token of the lease.
type LeasedRow struct {
	Table, OwnerColumn string
	Owner, ID, Token   [16]byte
}

// RenewLeases extends leases on rows of one table to end after the duration life from now, except leases that are lost.
func RenewLeases[L Leased](ctx context.Context, d *DB, leases []L, life time.Duration) error {
	var row LeasedRow
	var owners, ids, tokens [][16]byte
	for _, l := range leases {
		row = l.LeasedRow()
		owners, ids, tokens = append(owners, row.Owner), append(ids, row.ID), append(tokens, row.Token)
	}
	if len(leases) == 0 {
		return nil
	}
	return pg.Run(ctx, d, "renew leases of "+row.Table, pg.SQL(`
		UPDATE `+row.Table+` AS t SET due_at = ?until FROM unnest(?owners::uuid[], ?ids::uuid[], ?tokens::uuid[]) AS l (owner_id, id, lease)
		WHERE t.`+row.OwnerColumn+` = l.owner_id AND t.id = l.id AND t.lease = l.lease`,
		pg.Named{"owners": owners, "ids": ids, "tokens": tokens, "until": d.Now().Add(life)}))
}

// ClaimTime returns the time as of which a claim leases rows for the duration life, and false if nothing may be
// claimed: if the clock has jumped forward, leases that other processes still work under have ended. For the duration
// of a lease they renew these, or finish.
func (d *DB) ClaimTime(life time.Duration) (now time.Time, ok bool) {
	now = d.Now()
	return now, d.SinceJump() >= life // read after now: a jump is noted before it is shown
}

// ListenFor calls wake at each notification of a channel, and once when it begins to listen, until ctx ends or the
// connection fails (pg.DB.Listen). It checks the connection after 10 seconds without a notification.
func (d *DB) ListenFor(ctx context.Context, channel string, wake func()) error {
	return d.Listen(ctx, channel, 10*time.Second, func(event pg.ListenEvent) error {
		if event != pg.Silent {
			wake()
		}
		return nil
	})
}

// DiscardedFor is how long failures of reports and periodic jobs are counted.
const DiscardedFor = 7 * 24 * time.Hour

// farAhead is more than the longest lease of a periodic job, and than the longest time until one is due again.
const farAhead = 6 * time.Minute

// ReportCare is the kind of the periodic job of report.Maintainer.
const ReportCare = "report_care"

// PeriodicLease is the right to run a periodic job.
type PeriodicLease struct {
	kind  string
	token uuid.UUID
}

// ClaimPeriodic leases a periodic job for the duration life. It returns nil if the job is not due, or if another
// process holds its lease: during a lease, due_at is the time at which the lease expires. If the last lease has
// expired, ClaimPeriodic records a failure at that time. A job that is due more than farAhead from now is due: the
// clock was ahead when that was stored.
func (d *DB) ClaimPeriodic(ctx context.Context, kind string, life time.Duration) (*PeriodicLease, error) {
	l := &PeriodicLease{kind: kind, token: uuid.New()}
	now, ok := d.ClaimTime(life)
	if !ok {
		return nil, nil
	}
	n, err := pg.Exec(ctx, d, "claim a periodic job", pg.SQL(`
		INSERT INTO periodic_jobs AS p (kind, due_at, lease) VALUES (?kind, ?until, ?token)
		ON CONFLICT (kind) DO UPDATE SET due_at = excluded.due_at, lease = excluded.lease,
			failed_at = CASE WHEN p.lease IS NULL THEN p.failed_at ELSE p.failed_at || p.due_at END
		WHERE p.due_at <= ?now OR p.due_at > ?ahead`,
		pg.Named{"kind": kind, "until": now.Add(life), "token": l.token, "now": now, "ahead": now.Add(farAhead)}))
	if err != nil || n == 0 {
		return nil, err
	}
	return l, nil
}

// FinishPeriodic releases a lease, records a failure if failed is true, and makes the job due again at due. It forgets
// failures older than DiscardedFor. It returns ErrLeaseLost if another process has taken the job over.
func (d *DB) FinishPeriodic(ctx context.Context, l *PeriodicLease, due time.Time, failed bool) error {
	now, failures := d.Now(), []time.Time{}
	if failed {
		failures = append(failures, now)
	}
	return pg.RunOr(ctx, d, ErrLeaseLost, "finish a periodic job", pg.SQL(`
		UPDATE periodic_jobs SET lease = NULL, due_at = ?due,
			failed_at = ARRAY(SELECT at FROM unnest(failed_at || ?failures::timestamptz[]) AS at WHERE at > ?keptSince)
		WHERE kind = ?kind AND lease = ?token`, pg.Named{
		"kind": l.kind, "token": l.token, "due": due, "failures": failures,
		"keptSince": now.Add(-DiscardedFor),
	}))
}

// refreshBatchSize is the number of users that one transaction refreshes.
const refreshBatchSize = 1000

// RefreshDue reports whether today's DailyRefresh has still to run.
func (d *DB) RefreshDue(ctx context.Context) (bool, error) {
	done, err := d.refreshDone(ctx, domain.DateOf(d.Now()))
	return err == nil && !done, err
}

// refreshDone reports whether the DailyRefresh of a day is done. One that was done while the clock was ahead was done
// too early: it does not count until the clock has caught up.
func (d *DB) refreshDone(ctx context.Context, day domain.Date) (bool, error) {
	return pg.One[bool](ctx, d, "look for a daily refresh", pg.SQL(
		"SELECT EXISTS (SELECT 1 FROM daily_refreshes WHERE day = ? AND finished_at <= ?)", day, domain.Ahead(d.Now())))
}

// DailyRefresh makes the changes that depend on the date, once for each day, which is today or earlier (decisions 3.9,
// 7.1): it sets updated_at of users whose courses became overdue, assigns courses again whose renewal window has ended,
// recomputes scores, which decay, deletes old rows, and refreshes every client's summary. It returns false if the day
// is already done, if another process is doing it, or if the clock is not trusted (ClockTrusted), which it asks before
// every batch. progress, if not nil, gets the number of users done and in total. It is background work, for all clients
// that are not archived.
//
// All steps are idempotent, and the day is marked as done after the last one: after an error run it again. It needs two
// connections of the pool, and must not be called in a transaction.
func (d *DB) DailyRefresh(ctx context.Context, day domain.Date, progress func(done, total int)) (ran bool, err error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	_, err = d.TryAdvisoryLock(ctx, "daily refresh", func(ctx context.Context) error {
		if done, err := d.refreshDone(ctx, day); err != nil || done {
			return err
		}
		ran = true
		return d.refresh(ctx, day, progress)
	})
	if errors.Is(err, errClockHeld) {
		return false, nil
	}
	return ran && err == nil, err
}

// errClockHeld reports that the clock is not trusted (ClockTrusted).
var errClockHeld = errors.New("the clock is not trusted")

// requireClock returns errClockHeld unless the clock is trusted at now.
func (d *DB) requireClock(ctx context.Context, now time.Time) error {
	trusted, err := d.ClockTrusted(ctx, now)
	if err == nil && !trusted {
		err = errClockHeld
	}
	return err
}

// refresh runs the steps of DailyRefresh, and marks the day as done and later days as not done: if there are some, the
// clock was ahead on them, or is behind now. Then the refresh of that day is done again.
func (d *DB) refresh(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return d.touchOverdue(ctx, day) },
		func(ctx context.Context) error { return d.refreshUsers(ctx, day, progress) },
		func(ctx context.Context) error { return d.dropOld(ctx, d.requireClock) },
		d.DropDeletedWebhooks,
		d.ForceSummaries,
	} {
		if err := d.requireClock(ctx, d.Now()); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	now := d.Now()
	if err := d.requireClock(ctx, now); err != nil {
		return err
	}
	return pg.Run(ctx, d, "mark the daily refresh as done", pg.SQL(`
		WITH later AS (DELETE FROM daily_refreshes WHERE day > ?0)
		INSERT INTO daily_refreshes (day, finished_at) VALUES (?0, ?1) ON CONFLICT (day) DO UPDATE SET finished_at = excluded.finished_at`, day, now))
}

// touchOverdue sets updated_at of the users with a course that has become overdue since the previous refresh. No write
// does, because a course becomes overdue by the passing of time.
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

// refreshUsers renews the courses and recomputes the scores of all users of clients that are not archived, in batches.
func (d *DB) refreshUsers(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	total, err := pg.One[int](ctx, d, "count users", pg.SQL(
		"SELECT count(*) FROM users AS u JOIN clients AS c ON c.id = u.client_id WHERE c.archived_at IS NULL"))
	if err != nil {
		return err
	}
	var last domain.UserKey // the zero key is less than all others
	for done := 0; ; {
		var batch []domain.UserKey
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			if err := d.requireClock(ctx, c.At); err != nil {
				return err
			}
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

// refreshBatch recomputes the scores and renews the courses of the next users after a key, as of a day. It returns
// these users, at most refreshBatchSize, in the order of their keys.
func (c *Change) refreshBatch(ctx context.Context, after domain.UserKey, day domain.Date) ([]domain.UserKey, error) {
	batch, err := c.LockUserKeys(ctx, pg.SQL(`(u.client_id, u.id) IN (
		SELECT n.client_id, n.id FROM users AS n JOIN clients AS c ON c.id = n.client_id
		WHERE (n.client_id, n.id) > (?client, ?user) AND c.archived_at IS NULL
		ORDER BY n.client_id, n.id LIMIT ?refreshBatchSize)`,
		pg.Named{"client": after.Client, "user": after.User, "refreshBatchSize": refreshBatchSize}))
	if err != nil {
		return nil, err
	}
	c.users.day = day // of the scores
	c.Rescore(batch...)
	return batch, c.renew(ctx, batch, day)
}

// renewalDays is the number of days until a course that is assigned again is due.
const renewalDays = 30

// renew assigns courses again to those of the locked users who are active, if the renewal time after the last
// completion has passed on day. The new round needs a reason of the last one: the program, a direct assignment, or a
// framework assignment that still requires the course of the user.
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
				?now, ?dueOn::date
			FROM (
				SELECT last.*, `+standingSQL+` AS standing
				FROM unnest(?clients::uuid[], ?users::uuid[]) AS w (client_id, user_id)
				`+probeUser+` AND u.status = 'active'
				CROSS JOIN LATERAL (
					SELECT DISTINCT ON (course_id) *
					FROM assignments WHERE client_id = w.client_id AND user_id = w.user_id ORDER BY course_id, round DESC
				) AS last
				JOIN courses AS c ON c.id = last.course_id AND c.renewal_months > 0
				WHERE (last.completed_at + make_interval(months => c.renewal_months))::date <= ?day::date
			) AS a
			WHERE a.from_program OR a.direct OR a.standing <> '{}'
			ON CONFLICT DO NOTHING RETURNING client_id, user_id, course_id, round
		), superseded AS (
			UPDATE assignments AS a SET superseded = true FROM renewed AS r
			WHERE a.client_id = r.client_id AND a.user_id = r.user_id AND a.course_id = r.course_id AND a.round = r.round - 1
		)
		SELECT client_id AS client, user_id AS "user" FROM renewed`,
		pg.Named{
			"clients": clients, "users": users, "now": c.At, "day": day, "dueOn": day.AddDays(renewalDays),
		}))
	c.NextDueChanged(renewed...)
	return err
}

// dropBatch is the number of old rows that one transaction deletes.
const dropBatch = 10_000

// shownFor is how long rows are kept that nothing shows any more, the risk history, and the days that are billed.
const shownFor = domain.UsageDays * 24 * time.Hour

// retention is a table whose rows are deleted in time.
type retention struct {
	table string
	life  time.Duration
	// old selects the ctid of up to ?1 rows that are older than the time ?0. It finds them by an index, or by the keys of
	// each client or partner: ?2 is the least ID of that time. ?3 are the kinds of emails to partners
	// (domain.PartnerMails).
	old string
}

// retained are the tables with a retention, in the order in which they are emptied. docs/operating.md lists them.
var retained = []retention{
	olderThan("idempotency_records", "created_at", domain.OutcomeLife),
	olderThan("audit_entries", "at", domain.AuditLife),
	olderThan("published_events", "created_at", domain.EventLife), // unpublished rows, in the table events, have no retention
	olderThan("email_classifications", "classified_at", domain.ClassificationLife),
	olderThan("sync_runs", "queued_at", domain.SyncRunLife),
	olderThan("webhook_deliveries", "created_at", domain.DeliveryLife),
	{"risk_history", shownFor, ofEach("clients", "SELECT ctid FROM risk_history WHERE client_id = e.id AND day < ?0::date ORDER BY day")},
	// The last row before that time stays: its value is that of the days until the next row.
	{"active_user_days", shownFor, ofEach("clients", `SELECT ctid FROM active_user_days WHERE client_id = e.id
		AND day < (SELECT max(day) FROM active_user_days WHERE client_id = e.id AND day <= ?0::date) ORDER BY day`)},
	// Those that failed are shown to operators. The others only keep an email from being requested twice, which nothing
	// does later than domain.MailCauseLife.
	{"mail_requests", shownFor, ofEach("clients", `SELECT ctid FROM mail_requests WHERE client_id = e.id AND id < ?2
		AND created_at < ?0 AND (sent_at IS NOT NULL OR suppressed_at IS NOT NULL) ORDER BY id`)},
	{"admin_invites", shownFor, ofEach("clients", `SELECT ctid FROM admin_invites AS i WHERE client_id = e.id
		AND created_at < ?0 AND expires_at < ?0
		AND NOT EXISTS (SELECT FROM mail_requests AS r WHERE r.client_id = e.id AND r.invite_id = i.id) ORDER BY created_at`)},
	// An extension may show its own kinds of emails.
	{"partner_mails", shownFor, ofEach("partners", `SELECT ctid FROM partner_mails WHERE partner_id = e.id AND id < ?2
		AND created_at < ?0 AND kind = ANY(?3::text[]) AND (sent_at IS NOT NULL OR suppressed_at IS NOT NULL) ORDER BY id`)},
	{"daily_refreshes", shownFor, "SELECT ctid FROM daily_refreshes WHERE day < least(?0::date, (SELECT max(day) FROM daily_refreshes)) LIMIT ?1"},
}

// olderThan returns the retention of rows by the time in a column, which has an index.
func olderThan(table, at string, life time.Duration) retention {
	return retention{table, life, "SELECT ctid FROM " + table + " WHERE " + at + " < ?0 LIMIT ?1"}
}

// ofEach returns a query for the rows of each row, alias e, of a table of owners.
func ofEach(owners, rows string) string {
	return "SELECT o.ctid FROM " + owners + " AS e CROSS JOIN LATERAL (" + rows + " LIMIT ?1) AS o LIMIT ?1"
}

// DropOld deletes the expired rows of the retained tables, one batch per transaction. It is idempotent, and must not be
// called in a transaction. DailyRefresh calls it once the clock is trusted.
func (d *DB) DropOld(ctx context.Context) error {
	return d.dropOld(ctx, func(context.Context, time.Time) error { return nil })
}

// dropOld is DropOld. For each table it calls require with the time by which it deletes, and ends with its error.
func (d *DB) dropOld(ctx context.Context, require func(ctx context.Context, now time.Time) error) error {
	for _, t := range retained {
		now := d.Now()
		if err := require(ctx, now); err != nil {
			return err
		}
		before := now.Add(-t.life)
		err := d.drop(ctx, "drop old rows of "+t.table, pg.SQL(
			"DELETE FROM "+t.table+" WHERE ctid = ANY (ARRAY("+t.old+"))",
			before, dropBatch, firstID(before), domain.PartnerMails))
		if err != nil {
			return err
		}
	}
	return nil
}

// firstID returns the least UUID of version 7 of a time.
func firstID(at time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:], ms[2:])
	return id
}

// drop repeats a statement that deletes up to dropBatch rows until it deletes fewer. Errors begin with name.
func (d *DB) drop(ctx context.Context, name string, statement pg.Query) error {
	for {
		if n, err := pg.Exec(ctx, d, name, statement); err != nil || n < dropBatch {
			return err
		}
	}
}

// DropDeletedWebhooks deletes the deliveries of deleted subscriptions, in batches, and then forgets the subscriptions.
// No more deliveries can come: the transaction that inserts them holds a lock on the subscription that its deletion
// waits for. DropDeletedWebhooks is idempotent, and must not be called in a transaction.
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
	return pg.Run(ctx, d, "forget deleted webhooks", pg.SQL(`
		DELETE FROM deleted_webhooks AS g WHERE g.id = ANY(?::uuid[])
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.webhook_id = g.id)`, pg.IDs(ids)))
}

// RescoreClient recomputes the scores of a client's users, one batch per transaction.
func (d *DB) RescoreClient(ctx context.Context, client domain.ClientID) error {
	for last := (domain.UserID{}); ; {
		var batch []domain.UserKey
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			batch, err = c.LockUserKeys(ctx, pg.SQL(`(u.client_id, u.id) IN (
				SELECT client_id, id FROM users WHERE client_id = ?client AND id > ?last ORDER BY id LIMIT ?refreshBatchSize)`,
				pg.Named{"client": client, "last": last, "refreshBatchSize": refreshBatchSize}))
			c.Rescore(batch...)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].User
	}
}
