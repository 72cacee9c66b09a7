package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
// decay, drops what is kept for a bounded time, and refreshes every client's summary. It
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
		d.dropOld,
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
			JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id AND u.status = 'active'
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
