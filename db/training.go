package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Courses, the training of a user, reminders, and events of overdue courses.

// selectCourse selects domain.Courses from courses, alias c.
const selectCourse = "c.id, c.title, c.renewal_months, c.languages, c.created_at"

// Courses reads a page of the catalogue, which is the same for all clients, in the order of creation.
func (d *DB) Courses(ctx context.Context, w domain.Window) (domain.Slice[domain.Course], error) {
	k := pg.ByTime("c.created_at", "c.id", func(c *domain.Course) (time.Time, domain.CourseID) { return c.CreatedAt, c.ID })
	k.Table, k.Select = "courses AS c", func(q *bun.SelectQuery) { q.ColumnExpr(selectCourse) }
	return pg.CountedPage(ctx, d, k, w)
}

// Course reads a course of the catalogue.
func (d *DB) Course(ctx context.Context, id domain.CourseID) (domain.Course, error) {
	return pg.Find[domain.Course](ctx, d, id.Noun(),
		pg.Prepared(pg.From("courses AS c").ColumnExpr(selectCourse).Apply(pg.Where("c.id = ?", id))))
}

// selectTraining selects domain.Assignments from the courses of users' lists, alias t.
const selectTraining = "t.course_id AS course, c.title, t.position, t.place, t.assigned_at, t.due_on, t.completed_at, " +
	trainingChangedAt + " AS changed_at"

// trainingChangedAt is the time at which a course of a user's list, alias t, last changed, apart from becoming overdue:
// it was assigned or completed, its latest round was withdrawn, or its place in the list changed.
const trainingChangedAt = `greatest(t.assigned_at, t.given_at, t.completed_at, t.updated_at, (
	SELECT max(greatest(a.assigned_at, a.given_at)) FROM assignments AS a
	WHERE a.client_id = t.client_id AND a.user_id = t.user_id AND a.round = 1
		AND (a.position, a.course_id) < (t.position, t.course_id)))`

// trainingChanged is trainingChangedAt as of the day ?0, on which the course may have become overdue.
const trainingChanged = `greatest(` + trainingChangedAt + `,
	CASE WHEN t.completed_at IS NULL AND t.due_on < ?0::date THEN (t.due_on + 1)::timestamptz END)`

// Training reads a page of the user's courses, in the order of their positions. If since is not nil, it selects only
// courses that changed at or after since.
func (u *User) Training(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Assignment], error) {
	k := pg.Keyset[domain.Assignment]{
		Table: "user_training AS t", Key: "t.position", Cast: "integer", ID: "t.course_id",
		Select: func(q *bun.SelectQuery) {
			q.ColumnExpr(selectTraining).Join("JOIN courses AS c ON c.id = t.course_id")
		},
		Position: func(a *domain.Assignment) domain.Position {
			return domain.Position{Key: pg.NumberKey(a.Position), ID: a.Course.UUID()}
		},
	}
	k.Where.Add("t.client_id = ? AND t.user_id = ?", u.Client, u.ID)
	delta, err := pg.DeltaOf(ctx, u.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.Assignment]{}, err
	}
	k.Where.Changed(delta, trainingChanged, domain.DateOf(u.db.Now()))
	return pg.CountedPage(ctx, u.db, k, w)
}

