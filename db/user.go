package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type userRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ClientID           domain.ClientID `bun:"client_id,pk"`
	ID                 domain.UserID   `bun:"id,pk"`
	Email              string
	FirstName          string
	LastName           string
	NameKey            string
	Department         *string
	JobTitle           *string
	ManagerEmail       *string
	Status             domain.UserStatus
	Role               domain.Role
	PreferredLanguage  domain.Language
	Source             domain.UserSource
	GroupID            *domain.GroupID
	Overrides          []string `bun:"overrides,array"`
	Score              int
	NextDueOn          domain.Date      `bun:"next_due_on,nullzero"`
	NextCourseID       *domain.CourseID `bun:"next_course_id"`
	PhishedSent        int
	PhishedClicked     int
	PhishedSentYear    int
	PhishedClickedYear int
	CreatedAt          time.Time
	UpdatedAt          time.Time

	GroupName string `bun:"group_name,scanonly"`
	NextTitle string `bun:"next_title,scanonly"`
	Overdue   int    `bun:"overdue,scanonly"`
	DarkWeb   bool   `bun:"dark_web,scanonly"`
}

func (r *userRow) user() domain.User {
	u := domain.User{
		ID: r.ID, Client: r.ClientID, Email: r.Email, FirstName: r.FirstName, LastName: r.LastName,
		Department: r.Department, JobTitle: r.JobTitle, ManagerEmail: r.ManagerEmail,
		Status: r.Status, Role: r.Role, Language: r.PreferredLanguage, Source: r.Source,
		Overrides: r.Overrides, Score: r.Score, Training: domain.UserTraining{Overdue: r.Overdue},
		Phishing:  domain.UserPhishing{Sent: r.PhishedSent, Clicked: r.PhishedClicked, SentYear: r.PhishedSentYear, ClickedYear: r.PhishedClickedYear},
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.GroupID != nil {
		u.Group = &domain.Group{ID: *r.GroupID, Name: r.GroupName}
	}
	if r.NextCourseID != nil {
		u.Training.Next = &domain.NextCourse{Course: *r.NextCourseID, Title: r.NextTitle, DueOn: r.NextDueOn}
	}
	return u
}

// withShown adds to a query on users, alias u, what is shown of a user from
// other tables. Overdue courses are counted only for those who have any.
func (d *DB) withShown(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
	return q.ColumnExpr("?TableColumns, coalesce(g.name, '') AS group_name, coalesce(course.title, '') AS next_title").
		ColumnExpr(`CASE WHEN u.next_due_on < ?0 THEN (
			SELECT count(*) FROM assignments AS open
			WHERE open.client_id = u.client_id AND open.user_id = u.id AND open.completed_at IS NULL AND open.due_on < ?0
		) ELSE 0 END AS overdue`, values.add(domain.DateOf(d.Now()))).
		Join("LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id").
		Join("LEFT JOIN courses AS course ON course.id = u.next_course_id")
}

// userOrders are the lists that users come in.
var userOrders = map[string]struct {
	key, cast string
	of        func(*userRow) string
}{
	"created_at": {"u.created_at", "timestamptz", func(r *userRow) string { return timeKey(r.CreatedAt) }},
	"email":      {"u.email", "text", func(r *userRow) string { return r.Email }},
	"risk_score": {"u.score", "integer", func(r *userRow) string { return numberKey(r.Score) }},
}

// Users reads a page of a client's users. That the client is within reach is
// for its caller to have checked: reading it also gives the totals by state.
func (d *DB) Users(ctx context.Context, client domain.Client, f domain.UserFilter, w domain.Window) (domain.Slice[domain.User], error) {
	order := userOrders[f.Sort.By()]
	k := keyset{
		from: "users AS u", key: order.key, cast: order.cast, id: "u.id", desc: f.Sort.Descending(),
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			return usersWhere(q, values, client.ID, f)
		},
	}
	rows, err := page(ctx, d, k, w, d.withShown, func(r *userRow) domain.Position {
		return domain.Position{Key: order.of(r), ID: r.ID.UUID()}
	})
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}
	if w.Total {
		if rows.Total, err = d.totalUsers(ctx, client, f, k); err != nil {
			return domain.Slice[domain.User]{}, err
		}
	}
	return mapped(rows, (*userRow).user), nil
}

