package db

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Users, the emails sent to them, and the emails that they reported.

// UserRow is a row of users.
type UserRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	domain.User
	NameKey string
	// EmailKey and EmailState are described in the migration that adds the columns. Nil for most users.
	EmailKey     *string
	EmailState   *string
	SortKeys     SortKeys `bun:"type:jsonb,nullzero"`
	GroupID      *domain.GroupID
	NextDueOn    domain.Date `bun:",nullzero"`
	NextCourseID *domain.CourseID

	GroupName       string    `bun:",scanonly"`
	NextTitle       string    `bun:",scanonly"`
	Overdue         int       `bun:",scanonly"`
	DarkWeb         bool      `bun:",scanonly"`
	ClientCreatedAt time.Time `bun:",scanonly"`
}

// emailKey returns the key of the address.
func (r *UserRow) emailKey() string {
	if r.EmailKey != nil {
		return *r.EmailKey
	}
	return r.Email
}

// ToUser returns the user with the group and the state of the courses. A group has a name only if the query read it.
func (r *UserRow) ToUser() domain.User {
	u := r.User
	u.Training.Overdue = r.Overdue
	if r.GroupID != nil {
		u.Group = &domain.Group{ID: *r.GroupID, Name: r.GroupName}
	}
	if r.NextCourseID != nil {
		u.Training.Next = &domain.NextCourse{Course: *r.NextCourseID, Title: r.NextTitle, DueOn: r.NextDueOn}
	}
	return u
}

// selectUsers adds to q the columns of UserRow, from users, alias u, and returns q. It counts overdue courses only for
// users who have any.
func selectUsers(q *bun.SelectQuery, today domain.Date) *bun.SelectQuery {
	return q.ColumnExpr(pg.Columns[UserRow]()).
		ColumnExpr("coalesce(g.name, '') AS group_name, coalesce(course.title, '') AS next_title").
		ColumnExpr("?", pg.SQL(`CASE WHEN u.next_due_on < ?0::date THEN (
			SELECT count(*) FROM assignments AS open
			WHERE open.client_id = u.client_id AND open.user_id = u.id AND open.completed_at IS NULL AND open.due_on < ?0::date
		) ELSE 0 END AS overdue`, today)).
		Join("LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id").
		Join("LEFT JOIN courses AS course ON course.id = u.next_course_id")
}

// userOrders are the sort orders of users: the column, its type and the function that returns its value in a row.
var userOrders = map[string]struct {
	key, cast string
	value     func(*UserRow) string
}{
	"created_at": {"u.created_at", "timestamptz", func(r *UserRow) string { return pg.TimeKey(r.CreatedAt) }},
	"email":      {EmailKey, "text", (*UserRow).emailKey},
	"risk_score": {"u.score", "integer", func(r *UserRow) string { return pg.NumberKey(r.Score) }},
	byLastName:   {lastNameKey, "text", (*UserRow).lastNameKey},
}

const byLastName = "last_name"

// Users reads a page of the client's users that match the filter, in the filter's order.
func (t *Tenant) Users(ctx context.Context, f domain.UserFilter, w domain.Window) (domain.Slice[domain.User], error) {
	where := t.usersWhere(f)
	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}
	where.Changed(delta, "u.updated_at")
	narrow, err := t.narrow(ctx, t.indexedFilters(f))
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}
	where = append(where, narrow...)
	order := userOrders[f.Sort.By()]
	k := pg.Keyset[UserRow]{
		Table: "users AS u", Key: order.key, Cast: order.cast, ID: "u.id", Desc: f.Sort.Descending(),
		Where: where, OneIndex: onOneIndex(f),
		IDsFirst: f.Query != "" && f.Sort.By() != byLastName, // an index of names and emails finds the ids
		Select:   func(q *bun.SelectQuery) { selectUsers(q, domain.DateOf(t.db.Now())) },
		Position: func(r *UserRow) domain.Position { return domain.Position{Key: order.value(r), ID: r.ID.UUID()} },
	}
	rows, err := pg.Page(ctx, t.db, k, w)
	if err == nil && w.Total {
		rows.Total, err = t.totalUsers(ctx, f, k)
	}
	return pg.Map(rows, (*UserRow).ToUser), err
}

