package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

// InsertUser adds a user to the client's manual group, with the score that
// their role starts at. Conflict when the client has a user of that email. The
// counters of the client are for CountUser.
func (d *DB) InsertUser(ctx context.Context, u domain.User) error {
	row := rowOf(u)
	q := d.conn(ctx).NewInsert().Model(&row).
		Value("group_id", "(SELECT id FROM groups WHERE client_id = ? AND manual)", u.Client)
	_, err := q.Exec(ctx)
	return d.bad("insert a user", err)
}

// UpdateUser stores a user's own fields.
func (d *DB) UpdateUser(ctx context.Context, u domain.User) error {
	row := rowOf(u)
	_, err := d.conn(ctx).NewUpdate().Model(&row).WherePK().
		Column("first_name", "last_name", "name_key", "department", "job_title", "manager_email",
			"status", "role", "preferred_language", "overrides", "updated_at").Exec(ctx)
	return d.bad("update a user", err)
}

func rowOf(u domain.User) userRow {
	if u.Overrides == nil {
		u.Overrides = []string{}
	}
	return userRow{
		ClientID: u.Client, ID: u.ID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, NameKey: domain.SortKey(u.Name()),
		Department: u.Department, JobTitle: u.JobTitle, ManagerEmail: u.ManagerEmail, Status: u.Status, Role: u.Role,
		PreferredLanguage: u.Language, Source: u.Source, Overrides: u.Overrides, Score: u.Score,
		CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt,
	}
}

// LockNamed locks those of the collections that are the client's, in the order
// of their ids, and returns them.
func (d *DB) LockNamed(ctx context.Context, client domain.ClientID, ids []domain.CollectionID) ([]domain.CollectionID, error) {
	var found []domain.CollectionID
	err := d.conn(ctx).NewRaw(`
		SELECT id FROM collections WHERE client_id = ? AND id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, client, uuids(ids)).Scan(ctx, &found)
	return found, d.bad("lock collections", err)
}

// JoinCollections makes a new user a member of collections that LockNamed
// found.
func (d *DB) JoinCollections(ctx context.Context, u domain.User, ids []domain.CollectionID) error {
	_, err := d.conn(ctx).NewRaw(`
		WITH joined AS (
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT ?0, id, ?2, ?3 FROM unnest(?1::uuid[]) AS id ON CONFLICT DO NOTHING RETURNING collection_id
		)
		UPDATE collections SET member_count = member_count + 1, updated_at = ?3
		WHERE client_id = ?0 AND id IN (SELECT collection_id FROM joined)`, u.Client, uuids(ids), u.ID, u.UpdatedAt).Exec(ctx)
	return d.bad("add a user to collections", err)
}

// Enrol gives a new user the client's program and the courses that the
// frameworks assigned to the user's audiences ask for.
func (d *DB) Enrol(ctx context.Context, u domain.User) error {
	_, err := d.conn(ctx).NewRaw(`
		WITH wanted AS (
			SELECT course_id, position, NULL::uuid AS framework_use_id, due_after_days
			FROM program_courses WHERE client_id = ?0
			UNION ALL
			SELECT required.course_id, 1000, used.id, required.due_after_days
			FROM framework_uses AS used JOIN framework_courses AS required USING (framework_id)
			WHERE used.client_id = ?0 AND used.training AND (used.audience_type = 'all'
				OR used.audience_type = 'group' AND used.audience_id = (SELECT group_id FROM users WHERE client_id = ?0 AND id = ?1)
				OR used.audience_type = 'collection' AND EXISTS (
					SELECT 1 FROM collection_members AS m
					WHERE m.client_id = ?0 AND m.collection_id = used.audience_id AND m.user_id = ?1))
		)
		INSERT INTO assignments (client_id, user_id, course_id, position, framework_use_id, assigned_at, due_on)
		SELECT DISTINCT ON (course_id) ?0, ?1, course_id, position, framework_use_id, ?2, ?3::date + due_after_days
		FROM wanted ORDER BY course_id, position, due_after_days`,
		u.Client, u.ID, u.CreatedAt, domain.DateOf(u.CreatedAt)).Exec(ctx)
	if err != nil {
		return d.bad("enrol a user", err)
	}
	return d.refreshNextDue(ctx, u.Client, []domain.UserID{u.ID})
}

// Return gives a user who is active again what inactive ones are passed over
// for: a further round of courses whose window ended meanwhile. The user's
// exposures are back in their list, and so changed. The user is locked.
func (d *DB) Return(ctx context.Context, u domain.User) error {
	_, err := d.conn(ctx).NewRaw(`
		WITH shown AS MATERIALIZED (
			SELECT breach_name FROM exposures WHERE client_id = ?1 AND user_id = ?2 ORDER BY breach_name FOR NO KEY UPDATE
		)
		UPDATE exposures AS e SET updated_at = ?0 FROM shown AS s
		WHERE e.client_id = ?1 AND e.user_id = ?2 AND e.breach_name = s.breach_name`, u.UpdatedAt, u.Client, u.ID).Exec(ctx)
	if err != nil {
		return d.bad("touch a user's exposures", err)
	}
	renewed := scoredUser{ClientID: u.Client, ID: u.ID, Status: u.Status}
	if err := d.renew(ctx, []scoredUser{renewed}, domain.DateOf(d.Now())); err != nil {
		return err
	}
	return d.Rescore(ctx, u.Client, []domain.UserID{u.ID})
}

// RequestWelcome asks for a welcome mail to a user, and returns its id.
func (d *DB) RequestWelcome(ctx context.Context, u domain.User) (domain.MessageID, error) {
	id := NewID[domain.MessageKind]()
	_, err := d.conn(ctx).NewRaw("INSERT INTO mail_requests (client_id, id, type, user_id, created_at) VALUES (?, ?, 'welcome', ?, ?)",
		u.Client, id, u.ID, u.CreatedAt).Exec(ctx)
	return id, d.bad("ask for a welcome mail", err)
}

// InsertEvent records that something happened to a client or one of its users.
func (d *DB) InsertEvent(ctx context.Context, kind domain.EventType, client domain.ClientID, user *domain.UserID, at time.Time) error {
	_, err := d.conn(ctx).NewRaw("INSERT INTO events (client_id, id, type, user_id, created_at) VALUES (?, ?, ?, ?, ?)",
		client, NewID[domain.EventKind](), kind, user, at).Exec(ctx)
	return d.bad("record an event", err)
}
