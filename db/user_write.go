package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
	row := userRowOf(u)
	row.GroupID = &group
	if _, err := pg.Exec(ctx, c, "insert a user", pg.Insert(row)); err != nil {
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

	c.courseDueMoved(user)
	c.Rescore(user)
	c.countUsers(t.ID, 1, 0)
	c.audienceMoved(user)
	c.UserEvent(domain.UserCreated, user)
	return nil
}

// Update stores the user's own fields as they are in after, and what follows from
// them: the score from the role, the client's counters from the status. No event
// is recorded where no visible field changed. A user who becomes active, or whose
// role changes, gets the courses that frameworks ask for. The user is locked, and
// the audiences of the client are shared (ShareAudiencesOf).
func (u *User) Update(ctx context.Context, c *Change, after domain.User) error {
	row, shown := userRowOf(after), !u.SameShown(&after)
	var at *time.Time // nil moves nothing
	if shown {
		at = &c.At
	}
	_, err := pg.Exec(ctx, c, "update a user", pg.SQL(`
		UPDATE users SET first_name = ?2, last_name = ?3, name_key = ?4, department = ?5, job_title = ?6,
			manager_email = ?7, status = ?8, role = ?9, preferred_language = ?10, overrides = ?11,
			updated_at = greatest(updated_at, ?12)
		WHERE client_id = ?0 AND id = ?1`, u.Client, u.ID, row.FirstName, row.LastName, row.NameKey, row.Department,
		row.JobTitle, row.ManagerEmail, row.Status, row.Role, row.PreferredLanguage, row.Overrides, at))
	if err != nil || !shown {
		return err
	}

	if u.Role != after.Role {
		c.Rescore(u.Key())
		if u.Status == after.Status {
			if err := c.enterAudiences(ctx, []domain.UserKey{u.Key()}); err != nil {
				return err
			}
		}
	}
	switch {
	case u.Status == after.Status:
		c.UserEvent(domain.UserUpdated, u.Key())
	case after.Status == domain.Inactive:
		c.countUsers(u.Client, -1, 1)
		c.audienceMoved(u.Key())
		c.UserEvent(domain.UserDeactivated, u.Key())
	default:
		c.countUsers(u.Client, 1, -1)
		c.audienceMoved(u.Key())
		c.UserEvent(domain.UserUpdated, u.Key())
		return c.reactivated(ctx, []domain.UserKey{u.Key()})
	}
	return nil
}

// reactivated assigns what inactive users were skipped for: a further round of
// courses whose window ended meanwhile, and what frameworks ask for.
func (c *Change) reactivated(ctx context.Context, users []domain.UserKey) error {
	c.Rescore(users...)
	if err := c.renew(ctx, users, domain.DateOf(c.At)); err != nil {
		return err
	}
	return c.enterAudiences(ctx, users)
}

func userRowOf(u domain.User) userRow {
	if u.Overrides == nil {
		u.Overrides = []string{}
	}
	return userRow{
		ClientID: u.Client, ID: u.ID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		NameKey: domain.SortKey(u.Name()), Department: u.Department, JobTitle: u.JobTitle, ManagerEmail: u.ManagerEmail,
		Status: u.Status, Role: u.Role, PreferredLanguage: u.Language, Source: u.Source, Overrides: u.Overrides,
		Score: u.Score, CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt,
	}
}

// audienceMoved notes that a user entered or left the audiences of the policies
// that are the user's.
func (c *Change) audienceMoved(user domain.UserKey) {
	c.policiesOf(`p.client_id = ?0 AND (p.scope_type = 'tenant'
		OR p.scope_id = (SELECT group_id FROM users WHERE client_id = ?0 AND id = ?1)
		OR p.scope_id IN (SELECT collection_id FROM collection_members WHERE client_id = ?0 AND user_id = ?1))`,
		user.Client, user.User)
}

// RequestWelcome asks for a welcome mail to a user, and returns its id.
func (t *Tenant) RequestWelcome(ctx context.Context, c *Change, user domain.UserID) (domain.MessageID, error) {
	id := NewID[domain.MessageKind]()
	_, err := pg.Exec(ctx, c, "ask for a welcome mail", pg.SQL(`
		INSERT INTO mail_requests (client_id, id, type, user_id, created_at) VALUES (?, ?, 'welcome', ?, ?)`,
		t.ID, id, user, c.At))
	return id, err
}
