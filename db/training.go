package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