// UsersByEmail reads a page of the users with an email, in its stored form, in the clients within the caller's reach,
// in the order of the clients' creation. A client has several only if they were stored before keys were compared.
func (d *DB) UsersByEmail(ctx context.Context, email string, w domain.Window) (domain.Slice[domain.User], error) {
	if w.After != nil && w.After.Owner == "" { // a cursor of 1.0 ends with the client
		after := domain.Position{Key: w.After.Key, Owner: w.After.ID, ID: uuid.Max.String()}
		w.After = &after
	}
	k := pg.Keyset[UserRow]{
		Table: "users AS u JOIN clients AS c ON c.id = u.client_id", Key: "c.created_at", Cast: "timestamptz",
		Owner: "c.id", ID: "u.id", Where: pg.Conditions{hasEmail(email), WithinReach(ctx)},
		Select: func(q *bun.SelectQuery) {
			selectUsers(q, domain.DateOf(d.Now())).ColumnExpr("c.created_at AS client_created_at")
		},
		Position: func(r *UserRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.ClientCreatedAt), Owner: r.Client.UUID(), ID: r.ID.UUID()}
		},
	}
	rows, err := pg.CountedPage(ctx, d, k, w)
	return pg.Map(rows, (*UserRow).ToUser), err
}

// onOneIndex reports whether one index holds the list in its order. That is so for all users in any order, and for the
// users with a status in the order of creation.
func onOneIndex(f domain.UserFilter) bool {
	return statusOnly(f) && (f.Status == "" || f.Sort.By() == "created_at")
}

// statusOnly reports whether no field of the filter but Status narrows the list. The comparison includes fields that
// are added to domain.UserFilter later.
func statusOnly(f domain.UserFilter) bool {
	return f == domain.UserFilter{Status: f.Status, Sort: f.Sort}
}

