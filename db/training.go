package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Courses and assignments as they are read, and those that are overdue.

type courseRow struct {
	bun.BaseModel `bun:"table:courses,alias:c"`

	ID            domain.CourseID `bun:"id,pk"`
	Title         string
	RenewalMonths int
	Languages     []domain.Language `bun:"languages,array"`
	CreatedAt     time.Time
}

func (r *courseRow) course() domain.Course {
	return domain.Course{
		ID: r.ID, Title: r.Title, RenewalMonths: r.RenewalMonths, Languages: r.Languages, CreatedAt: r.CreatedAt,
	}
}

// Courses reads a page of the catalogue, which all clients share, by creation.
func (d *DB) Courses(ctx context.Context, w domain.Window) (domain.Slice[domain.Course], error) {
	rows, err := pg.CountedPage(ctx, d, pg.Keyset[courseRow]{
		Table: "courses AS c", Key: "c.created_at", Cast: "timestamptz", ID: "c.id",
		Position: func(r *courseRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}, w)
	return pg.Map(rows, (*courseRow).course), err
}

// Course reads a course of the catalogue.
func (d *DB) Course(ctx context.Context, id domain.CourseID) (domain.Course, error) {
	row, err := pg.Find[courseRow](ctx, d, id.Noun(),
		pg.Prepared(pg.From("courses AS c").Columns(pg.Columns[courseRow]()).Where("c.id = ?", id)))
	return row.course(), err
}

type trainingRow struct {
	bun.BaseModel `bun:"table:user_training,alias:t"`

	CourseID    domain.CourseID
	Position    int
	Place       int
	AssignedAt  time.Time
	DueOn       domain.Date
	CompletedAt *time.Time

	Title string `bun:"title,scanonly"`
}

func (r *trainingRow) assignment() domain.Assignment {
	return domain.Assignment{
		Course: r.CourseID, Title: r.Title, Position: r.Position, Place: r.Place,
		AssignedAt: r.AssignedAt, DueOn: r.DueOn, CompletedAt: r.CompletedAt,
	}
}

// trainingSince is the condition that a course of a user's list, alias t, shows
// otherwise than before ?0, on the day ?1: it was given, completed or withdrawn to an
// earlier round, became overdue, or another one came or went before it in the list.
const trainingSince = `greatest(t.assigned_at, t.given_at, t.completed_at, t.updated_at) >= ?0
	OR t.completed_at IS NULL AND t.due_on < ?1::date AND (t.due_on + 1)::timestamptz >= ?0
	OR EXISTS (
		SELECT 1 FROM assignments AS a WHERE a.client_id = t.client_id AND a.user_id = t.user_id AND a.round = 1
		AND greatest(a.assigned_at, a.given_at) >= ?0 AND (a.position, a.course_id) < (t.position, t.course_id))`

// Training reads a page of the user's courses, in their order. since, if not nil,
// leaves those that show otherwise since then.
func (u *User) Training(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Assignment], error) {
	k := pg.Keyset[trainingRow]{
		Table: "user_training AS t", Key: "t.position", Cast: "integer", ID: "t.course_id",
		Select: func(q *pg.Select) {
			q.Columns(pg.Columns[trainingRow]()).Columns("c.title").Join("JOIN courses AS c ON c.id = t.course_id")
		},
		Position: func(r *trainingRow) domain.Position {
			return domain.Position{Key: pg.NumberKey(r.Position), ID: r.CourseID.UUID()}
		},
	}
	k.Where.Add("t.client_id = ? AND t.user_id = ?", u.Client, u.ID)
	if since != nil {
		k.Where.Add(trainingSince, *since, domain.DateOf(u.db.Now()))
	}
	rows, err := pg.CountedPage(ctx, u.db, k, w)
	return pg.Map(rows, (*trainingRow).assignment), err
}

