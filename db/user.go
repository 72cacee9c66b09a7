package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Users: reads and writes, the mails that they were sent, and those that they reported.

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
	where := t.usersWhere(f)
	if f.Overdue != nil {
		overdue, err := t.overdue(ctx, *f.Overdue)
		if err != nil {
			return domain.Slice[domain.User]{}, err
		}
		where = append(where, overdue)
	}
	if f.Sort == "created_at" && onOneIndex(f) {
		var err error
		if w, err = t.db.fromBlock(ctx, t.ID, f.Status, w); err != nil {
			return domain.Slice[domain.User]{}, err
		}
	}
	order := userOrders[f.Sort.By()]
	k := pg.Keyset[userRow]{
		Table: "users AS u", Key: order.key, Cast: order.cast, ID: "u.id", Desc: f.Sort.Descending(),
		Where: where, IDsFirst: f.Query != "", OneIndex: onOneIndex(f),
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
	if f.Query != "" || f.Role != "" || f.Collection != nil || f.Overdue != nil || f.UpdatedSince != nil {
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

// fewUsers is how many users are gathered and sorted for a page. Where there are more, a
// page is read in the order of the list, and passes over others.
const fewUsers = 2000

// overdue is the condition that a course of a user, alias u, is overdue, or that none
// is. Few such users are gathered by their index: in the order of the list they might
// come after all others. They are counted first, for the planner knows how many there
// are of all clients together, and not of one.
func (t *Tenant) overdue(ctx context.Context, want bool) (pg.Query, error) {
	than := "<"
	if !want {
		than = ">="
	}
	found := pg.SQL("u.client_id = ? AND coalesce(u.next_due_on, 'infinity') "+than+" ?::date",
		t.ID, domain.DateOf(t.db.Now()))
	n, err := pg.One[int](ctx, t.db, "count few users", pg.SQL(`
		SELECT count(*) FROM (
			SELECT FROM users AS u WHERE ? ORDER BY coalesce(u.next_due_on, 'infinity') LIMIT ?
		) AS few`, found, fewUsers+1))
	if err != nil || n > fewUsers {
		return found, err
	}
	return pg.SQL("u.ctid = ANY(ARRAY(SELECT u.ctid FROM users AS u WHERE ?))", found), nil
}

// totalUsers takes the client's counters where the state alone decides.
func (t *Tenant) totalUsers(ctx context.Context, f domain.UserFilter, k pg.Keyset[userRow]) (int, error) {
	if f.Query != "" || f.Role != "" || f.Collection != nil || f.Overdue != nil || f.UpdatedSince != nil {
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

// InsertUser adds a user to the client's manual group and to collections, which
// LockCollections found, and gives the user the client's courses. Conflict when
// the client has a user of that email. The audiences of the client are shared
// (ShareAudiences).
func (t *Tenant) InsertUser(ctx context.Context, c *Change, u domain.User, collections []domain.CollectionID) error {
	group, err := pg.One[domain.GroupID](ctx, c, "find the manual group",
		pg.SQL("SELECT id FROM groups WHERE client_id = ? AND manual", t.ID))
	if err != nil {
		return err
	}
	u.Group = &domain.Group{ID: group}
	if _, err := pg.Exec(ctx, c, "insert a user", pg.Insert(userRowOf(u))); err != nil {
		return err
	}
	user := domain.UserKey{Client: t.ID, User: u.ID}
	c.hold(user)

	if len(collections) > 0 {
		if _, err := t.join(ctx, c, collections, []domain.UserID{u.ID}); err != nil {
			return err
		}
	}
	if err := c.enrol(ctx, []domain.UserKey{user}); err != nil {
		return err
	}

	c.UserChanged(nil, &u)
	c.UserEvent(domain.UserCreated, user)
	return nil
}

// Update stores the user's own fields as they are in after, and notes what follows
// from them (UserChanged). No event is recorded where no visible field changed. The
// user is locked, and the audiences of the client are shared (ShareAudiencesOf).
func (u *User) Update(ctx context.Context, c *Change, after domain.User) error {
	shown := !u.SameShown(&after)
	if shown {
		after.UpdatedAt = latest(after.UpdatedAt, c.At)
	}
	err := pg.UpdateRows(ctx, c, "update a user", []userRow{userRowOf(after)}, ownColumns...)
	if err != nil || !shown {
		return err
	}

	c.UserChanged(&u.User, &after)
	c.UserEvent(userEvent(&u.User, &after), u.Key())
	return nil
}

// ownColumns are the columns of a user's own fields: those that callers and directory
// syncs write.
var ownColumns = []string{
	"email", "first_name", "last_name", "name_key", "department", "job_title", "manager_email", "status", "role",
	"preferred_language", "source", "group_id", "overrides", "updated_at",
}

// userRowOf is the row of a user, with what ownColumns names and what does not change.
func userRowOf(u domain.User) userRow {
	if u.Overrides == nil {
		u.Overrides = []string{}
	}
	row := userRow{
		ClientID: u.Client, ID: u.ID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		NameKey: domain.SortKey(u.Name()), Department: u.Department, JobTitle: u.JobTitle, ManagerEmail: u.ManagerEmail,
		Status: u.Status, Role: u.Role, PreferredLanguage: u.Language, Source: u.Source, Overrides: u.Overrides,
		Score: u.Score, CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt,
	}
	if u.Group != nil {
		row.GroupID = &u.Group.ID
	}
	return row
}

// RequestWelcome asks for a welcome mail to a user, and returns its id.
func (t *Tenant) RequestWelcome(ctx context.Context, c *Change, user domain.UserID) (domain.MessageID, error) {
	id := NewID[domain.MessageKind]()
	_, err := pg.Exec(ctx, c, "ask for a welcome mail", pg.SQL(`
		INSERT INTO mail_requests (client_id, id, type, user_id, created_at) VALUES (?, ?, 'welcome', ?, ?)`,
		t.ID, id, user, c.At))
	return id, err
}

type sentEmailRow struct {
	bun.BaseModel `bun:"table:sent_emails,alias:e"`

	ClientID    domain.ClientID  `bun:"client_id,pk"`
	UserID      domain.UserID    `bun:"user_id,pk"`
	ID          domain.MessageID `bun:"id,pk"`
	SentAt      time.Time
	FromEmail   string
	Subject     string
	SendMethod  domain.SendMethod
	MessageType domain.MessageType
}

func (r *sentEmailRow) email() domain.SentEmail {
	return domain.SentEmail{
		ID: r.ID, User: r.UserID, SentAt: r.SentAt, From: r.FromEmail, Subject: r.Subject, Method: r.SendMethod,
		Type: r.MessageType,
	}
}

// SentEmails reads a page of the mails that were sent to the user, newest first.
func (u *User) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	return sentEmails(ctx, u.db, pg.SQL("e.client_id = ? AND e.user_id = ?", u.Client, u.ID), f, w)
}

func sentEmails(
	ctx context.Context, d *DB, to pg.Query, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	k := pg.Keyset[sentEmailRow]{
		Table: "sent_emails AS e", Key: "e.sent_at", Cast: "timestamptz", ID: "e.id", Desc: true,
		Where: pg.Conditions{to},
		Position: func(r *sentEmailRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.SentAt), ID: r.ID.UUID()}
		},
	}
	if len(f.Types) > 0 {
		k.Where.Add("e.message_type = ANY(?::text[])", f.Types)
	}
	if f.Since != nil {
		k.Where.Add("e.sent_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("e.sent_at < ?", *f.Until)
	}
	rows, err := pg.CountedPage(ctx, d, k, w)
	return pg.Map(rows, (*sentEmailRow).email), err
}

type reportedEmailRow struct {
	bun.BaseModel `bun:"table:reported_emails,alias:e"`

	ClientID       domain.ClientID        `bun:"client_id,pk"`
	ID             domain.ReportedEmailID `bun:"id,pk"`
	UserID         domain.UserID
	Subject        string
	Sender         string
	Classification domain.EmailClass
	MailboxAction  *domain.MailboxAction
	ReportedAt     time.Time
	ClassifiedAt   *time.Time
	UpdatedAt      time.Time
}

func (r *reportedEmailRow) reported() domain.ReportedEmail {
	return domain.ReportedEmail{
		ID: r.ID, Client: r.ClientID, User: r.UserID, ReportedAt: r.ReportedAt, Subject: r.Subject, Sender: r.Sender,
		Classification: domain.Classification{Class: r.Classification, Action: pg.Or(r.MailboxAction, "")},
		ClassifiedAt:   r.ClassifiedAt, UpdatedAt: r.UpdatedAt,
	}
}

// ReportedEmails reads a page of the real mails that the client's users reported,
// by the time of reporting.
func (t *Tenant) ReportedEmails(
	ctx context.Context, f domain.ReportedEmailFilter, w domain.Window,
) (domain.Slice[domain.ReportedEmail], error) {
	k := pg.Keyset[reportedEmailRow]{
		Table: "reported_emails AS e", Key: "e.reported_at", Cast: "timestamptz", ID: "e.id",
		Where: pg.Conditions{pg.SQL("e.client_id = ?", t.ID)},
		Position: func(r *reportedEmailRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.ReportedAt), ID: r.ID.UUID()}
		},
	}
	if f.Class != nil {
		k.Where.Add("e.classification = ?", *f.Class)
	}
	if f.Since != nil {
		k.Where.Add("e.reported_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("e.reported_at < ?", *f.Until)
	}
	if f.UpdatedSince != nil {
		k.Where.Add("e.updated_at >= ?", *f.UpdatedSince)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*reportedEmailRow).reported), err
}
