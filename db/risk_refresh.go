package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

const (
	// refreshLock is the advisory lock of whoever does the daily refresh.
	refreshLock = 0x7265_6672_6573_6801
	// refreshBatch is how many users are refreshed in one transaction.
	refreshBatch = 1000
)

// RefreshDue reports whether the refresh of today is not done.
func (d *DB) RefreshDue(ctx context.Context) (bool, error) {
	done, err := d.refreshed(ctx, domain.DateOf(d.Now()))
	return err == nil && !done, err
}

func (d *DB) refreshed(ctx context.Context, day domain.Date) (done bool, err error) {
	err = d.conn(ctx).NewRaw("SELECT EXISTS (SELECT 1 FROM daily_refreshes WHERE day = ?)", day).Scan(ctx, &done)
	return done, d.bad("look for a daily refresh", err)
}

// DailyRefresh does once for a day, today or an earlier one, what the clock
// asks for (decisions 3.9, 7.1): it assigns courses again whose renewal window
// has ended, marks users as updated whose courses became overdue, lets scores
// decay, drops what is kept for a day, and refreshes every client's summary. It
// reports false where the day is done or another process is at it. progress,
// if not nil, is told how many users are done.
//
// Every step may be repeated, and the day is marked as done after the last: a
// refresh that was cut short is simply run again. It needs two connections of
// the pool, and no transaction around it.
func (d *DB) DailyRefresh(ctx context.Context, day domain.Date, progress func(done, total int)) (ran bool, err error) {
	release, err := d.tryLock(ctx, refreshLock)
	if err != nil || release == nil {
		return false, err
	}
	defer release()
	if done, err := d.refreshed(ctx, day); err != nil || done {
		return false, err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return d.markOverdue(ctx, day) },
		func(ctx context.Context) error { return d.refreshUsers(ctx, day, progress) },
		d.dropReplays,
		d.ForceSummaries,
	} {
		if err := step(ctx); err != nil {
			return false, err
		}
	}
	_, err = d.Bun().NewRaw("INSERT INTO daily_refreshes (day, finished_at) VALUES (?, ?) ON CONFLICT DO NOTHING", day, d.Now()).Exec(ctx)
	return err == nil, d.bad("mark the daily refresh as done", err)
}

// tryLock takes an advisory lock on a connection of its own, which a crash
// releases. It returns nil where another holds the lock.
func (d *DB) tryLock(ctx context.Context, key int64) (release func(), err error) {
	conn, err := d.Bun().Conn(ctx)
	if err != nil {
		return nil, d.bad("take a lock", err)
	}
	var locked bool
	if err := conn.NewRaw("SELECT pg_try_advisory_lock(?)", key).Scan(ctx, &locked); err != nil || !locked {
		return nil, errors.Join(d.bad("take a lock", err), conn.Close())
	}
	return func() { unlock(context.WithoutCancel(ctx), conn, key) }, nil
}

// unlock gives a lock and its connection back. A connection that can't be
// unlocked is thrown away, and the lock with it.
func unlock(ctx context.Context, conn bun.Conn, key int64) {
	if _, err := conn.NewRaw("SELECT pg_advisory_unlock(?)", key).Exec(ctx); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = conn.Close()
}

// markOverdue moves updated_at of the users for whom a course became overdue
// since the refresh before this one: nothing but the date has changed.
func (d *DB) markOverdue(ctx context.Context, day domain.Date) error {
	_, err := d.Bun().NewRaw(`
		WITH late AS (
			SELECT DISTINCT client_id, user_id FROM assignments
			WHERE completed_at IS NULL AND due_on < ?0
			AND due_on >= coalesce((SELECT max(day) FROM daily_refreshes WHERE day < ?0), '-infinity')
		), locked AS MATERIALIZED (
			SELECT u.client_id, u.id FROM late JOIN users AS u ON u.client_id = late.client_id AND u.id = late.user_id
			ORDER BY u.client_id, u.id FOR NO KEY UPDATE OF u
		)
		UPDATE users AS u SET updated_at = ?1 FROM locked AS l WHERE u.client_id = l.client_id AND u.id = l.id`,
		day, d.Now()).Exec(ctx)
	return d.bad("mark overdue users", err)
}