// usersWhere returns the conditions of a filter, except for those of indexedFilters and UpdatedSince.
func (t *Tenant) usersWhere(f domain.UserFilter) (where pg.Conditions) {
	where.Add("u.client_id = ?", t.ID)
	if f.Query != "" {
		where = append(where, matches(f.Query))
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
	return where
}

// indexedFilter is a condition on users, alias u, of which an index has the users in an order.
type indexedFilter struct {
	condition pg.Query
	order     string
	// id identifies the users to read by the index: ctid, or id if the index holds all that the condition compares.
	id string
}

// indexedFilters returns the conditions of a filter that may select few of many users.
func (t *Tenant) indexedFilters(f domain.UserFilter) (filters []indexedFilter) {
	add := func(order, condition string, value any) {
		filters = append(filters, indexedFilter{pg.SQL("u.client_id = ? AND "+condition, t.ID, value), order, "u.ctid"})
	}
	if f.Overdue != nil {
		operator := "<"
		if !*f.Overdue {
			operator = ">="
		}
		add(dueKey, dueKey+" "+operator+" ?::date", domain.DateOf(t.db.Now()))
	}
	if f.Department != "" {
		add(departmentPlace, departmentPlace+" = ?", placeOf(f.Department))
	}
	if f.NoDepartment {
		add(departmentPlace, departmentPlace+" = ?", noDepartment)
	}
	if f.ManagerEmail != "" {
		add(managerKey, "u.manager_email IS NOT NULL AND "+managerKey+" = ANY(?::text[])", EmailKeys(f.ManagerEmail))
	}
	if f.Group != nil {
		add("u.status", "u.group_id = ?", *f.Group)
	}
	if f.Grade != "" {
		least, beyond := f.Grade.Scores()
		filters = append(filters, indexedFilter{
			pg.SQL("u.client_id = ?client AND u.score >= ?least AND u.score < ?beyond", pg.Named{"client": t.ID, "least": least, "beyond": beyond}),
			"u.score", "u.ctid",
		})
	}
	if f.Query != "" && f.Sort.By() == byLastName { // the index of names and emails does not hold last names
		filters = append(filters, indexedFilter{pg.SQL("u.client_id = ? AND ?", t.ID, matches(f.Query)), "u.created_at", "u.id"})
	}
	return filters
}

// dueKey is the next due date of a user, alias u, as users_by_due has it.
const dueKey = "coalesce(u.next_due_on, 'infinity')"

// matches returns the condition that the name or the email of a user, alias u, contains a text.
func matches(text string) pg.Query {
	return pg.SQL("(? OR ?)", pg.Contains(domain.SortKey(text), "u.name_key"), containsEmail(text))
}

// maxSorted bounds the users that narrow gathers for a page, which are then sorted.
const maxSorted = 2000

// narrow returns the conditions of filters. It first counts the users who match each of them, as the planner's statistics
// do not distinguish clients. If at most maxSorted match, the condition of the filter with the fewest makes PostgreSQL
// read them by the filter's index, not search for them in the order of the list. Otherwise the list is read in its
// order, and users who do not match are skipped.
func (t *Tenant) narrow(ctx context.Context, filters []indexedFilter) (conditions pg.Conditions, err error) {
	if len(filters) == 0 {
		return nil, nil
	}
	counts := pg.SQL("")
	for i, f := range filters {
		separator := ", "
		if i == 0 {
			separator = ""
		}
		counts = pg.SQL("?counts"+separator+"(SELECT count(*) FROM (SELECT FROM users AS u WHERE ?condition ORDER BY "+f.order+" LIMIT ?most) AS few)",
			pg.Named{"counts": counts, "condition": f.condition, "most": maxSorted + 1})
		conditions = append(conditions, f.condition)
	}
	matching, err := pg.One[[]int](ctx, t.db, "count few users", pg.SQL("SELECT ARRAY[?]", counts))
	if err != nil {
		return nil, err
	}
	fewest := 0
	for i, n := range matching {
		if n < matching[fewest] {
			fewest = i
		}
	}
	if matching[fewest] <= maxSorted {
		f := filters[fewest]
		conditions[fewest] = pg.SQL(f.id+" = ANY(ARRAY(SELECT "+f.id+" FROM users AS u WHERE ?))", f.condition)
	}
	return conditions, nil
}

// totalUsers returns the length of a list. If only the status narrows it, the length is that of the client's counters.
func (t *Tenant) totalUsers(ctx context.Context, f domain.UserFilter, k pg.Keyset[UserRow]) (int, error) {
	if !statusOnly(f) {
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

// User returns a user. It returns NotFound if the user's client is not within the caller's reach.
func (d *DB) User(ctx context.Context, id domain.UserID) (*User, error) {
	q := selectUsers(pg.From("users AS u"), domain.DateOf(d.Now())).ColumnExpr("c.dark_web_monitoring AS dark_web").
		Join("JOIN clients AS c ON c.id = u.client_id").Apply(pg.Where("u.id = ?", id)).Where("?", WithinReach(ctx))
	row, err := pg.Find[UserRow](ctx, d, id.Noun(), pg.Prepared(q))
	if err != nil {
		return nil, err
	}
	return &User{User: row.ToUser(), db: d, darkWebOn: row.DarkWeb}, nil
}

// LockUser locks and returns a user. It returns NotFound if the user's client is not within the caller's reach.
func (c *Change) LockUser(ctx context.Context, id domain.UserID) (*User, error) {
	locked, err := c.LockUserKeys(ctx, pg.SQL(
		"u.id = ? AND EXISTS (SELECT 1 FROM clients AS c WHERE c.id = u.client_id AND ?)", id, WithinReach(ctx)))
	if err != nil {
		return nil, err
	}
	if len(locked) == 0 {
		return nil, domain.ErrNotFound(id.Noun())
	}
	return c.User(ctx, id)
}

// Detail reads the user's collections, risk and, if the client has Dark Web Monitoring, exposures. It returns NotFound
// if the user has no score.
func (u *User) Detail(ctx context.Context) (detail domain.UserDetail, err error) {
	detail.User = u.User
	if detail.Collections, err = u.collections(ctx); err != nil {
		return detail, err
	}
	if u.darkWebOn {
		if detail.DarkWeb, err = u.darkWeb(ctx); err != nil {
			return detail, err
		}
	}
	detail.Risk, err = u.Risk(ctx)
	return detail, err
}

// collections reads the user's collections, ordered by name.
func (u *User) collections(ctx context.Context) ([]domain.CollectionRef, error) {
	return pg.All[domain.CollectionRef](ctx, u.db, "read a user's collections", pg.Prepared(pg.SQL(`
		SELECT k.id, k.name FROM collection_members AS m
		JOIN collections AS k ON k.client_id = m.client_id AND k.id = m.collection_id
		WHERE m.client_id = ? AND m.user_id = ? ORDER BY k.name_key, k.id`, u.Client, u.ID)))
}

// userDarkWebSQL is the columns of domain.UserDarkWeb, as aggregates of a user's exposures.
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

// InsertUser inserts a user in the client's manual group, adds the user to locked collections, and enrolls the user in
// the client's courses. It returns Conflict if the client has a user with the email (decisions 2.8). The caller must
// hold a lock of the client's audiences (LockAudiencesShared).
func (t *Tenant) InsertUser(ctx context.Context, c *Change, u domain.User, collections []domain.CollectionID) error {
	found, err := pg.One[struct {
		Group domain.GroupID
		Taken bool
	}](ctx, c, "find the manual group, and a user with the email", pg.SQL(`
		SELECT id AS "group", EXISTS (
			SELECT FROM users AS u WHERE u.client_id = ?0 AND `+EmailKey+` = ANY(?1::text[])) AS taken
		FROM groups WHERE client_id = ?0 AND manual`, t.ID, EmailKeys(u.Email)))
	switch {
	case err != nil:
		return err
	case found.Taken: // by any user; the unique index decides only between those who claim the key
		return userExists
	}
	u.Group = &domain.Group{ID: found.Group}
	if err := pg.Run(ctx, c, "insert a user", pg.Insert(userRowOf(&u))); err != nil {
		return err
	}
	user := domain.UserKey{Client: t.ID, User: u.ID}
	c.UsersLocked(user)

	if len(collections) > 0 {
		if _, err := t.join(ctx, c, collections, []domain.UserID{u.ID}); err != nil {
			return err
		}
	}
	if err := c.EnrolUsers(ctx, []domain.UserKey{user}); err != nil {
		return err
	}

	c.UserChanged(nil, &u)
	c.UserEvent(domain.UserCreated, user)
	return nil
}

// Update stores the fields of after that callers and directory syncs may write (writableColumns). If a field changed
// that callers can see (SameShown), it also sets the time of update, and adds the effects (UserChanged) and an event. If
// only the overrides changed, it sets the time of update alone.
// The caller must have locked the user, and hold a lock of the client's audiences (LockAudiencesSharedOf).
func (u *User) Update(ctx context.Context, c *Change, after domain.User) error {
	visible := !u.SameShown(&after)
	if visible || !u.SameOverrides(&after) {
		after.UpdatedAt = domain.Later(after.UpdatedAt, c.At)
	}
	err := c.UpdateUsers(ctx, []domain.User{after})
	if err != nil || !visible {
		return err
	}

	c.UserChanged(&u.User, &after)
	c.UserUpdated(&u.User, &after)
	return nil
}

// SyncAgain makes the next sync of their directories apply the accounts of locked users, also if these did not change. A
// run that applies them at the same time waits for the locks, or has applied them before.
func (c *Change) SyncAgain(ctx context.Context, users ...domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	clients, ids := KeyArrays(users)
	return pg.Run(ctx, c, "let a sync apply accounts again", pg.SQL(`
		UPDATE directory_accounts SET unsettled = true
		WHERE (client_id, user_id) IN (SELECT * FROM unnest(?0::uuid[], ?1::uuid[]))`, clients, ids))
}

// UpdateUsers stores the writableColumns of locked users. The caller adds the effects by UserChanged, and has called
// ChangeEmails for users whose email changes.
func (c *Change) UpdateUsers(ctx context.Context, users []domain.User) error {
	return pg.UpdateRows(ctx, c, "update users", pg.MapRows(users, userRowOf), writableColumns...)
}

// InsertUsers inserts users, who must have a group, and enrolls them in their clients' courses. The caller must hold
// locks of the clients' audiences (LockAudiencesShared).
func (c *Change) InsertUsers(ctx context.Context, users []domain.User) error {
	if len(users) == 0 {
		return nil
	}
	if err := pg.CopyRows(ctx, c, "insert users", pg.MapRows(users, userRowOf)); err != nil {
		return err
	}
	keys := pg.MapRows(users, (*domain.User).Key)
	c.UsersLocked(keys...)
	return c.EnrolUsers(ctx, keys)
}

// writableColumns are the columns of a user that callers and directory syncs write.
var writableColumns = []string{
	"email", "email_key", "first_name", "last_name", "name_key", "sort_keys", "department", "job_title", "manager_email", "status", "role",
	"preferred_language", "source", "group_id", "overrides", "updated_at",
}

// userRowOf converts a user to a row, without the next course.
func userRowOf(u *domain.User) UserRow {
	row := UserRow{
		User: *u, NameKey: domain.SortKey(u.Name()), EmailKey: StoredEmailKey(u.Email), SortKeys: sortKeysOf(u),
	}
	if u.Overrides == nil {
		row.Overrides = []string{}
	}
	if u.Group != nil {
		row.GroupID = &u.Group.ID
	}
	return row
}

// SentEmailRow is a row of sent_emails.
type SentEmailRow struct {
	bun.BaseModel `bun:"table:sent_emails,alias:e"`

	ClientID domain.ClientID `bun:",pk"`
	domain.SentEmail
}

func (r *SentEmailRow) email() domain.SentEmail { return r.SentEmail }

// SentEmails reads a page of the emails sent to the user that match the filter, the newest first.
func (u *User) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	return sentEmails(ctx, u.db, pg.SQL("e.client_id = ? AND e.user_id = ?", u.Client, u.ID), f, w)
}

// sentEmails reads a page of the sent emails that match the filter, the newest first. ofUsers is the condition that a
// email, alias e, was sent to one of the users in question.
func sentEmails(
	ctx context.Context, d *DB, ofUsers pg.Query, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	k := pg.ByTime("e.sent_at", "e.id", func(r *SentEmailRow) (time.Time, domain.MessageID) { return r.SentAt, r.ID })
	k.Desc, k.Where = true, pg.Conditions{ofUsers}
	if len(f.Types) > 0 {
		k.Where.Add("e.message_type = ANY(?::text[])", f.Types)
	}
	pg.AddIf(&k.Where, "e.sent_at >= ?", f.Since)
	pg.AddIf(&k.Where, "e.sent_at < ?", f.Until)
	rows, err := pg.CountedPage(ctx, d, k, w)
	return pg.Map(rows, (*SentEmailRow).email), err
}

// selectReported selects domain.ReportedEmails from reported_emails, alias e.
const selectReported = `e.client_id AS client, e.id, e.user_id AS "user", e.subject, e.sender, e.classification AS class,
	coalesce(e.mailbox_action, '') AS action, e.reported_at, e.classified_at, e.updated_at`

// ReportedEmails reads a page of the real emails that the client's users reported and that match the filter, in the
// order in which they were reported.
func (t *Tenant) ReportedEmails(
	ctx context.Context, f domain.ReportedEmailFilter, w domain.Window,
) (domain.Slice[domain.ReportedEmail], error) {
	k := pg.ByTime("e.reported_at", "e.id", func(r *domain.ReportedEmail) (time.Time, domain.ReportedEmailID) {
		return r.ReportedAt, r.ID
	})
	k.Desc = f.Sort.Descending()
	k.Table, k.Select = "reported_emails AS e", func(q *bun.SelectQuery) { q.ColumnExpr(selectReported) }
	k.Where.Add("e.client_id = ?", t.ID)
	pg.AddIf(&k.Where, "e.classification = ?", f.Class)
	pg.AddIf(&k.Where, "e.reported_at >= ?", f.Since)
	pg.AddIf(&k.Where, "e.reported_at < ?", f.Until)
	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.ReportedEmail]{}, err
	}
	k.Where.Changed(delta, "e.updated_at")
	return pg.CountedPage(ctx, t.db, k, w)
}