// RemindOverdue emails a reminder to each of the client's users among ids who is active, has an overdue course and was
// not reminded on the same day (UTC). It returns the outcome for each user found. If ids is nil, it reminds all such users
// of the client, and returns RateLimited if it has already done so on that day.
func (t *Tenant) RemindOverdue(ctx context.Context, c *Change, ids []domain.UserID) ([]domain.Reminded, error) {
	today := domain.DateOf(c.At)
	recipients := pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids))
	if ids == nil {
		recipients = pg.SQL("u.status = 'active' AND u.next_due_on < ?::date", today)
		c.WillLock(ClientLocks)
		first, err := pg.Exec(ctx, c, "record the reminders of a client", pg.SQL(`
			UPDATE clients SET training_reminded_on = ?1::date
			WHERE id = ?0 AND training_reminded_on IS DISTINCT FROM ?1::date`, t.ID, today))
		if err != nil {
			return nil, err
		}
		if first == 0 {
			return nil, &domain.Error{
				Code: domain.RateLimited, Object: t.ID.Noun(), RetryAfter: domain.UntilTomorrow(c.At),
				Message: "all users of this client were already reminded today; the next reminders can be sent tomorrow (UTC)",
			}
		}
	}
	// A unique index allows one reminder of a user a day: mailed leaves out users who were reminded today.
	reminded, err := pg.All[domain.Reminded](ctx, c, "request reminders of courses", pg.SQL(`
		WITH recipients AS MATERIALIZED (
			SELECT u.id, u.status = 'active' AS active, coalesce(u.next_due_on < ?today::date, false) AS overdue
			FROM users AS u WHERE u.client_id = ?client AND ?recipients
		), mailed AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, created_at)
			SELECT ?client::uuid, uuid_v7(?now::timestamptz), ?kind::text, id, ?now::timestamptz
			FROM recipients WHERE active AND overdue ORDER BY id
			ON CONFLICT DO NOTHING RETURNING id, user_id
		)
		SELECT r.id AS "user", m.id AS mail, CASE
			WHEN m.id IS NOT NULL THEN ''
			WHEN NOT r.active THEN 'inactive'
			WHEN NOT r.overdue THEN 'nothing_overdue'
			ELSE 'reminded_today' END AS skip
		FROM recipients AS r LEFT JOIN mailed AS m ON m.user_id = r.id ORDER BY r.id`,
		pg.Named{
			"client": t.ID, "now": c.At, "today": today, "recipients": recipients, "kind": domain.TrainingReminder,
		}))
	for _, r := range reminded {
		if r.Mail != nil {
			c.SendMails(t.ID, *r.Mail)
		}
	}
	return reminded, err
}

// OverdueCourses reads a user's overdue courses, ordered by due date. A title is in the language l if there is one.
func (d *DB) OverdueCourses(
	ctx context.Context, user domain.UserKey, l domain.Language,
) ([]domain.OverdueCourse, error) {
	return pg.All[domain.OverdueCourse](ctx, d, "read overdue courses", pg.SQL(`
		SELECT coalesce(k.titles->>?language, k.title) AS title, a.due_on
		FROM assignments AS a JOIN courses AS k ON k.id = a.course_id
		WHERE a.client_id = ?client AND a.user_id = ?user AND a.completed_at IS NULL AND a.due_on < ?today::date
		ORDER BY a.due_on, a.position, a.course_id`,
		pg.Named{"client": user.Client, "user": user.User, "language": l, "today": domain.DateOf(d.Now())}))
}

// overdueBatch bounds the assignments that one call of NoteOverdue marks.
const overdueBatch = 1000

// NoteOverdue marks a batch of overdue assignments as noted, and records an event for each, except for archived
// clients. It returns the size of the batch, and whether more assignments may be left. It skips assignments that
// another transaction has locked; the next call marks them. It does nothing while the clock is not trusted
// (ClockTrusted). Any number of processes may call it concurrently.
func (d *DB) NoteOverdue(ctx context.Context) (n int, more bool, err error) {
	type row struct {
		domain.UserKey
		CourseID domain.CourseID
		Archived bool
	}
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		if trusted, err := d.ClockTrusted(ctx, c.At); err != nil || !trusted {
			return err
		}
		rows, err := pg.All[row](ctx, c, "mark overdue assignments", pg.SQL(`
			WITH due AS MATERIALIZED (
				SELECT client_id, user_id, course_id, round FROM assignments
				WHERE completed_at IS NULL AND NOT overdue_noted AND due_on < ?0::date
				ORDER BY due_on LIMIT ?1 FOR NO KEY UPDATE SKIP LOCKED
			)
			UPDATE assignments AS a SET overdue_noted = true
			FROM due JOIN clients AS c ON c.id = due.client_id
			WHERE a.client_id = due.client_id AND a.user_id = due.user_id AND a.course_id = due.course_id
				AND a.round = due.round
			RETURNING a.client_id AS client, a.user_id AS "user", a.course_id, c.archived_at IS NOT NULL AS archived`,
			domain.DateOf(c.At), overdueBatch))
		for _, r := range rows {
			if !r.Archived {
				c.ObjectEvent(domain.CourseOverdue, r.UserKey, r.CourseID.UUID())
			}
		}
		n = len(rows)
		return err
	})
	return n, n == overdueBatch, err
}
