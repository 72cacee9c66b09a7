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