func usersWhere(q *bun.SelectQuery, values *binds, client domain.ClientID, f domain.UserFilter) *bun.SelectQuery {
	q = containing(q.Where("u.client_id = ?", values.add(client)), values, f.Query, "u.name_key", "u.email")
	if f.Status != "" {
		q = q.Where("u.status = ?", values.add(f.Status))
	}
	if f.Role != "" {
		q = q.Where("u.role = ?", values.add(f.Role))
	}
	if f.Collection != nil {
		q = q.Where("EXISTS (SELECT 1 FROM collection_members AS m WHERE m.client_id = u.client_id AND m.collection_id = ? AND m.user_id = u.id)", values.add(*f.Collection))
	}
	if f.UpdatedSince != nil {
		q = q.Where("u.updated_at >= ?", values.add(*f.UpdatedSince))
	}
	return q
}

// totalUsers takes the client's counters where the state alone decides.
func (d *DB) totalUsers(ctx context.Context, client domain.Client, f domain.UserFilter, k keyset) (int, error) {
	if f.Query != "" || f.Role != "" || f.Collection != nil || f.UpdatedSince != nil {
		return k.count(ctx, d)
	}
	switch f.Status {
	case domain.Active:
		return client.ActiveUsers, nil
	case domain.Inactive:
		return client.InactiveUsers, nil
	}
	return client.ActiveUsers + client.InactiveUsers, nil
}

// User reads a user within the caller's reach.
func (d *DB) User(ctx context.Context, id domain.UserID) (domain.User, error) {
	row, err := d.userRow(ctx, id)
	return row.user(), err
}

func (d *DB) userRow(ctx context.Context, id domain.UserID) (userRow, error) {
	var values binds
	q := d.withShown(d.Bun().NewSelect().Model((*userRow)(nil)), &values).ColumnExpr("c.dark_web_monitoring AS dark_web").
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.id = ?", values.add(id))
	row, err := readOne[userRow](ctx, d, reachable(ctx, q, &values).String(), values)
	return row, d.found(err, id.Noun())
}

// LockUser is User for a transaction that is to change the user: until it
// ends, no other such transaction goes on.
func (d *DB) LockUser(ctx context.Context, id domain.UserID) (domain.User, error) {
	var found domain.UserID
	q := d.conn(ctx).NewSelect().TableExpr("users AS u").ColumnExpr("u.id").
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.id = ?", id)
	q = legacyReach(ctx, q).For("NO KEY UPDATE OF u")
	if err := d.one(ctx, q, id.Noun(), &found); err != nil {
		return domain.User{}, err
	}
	return d.User(ctx, id)
}

// UserDetail reads a user within the caller's reach, with collections,
// exposures and risk.
func (d *DB) UserDetail(ctx context.Context, id domain.UserID) (domain.UserDetail, error) {
	row, err := d.userRow(ctx, id)
	if err != nil {
		return domain.UserDetail{}, err
	}
	detail := domain.UserDetail{User: row.user()}
	if detail.Collections, err = d.collectionsOf(ctx, row.ClientID, id); err != nil {
		return detail, err
	}
	if row.DarkWeb {
		if detail.DarkWeb, err = d.userDarkWeb(ctx, row.ClientID, id); err != nil {
			return detail, err
		}
	}
	detail.Risk, err = d.UserRisk(ctx, row.ClientID, id)
	return detail, err
}

// collectionsOf reads the collections that a user is in, by name.
func (d *DB) collectionsOf(ctx context.Context, client domain.ClientID, user domain.UserID) ([]domain.CollectionRef, error) {
	refs := []domain.CollectionRef{}
	err := d.conn(ctx).NewRaw(`
		SELECT k.id, k.name FROM collection_members AS m
		JOIN collections AS k ON k.client_id = m.client_id AND k.id = m.collection_id
		WHERE m.client_id = ? AND m.user_id = ? ORDER BY k.name_key, k.id`, client, user).Scan(ctx, &refs)
	return refs, d.bad("read a user's collections", err)
}

// userDarkWeb sums up a user's exposures.
func (d *DB) userDarkWeb(ctx context.Context, client domain.ClientID, user domain.UserID) (*domain.UserDarkWeb, error) {
	var sum domain.UserDarkWeb
	err := d.conn(ctx).NewRaw(`
		SELECT count(*) FILTER (WHERE resolved_at IS NULL), count(*) FILTER (WHERE resolved_at IS NOT NULL),
		       (array_agg(severity ORDER BY array_position(ARRAY['critical', 'high', 'medium', 'low'], severity))
		           FILTER (WHERE resolved_at IS NULL))[1]
		FROM exposures WHERE client_id = ? AND user_id = ?`, client, user).Scan(ctx, &sum.Unresolved, &sum.Resolved, &sum.Highest)
	return &sum, d.bad("read a user's exposures", err)
}