// RemindOverdue asks for a mail to those of the users who are active and have an overdue
// course, and were not sent one on the same day (UTC); it returns what became of each.
// Without ids it is to all such users of the client, once a day: RateLimited, until the
// next day, for the second time. Users of others are not in the answer.
func (t *Tenant) RemindOverdue(ctx context.Context, c *Change, ids []domain.UserID) ([]domain.Reminded, error) {
	today := domain.DateOf(c.At)
	whom := pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids))
	if ids == nil {
		whom = pg.SQL("u.status = 'active' AND u.next_due_on < ?::date", today)
		c.Lock(ClientLocks)
		noted, err := pg.Exec(ctx, c, "note the reminders of a client", pg.SQL(`
			UPDATE clients SET training_reminded_on = ?1::date
			WHERE id = ?0 AND training_reminded_on IS DISTINCT FROM ?1::date`, t.ID, today))
		if err != nil {
			return nil, err
		}
		if noted == 0 {
			return nil, &domain.Error{
				Code: domain.RateLimited, Object: t.ID.Noun(), RetryAfter: domain.UntilTomorrow(c.At),
				Message: "all users of this client were reminded today already; the next reminders can be sent tomorrow (UTC)",
			}
		}
	}
	return pg.All[domain.Reminded](ctx, c, "ask for reminders of courses", pg.SQL(`
		WITH asked AS MATERIALIZED (
			SELECT u.id, u.status = 'active' AS active, coalesce(u.next_due_on < ?2::date, false) AS overdue
			FROM users AS u WHERE u.client_id = ?0 AND ?3
		), mailed AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, created_at)
			SELECT ?0::uuid, uuid_v7(?1::timestamptz), 'training-reminder', id, ?1::timestamptz
			FROM asked WHERE active AND overdue ORDER BY id
			ON CONFLICT DO NOTHING RETURNING id, user_id
		)
		SELECT a.id AS "user", m.id AS mail, CASE
			WHEN m.id IS NOT NULL THEN ''
			WHEN NOT a.active THEN 'inactive'
			WHEN NOT a.overdue THEN 'nothing_overdue'
			ELSE 'reminded_today' END AS skip
		FROM asked AS a LEFT JOIN mailed AS m ON m.user_id = a.id ORDER BY a.id`, t.ID, c.At, today, whom))
}

// OverdueCourses reads what is overdue of a user, in a language, the course due first
// first.
func (d *DB) OverdueCourses(
	ctx context.Context, of domain.UserKey, l domain.Language,
) ([]domain.OverdueCourse, error) {
	return pg.All[domain.OverdueCourse](ctx, d, "read what is overdue", pg.SQL(`
		SELECT coalesce(k.titles->>?2, k.title) AS title, a.due_on
		FROM assignments AS a JOIN courses AS k ON k.id = a.course_id
		WHERE a.client_id = ?0 AND a.user_id = ?1 AND a.completed_at IS NULL AND a.due_on < ?3::date
		ORDER BY a.due_on, a.position, a.course_id`, of.Client, of.User, l, domain.DateOf(d.Now())))
}

// overdueBatch is how many assignments are looked at in one transaction.
const overdueBatch = 1000

// NoteOverdue records, once for each assignment, the event that it is overdue: of a
// batch of those that became so and whose event was not recorded. It returns how many it
// looked at; fewer than that batch where none is left. An assignment that a transaction
// is at, as one that completes it, is left for the next call. Those of archived clients
// are noted without an event. Any number of processes may call it at once.
func (d *DB) NoteOverdue(ctx context.Context) (n int, more bool, err error) {
	type row struct {
		ClientID domain.ClientID
		UserID   domain.UserID
		CourseID domain.CourseID
		Archived bool
	}
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		rows, err := pg.All[row](ctx, c, "note what is overdue", pg.SQL(`
			WITH due AS MATERIALIZED (
				SELECT client_id, user_id, course_id, round FROM assignments
				WHERE completed_at IS NULL AND NOT overdue_noted AND due_on < ?0::date
				ORDER BY due_on LIMIT ?1 FOR NO KEY UPDATE SKIP LOCKED
			)
			UPDATE assignments AS a SET overdue_noted = true
			FROM due JOIN clients AS c ON c.id = due.client_id
			WHERE a.client_id = due.client_id AND a.user_id = due.user_id AND a.course_id = due.course_id
				AND a.round = due.round
			RETURNING a.client_id, a.user_id, a.course_id, c.archived_at IS NOT NULL AS archived`,
			domain.DateOf(c.At), overdueBatch))
		for _, r := range rows {
			if !r.Archived {
				c.ObjectEvent(domain.CourseOverdue, domain.UserKey{Client: r.ClientID, User: r.UserID}, r.CourseID.UUID())
			}
		}
		n = len(rows)
		return err
	})
	return n, n == overdueBatch, err
}
