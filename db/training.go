package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

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
	return domain.Course{ID: r.ID, Title: r.Title, RenewalMonths: r.RenewalMonths, Languages: r.Languages, CreatedAt: r.CreatedAt}
}

// Courses reads a page of the catalogue, by creation.
func (d *DB) Courses(ctx context.Context, w domain.Window) (domain.Slice[domain.Course], error) {
	k := keyset{from: "courses AS c", key: "c.created_at", cast: "timestamptz", id: "c.id"}
	rows, err := countedPage(ctx, d, k, w, nil, func(r *courseRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	return mapped(rows, (*courseRow).course), err
}

// Course reads a course of the catalogue.
func (d *DB) Course(ctx context.Context, id domain.CourseID) (domain.Course, error) {
	var values binds
	q := d.Bun().NewSelect().Model((*courseRow)(nil)).Where("c.id = ?", values.add(id))
	row, err := readOne[courseRow](ctx, d, q.String(), values)
	return row.course(), d.found(err, id.Noun())
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

// Training reads a page of a user's courses, in their order. since, if not nil,
// leaves those that were assigned, completed or became overdue at or after it.
// That the user is within reach is for its caller to have checked.
func (d *DB) Training(ctx context.Context, user domain.UserKey, since *time.Time, w domain.Window) (domain.Slice[domain.Assignment], error) {
	k := keyset{
		from: "user_training AS t", key: "t.position", cast: "integer", id: "t.course_id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			q = q.Where("t.client_id = ? AND t.user_id = ?", values.add(user.Client), values.add(user.User))
			if since != nil {
				q = q.Where(`(t.assigned_at >= ?0 OR t.completed_at >= ?0
					OR t.completed_at IS NULL AND t.due_on < ?1 AND (t.due_on + 1)::timestamptz >= ?0)`, values.add(*since), values.add(domain.DateOf(d.Now())))
			}
			return q
		},
	}
	rows, err := countedPage(ctx, d, k, w, func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
		return q.ColumnExpr("t.course_id, t.position, t.place, t.assigned_at, t.due_on, t.completed_at, c.title").
			Join("JOIN courses AS c ON c.id = t.course_id")
	}, func(r *trainingRow) domain.Position {
		return domain.Position{Key: numberKey(r.Position), ID: r.CourseID.UUID()}
	})
	return mapped(rows, (*trainingRow).assignment), err
}

// LockAudience locks the users of an audience, in the order of their ids, and
// returns them. Named users that are not the client's are left out.
func (d *DB) LockAudience(ctx context.Context, client domain.ClientID, a domain.Audience) ([]domain.UserID, error) {
	switch a.Type {
	case domain.NamedUsers:
		return d.LockUsers(ctx, client, a.Users)
	case domain.OfCollection:
		return d.lockWhere(ctx, client, "AND id IN (SELECT user_id FROM collection_members WHERE client_id = ?0 AND collection_id = ?1)", a.Collection)
	}
	return d.lockWhere(ctx, client, "", nil)
}

func (d *DB) lockWhere(ctx context.Context, client domain.ClientID, condition string, arg any) ([]domain.UserID, error) {
	var found []domain.UserID
	err := d.conn(ctx).NewRaw("SELECT id FROM users WHERE client_id = ?0 "+condition+" ORDER BY id FOR NO KEY UPDATE", client, arg).Scan(ctx, &found)
	return found, d.bad("lock users", err)
}

// appendedFrom is the position before the first of a course that neither the
// program nor a framework placed: such courses go to the end of a user's list.
const appendedFrom = 1000

// assignSQL gives the course ?1 to the users ?2 of the client ?0, who are
// locked, due on ?3, at the time ?4 of the day ?5. The course is renewed after
// ?6 months; ?7 asks for mails. It returns those to whom it was given, with
// whether they had nothing to do before and the mail, and those who were
// skipped.
const assignSQL = `
	WITH judged AS MATERIALIZED (
		SELECT u.id, u.next_due_on IS NULL AS idle, last.round, last.position, CASE
			WHEN u.status <> 'active' THEN 'inactive'
			WHEN last.round IS NULL THEN 'assigned'
			WHEN last.completed_at IS NULL THEN 'open'
			WHEN ?6 = 0 OR (last.completed_at + make_interval(months => ?6))::date > ?5::date THEN 'already_completed'
			ELSE 'assigned' END AS outcome
		FROM users AS u LEFT JOIN LATERAL (
			SELECT a.round, a.position, a.completed_at FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.course_id = ?1 ORDER BY a.round DESC LIMIT 1
		) AS last ON true
		WHERE u.client_id = ?0 AND u.id = ANY(?2::uuid[])
	), given AS (
		INSERT INTO assignments (client_id, user_id, course_id, round, position, assigned_at, due_on)
		SELECT ?0, j.id, ?1, coalesce(j.round, 0) + 1, coalesce(j.position,
			(SELECT min(position) FROM program_courses WHERE client_id = ?0 AND course_id = ?1),
			(SELECT greatest(max(a.position), ?8) + 1 FROM assignments AS a WHERE a.client_id = ?0 AND a.user_id = j.id)), ?4, ?3
		FROM judged AS j WHERE j.outcome = 'assigned'
	), mailed AS (
		INSERT INTO mail_requests (client_id, id, type, user_id, course_id, created_at)
		SELECT ?0, uuid_v7(?4), 'training-invite', j.id, ?1, ?4 FROM judged AS j WHERE ?7 AND j.outcome = 'assigned' RETURNING id, user_id
	), touched AS ( -- for one more overdue course shows, though what is next may stay the same
		UPDATE users AS u SET updated_at = ?4 FROM judged AS j
		WHERE u.client_id = ?0 AND u.id = j.id AND j.outcome = 'assigned' AND ?3::date < ?5::date
	)
	SELECT j.id, j.outcome, j.idle, m.id AS mail FROM judged AS j LEFT JOIN mailed AS m ON m.user_id = j.id
	WHERE j.outcome <> 'open' ORDER BY j.id`

// Assign gives a course to users that LockAudience locked: a further round to
// those whose completion has lapsed. What is due next and the scores follow; the
// mails that it asks for are to be handed on by its caller.
// It takes the same number of statements for any number of users.
func (d *DB) Assign(ctx context.Context, n domain.CourseFor) (domain.Assigned, error) {
	now := d.Now()
	var rows []struct {
		ID      domain.UserID
		Outcome string
		Idle    bool
		Mail    *domain.MessageID
	}
	err := d.conn(ctx).NewRaw(assignSQL, n.Client, n.Course.ID, uuids(n.Users), n.DueOn, now, domain.DateOf(now),
		n.Course.RenewalMonths, n.Notify, appendedFrom).Scan(ctx, &rows)
	if err != nil {
		return domain.Assigned{}, d.bad("assign a course", err)
	}
	out := domain.Assigned{Skipped: []domain.Skipped{}}
	given, idle := []domain.UserID{}, []domain.UserID{}
	for _, r := range rows {
		if r.Outcome != "assigned" {
			out.Skipped = append(out.Skipped, domain.Skipped{User: r.ID, Reason: domain.SkipReason(r.Outcome)})
			continue
		}
		given = append(given, r.ID)
		if r.Mail != nil {
			out.Mails = append(out.Mails, *r.Mail)
		}
		if r.Idle { // who had an open course before is as dormant as before
			idle = append(idle, r.ID)
		}
	}
	out.Count = len(given)
	if err := d.refreshNextDue(ctx, n.Client, given); err != nil {
		return out, err
	}
	return out, d.Rescore(ctx, n.Client, idle)
}
