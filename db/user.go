package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
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
		Phishing: domain.UserPhishing{
			Sent: r.PhishedSent, Clicked: r.PhishedClicked, SentYear: r.PhishedSentYear, ClickedYear: r.PhishedClickedYear,
		},
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

// shownUser selects from users, alias u, what is shown of a user, from other
// tables too. Overdue courses are counted only for those who have any.
func shownUser(q *pg.Select, today domain.Date) *pg.Select {
	return q.Columns(pg.Columns[userRow]()).
		Columns("coalesce(g.name, '') AS group_name, coalesce(course.title, '') AS next_title").
		Columns(`CASE WHEN u.next_due_on < ?0::date THEN (
			SELECT count(*) FROM assignments AS open
			WHERE open.client_id = u.client_id AND open.user_id = u.id AND open.completed_at IS NULL AND open.due_on < ?0::date
		) ELSE 0 END AS overdue`, today).
		Join("LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id").
		Join("LEFT JOIN courses AS course ON course.id = u.next_course_id")
}

// userOrders are the lists that users come in.
var userOrders = map[string]struct {
	key, cast string
	of        func(*userRow) string
}{
	"created_at": {"u.created_at", "timestamptz", func(r *userRow) string { return pg.TimeKey(r.CreatedAt) }},
	"email":      {"u.email", "text", func(r *userRow) string { return r.Email }},
	"risk_score": {"u.score", "integer", func(r *userRow) string { return pg.NumberKey(r.Score) }},
}

// Users reads a page of the client's users.
func (t *Tenant) Users(ctx context.Context, f domain.UserFilter, w domain.Window) (domain.Slice[domain.User], error) {
	order := userOrders[f.Sort.By()]
	k := pg.Keyset[userRow]{
		Table: "users AS u", Key: order.key, Cast: order.cast, ID: "u.id", Desc: f.Sort.Descending(),
		Where: t.usersWhere(f), IDsFirst: f.Query != "", OneIndex: onOneIndex(f),
		Select:   func(q *pg.Select) { shownUser(q, domain.DateOf(t.db.Now())) },
		Position: func(r *userRow) domain.Position { return domain.Position{Key: order.of(r), ID: r.ID.UUID()} },
	}
	rows, err := pg.Page(ctx, t.db, k, w)
	if err == nil && w.Total {
		rows.Total, err = t.totalUsers(ctx, f, k)
	}
	return pg.Map(rows, (*userRow).user), err
}

// onOneIndex reports whether one index holds the list in its order: all users in
// any order, or those of a state by their creation.
func onOneIndex(f domain.UserFilter) bool {
	if f.Query != "" || f.Role != "" || f.Collection != nil || f.UpdatedSince != nil {
		return false
	}
	return f.Status == "" || f.Sort.By() == "created_at"
}

func (t *Tenant) usersWhere(f domain.UserFilter) (where pg.Conditions) {
	where.Add("u.client_id = ?", t.ID)
	if f.Query != "" {
		where.Add("?", pg.Contains(domain.SortKey(f.Query), "u.name_key", "u.email"))
	}
	if f.Status != "" {
		where.Add("u.status = ?", f.Status)
	}
	if f.Role != "" {
		where.Add("u.role = ?", f.Role)
	}
	if f.Collection != nil {
		where.Add(`EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = u.client_id AND m.collection_id = ? AND m.user_id = u.id)`, *f.Collection)
	}
	if f.UpdatedSince != nil {
		where.Add("u.updated_at >= ?", *f.UpdatedSince)
	}
	return where
}

// totalUsers takes the client's counters where the state alone decides.
func (t *Tenant) totalUsers(ctx context.Context, f domain.UserFilter, k pg.Keyset[userRow]) (int, error) {
	if f.Query != "" || f.Role != "" || f.Collection != nil || f.UpdatedSince != nil {
		return k.Count(ctx, t.db)
	}
	switch f.Status {
	case domain.Active:
		return t.ActiveUsers, nil
	case domain.Inactive:
		return t.InactiveUsers, nil
	}
	return t.ActiveUsers + t.InactiveUsers, nil
}

// User finds a user. NotFound where the caller does not reach the user's client.
func (d *DB) User(ctx context.Context, id domain.UserID) (*User, error) {
	q := shownUser(pg.From("users AS u"), domain.DateOf(d.Now())).Columns("c.dark_web_monitoring AS dark_web").
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.id = ?", id).Where("?", WithinReach(ctx))
	row, err := pg.Find[userRow](ctx, d, id.Noun(), pg.Prepared(q))
	if err != nil {
		return nil, err
	}
	return &User{User: row.user(), db: d, watched: row.DarkWeb}, nil
}

// LockUser is User for a change of the user: until the transaction ends, no
// other such change goes on.
func (c *Change) LockUser(ctx context.Context, id domain.UserID) (*User, error) {
	locked, err := c.lockUsers(ctx, pg.SQL(
		"u.id = ? AND EXISTS (SELECT 1 FROM clients AS c WHERE c.id = u.client_id AND ?)", id, WithinReach(ctx)))
	if err != nil {
		return nil, err
	}
	if len(locked) == 0 {
		return nil, domain.ErrNotFound(id.Noun())
	}
	return c.User(ctx, id)
}

// Detail reads the user's collections, exposures and risk.
func (u *User) Detail(ctx context.Context) (detail domain.UserDetail, err error) {
	detail.User = u.User
	if detail.Collections, err = u.collections(ctx); err != nil {
		return detail, err
	}
	if u.watched {
		if detail.DarkWeb, err = u.darkWeb(ctx); err != nil {
			return detail, err
		}
	}
	detail.Risk, err = u.Risk(ctx)
	return detail, err
}

// collections reads the collections that the user is in, by name.
func (u *User) collections(ctx context.Context) ([]domain.CollectionRef, error) {
	return pg.All[domain.CollectionRef](ctx, u.db, "read a user's collections", pg.Prepared(pg.SQL(`
		SELECT k.id, k.name FROM collection_members AS m
		JOIN collections AS k ON k.client_id = m.client_id AND k.id = m.collection_id
		WHERE m.client_id = ? AND m.user_id = ? ORDER BY k.name_key, k.id`, u.Client, u.ID)))
}

// userDarkWebSQL sums up rows of exposures, all of one user.
const userDarkWebSQL = `count(*) FILTER (WHERE resolved_at IS NULL) AS unresolved,
	count(*) FILTER (WHERE resolved_at IS NOT NULL) AS resolved,
	(array_agg(severity ORDER BY array_position(ARRAY['critical', 'high', 'medium', 'low'], severity))
		FILTER (WHERE resolved_at IS NULL))[1] AS highest`

// darkWeb sums up the user's exposures.
func (u *User) darkWeb(ctx context.Context) (*domain.UserDarkWeb, error) {
	sum, err := pg.One[domain.UserDarkWeb](ctx, u.db, "read a user's exposures", pg.Prepared(pg.SQL(`
		SELECT `+userDarkWebSQL+` FROM exposures WHERE client_id = ? AND user_id = ?`, u.Client, u.ID)))
	return &sum, err
}