// refreshUsers renews courses and lets scores decay for the users of all
// clients that are not archived, a batch in each transaction.
func (d *DB) refreshUsers(ctx context.Context, day domain.Date, progress func(done, total int)) error {
	var total int
	err := d.Bun().NewRaw("SELECT count(*) FROM users AS u JOIN clients AS c ON c.id = u.client_id WHERE c.archived_at IS NULL").Scan(ctx, &total)
	if err != nil {
		return d.bad("count users", err)
	}
	var last scoredUser // its ids are those before all others
	for done := 0; ; {
		var batch []scoredUser
		err := d.Tx(ctx, func(ctx context.Context) error {
			var err error
			batch, err = d.lockUsers(ctx, `
				SELECT ?0 FROM users AS u JOIN clients AS c ON c.id = u.client_id
				WHERE (u.client_id, u.id) > (?1, ?2) AND c.archived_at IS NULL
				ORDER BY u.client_id, u.id LIMIT ?3 FOR NO KEY UPDATE OF u`, last.ClientID, last.ID, refreshBatch)
			if err != nil {
				return err
			}
			if err := d.renew(ctx, batch, day); err != nil {
				return err
			}
			return d.score(ctx, batch, day)
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1]
		done += len(batch)
		progress(done, max(done, total))
	}
}

// renewalDays is how long users have for a course that is assigned again.
const renewalDays = 30

// renew assigns courses again to the active ones of locked users: those whose
// last round was completed so long ago that the course's renewal window has
// ended.
func (d *DB) renew(ctx context.Context, users []scoredUser, day domain.Date) error {
	users = slices.DeleteFunc(slices.Clone(users), func(u scoredUser) bool { return u.Status != domain.Active })
	if len(users) == 0 {
		return nil
	}
	clients, ids := userArrays(users)
	var renewed []struct {
		ClientID domain.ClientID
		UserID   domain.UserID
	}
	err := d.conn(ctx).NewRaw(`
		INSERT INTO assignments (client_id, user_id, course_id, round, position, framework_use_id, assigned_at, due_on)
		SELECT w.client_id, w.user_id, a.course_id, a.round + 1, a.position, a.framework_use_id, ?2, ?3
		FROM unnest(?0::uuid[], ?1::uuid[]) AS w (client_id, user_id)
		CROSS JOIN LATERAL (
			SELECT DISTINCT ON (course_id) course_id, round, position, framework_use_id, completed_at
			FROM assignments WHERE client_id = w.client_id AND user_id = w.user_id ORDER BY course_id, round DESC
		) AS a
		JOIN courses AS c ON c.id = a.course_id AND c.renewal_months > 0
		WHERE (a.completed_at + make_interval(months => c.renewal_months))::date <= ?4
		ON CONFLICT DO NOTHING RETURNING client_id, user_id`,
		clients, ids, d.Now(), day.AddDays(renewalDays), day).Scan(ctx, &renewed)
	if err != nil {
		return d.bad("renew courses", err)
	}
	byClient := map[domain.ClientID][]domain.UserID{}
	for _, r := range renewed {
		byClient[r.ClientID] = append(byClient[r.ClientID], r.UserID)
	}
	for client, users := range byClient {
		if err := d.refreshNextDue(ctx, client, users); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) dropReplays(ctx context.Context) error {
	_, err := d.Bun().NewRaw("DELETE FROM idempotency_records WHERE created_at < ?", d.Now().Add(-domain.OutcomeLife)).Exec(ctx)
	return d.bad("drop old idempotency records", err)
}
