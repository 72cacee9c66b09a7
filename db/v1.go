package db

import (
	"context"
	"fmt"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file holds the reads and writes that only version 1 needs. It is to be deleted with version 1.

// TenantOfUser returns the client of a user. It returns NotFound if the user is not within the caller's reach.
func (d *DB) TenantOfUser(ctx context.Context, id domain.UserID) (*Tenant, error) {
	row, err := pg.Find[ClientRow](ctx, d, id.Noun(), pg.Rows[ClientRow]().
		Join("JOIN users AS u ON u.client_id = c.id").Apply(pg.Where("u.id = ?", id)).Where("?", WithinReach(ctx)))
	if err != nil {
		return nil, err
	}
	return d.tenantOf(&row), nil
}

// MoveMember removes a locked user from all other collections of the client, and adds the user to the collection to. It
// returns NotFound if the client has no such collection.
func (t *Tenant) MoveMember(ctx context.Context, c *Change, to domain.CollectionID, user domain.UserID) error {
	rows, err := t.lockCollections(ctx, c, pg.SQL(`k.id = ?collection OR k.id IN (
		SELECT collection_id FROM collection_members WHERE client_id = ?client AND user_id = ?user)`,
		pg.Named{"client": t.ID, "collection": to, "user": user}))
	if _, err = findCollection(rows, to, err); err != nil {
		return err
	}

	if _, err = t.removeMembers(ctx, c, "m.collection_id <> ? AND m.user_id = ?", to, user); err != nil {
		return err
	}
	_, err = t.AddMembers(ctx, c, to, []domain.UserID{user})
	return err
}

// SentResults reads a page of the simulated emails sent to the user, the newest first.
func (u *User) SentResults(ctx context.Context, w domain.Window) (domain.Slice[domain.Result], error) {
	k := resultList(u.Client, domain.BySending)
	k.Desc = true
	k.Where.Add("r.user_id = ? AND r.sent_at IS NOT NULL", u.ID)
	rows, err := pg.CountedPage(ctx, u.db, k, w)
	return pg.Map(rows, (*ResultRow).result), err
}

// Addressees are the users within the caller's reach who have the same email address.
type Addressees struct {
	users []domain.UserKey
	db    *DB
}

// Addressees returns the users within the caller's reach who have an email, which must be in its stored form. It
// returns NotFound if there is none.
func (d *DB) Addressees(ctx context.Context, email string) (*Addressees, error) {
	users, err := pg.All[domain.UserKey](ctx, d, "find users by email", pg.From("users AS u").
		ColumnExpr(`u.client_id AS client, u.id AS "user"`).Join("JOIN clients AS c ON c.id = u.client_id").
		Where("?", hasEmail(email)).Where("?", WithinReach(ctx)).OrderExpr("u.client_id, u.id"))
	if err == nil && len(users) == 0 {
		err = domain.ErrNotFound((domain.UserID{}).Noun())
	}
	return &Addressees{users: users, db: d}, err
}

// SentEmails reads a page of the emails sent to the users that match the filter, the newest first.
func (a *Addressees) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	// For one user, an equality lets PostgreSQL use the order of an index.
	ofUsers := pg.SQL("e.client_id = ? AND e.user_id = ?", a.users[0].Client, a.users[0].User)
	if len(a.users) > 1 {
		clients, users := KeyArrays(a.users)
		ofUsers = pg.SQL("(e.client_id, e.user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, users)
	}
	return sentEmails(ctx, a.db, ofUsers, f, w)
}

// OnlyUser returns the user and true if there is exactly one, and false otherwise.
func (a *Addressees) OnlyUser() (domain.UserID, bool) {
	if len(a.users) != 1 {
		return domain.UserID{}, false
	}
	return a.users[0].User, true
}

// OnlyUser returns the user's id, and true.
func (u *User) OnlyUser() (domain.UserID, bool) { return u.ID, true }

// UserExists reports whether the user exists in a client that is not archived. It does not check the caller's reach.
func (d *DB) UserExists(ctx context.Context, id domain.UserID) (bool, error) {
	return pg.One[bool](ctx, d, "look for a user", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM users AS u JOIN clients AS c ON c.id = u.client_id
			WHERE u.id = ? AND c.archived_at IS NULL)`, id))
}

// ReportsByCreation reads a page of the client's reports, the oldest first.
func (t *Tenant) ReportsByCreation(ctx context.Context, w domain.Window) (domain.Slice[domain.Report], error) {
	rows, err := pg.CountedPage(ctx, t.db, reportList(t.ID), w)
	return pg.Map(rows, (*ReportRow).report), err
}

// UUID is the id of an object of any kind.
type UUID = [16]byte

// objectsByID maps the noun of a kind to a query of the object with the id w.id, its client and the columns that
// Reached compares. Each query searches an index on the id. The migrations of idmap create the indexes of collections,
// groups and reports.
var objectsByID = map[string]string{
	domain.ClientID{}.Noun():     "SELECT w.id, w.id AS client_id",
	domain.UserID{}.Noun():       "SELECT id, client_id FROM users WHERE id = w.id LIMIT 1",
	domain.AdminID{}.Noun():      "SELECT id, client_id, partner_id FROM admins WHERE id = w.id LIMIT 1",
	domain.CollectionID{}.Noun(): "SELECT id, client_id FROM collections WHERE id = w.id LIMIT 1",
	domain.GroupID{}.Noun():      "SELECT id, client_id FROM groups WHERE id = w.id LIMIT 1",
	domain.PolicyID{}.Noun():     "SELECT id, client_id, archived_at FROM policies WHERE id = w.id LIMIT 1",
	domain.ReportID{}.Noun():     "SELECT id, client_id FROM reports WHERE id = w.id LIMIT 1",
	domain.TemplateID{}.Noun():   "SELECT id, NULL::uuid AS client_id FROM phishing_templates WHERE id = w.id LIMIT 1",
}

// Reached returns those of ids whose objects are within the caller's reach, in any order. noun is the noun of the kind
// of all objects. Archived clients, their objects and archived policies are not accessible. The partner's own admins
// are within the reach of all of its keys, and templates within the reach of all callers. Reached takes one statement.
func (d *DB) Reached(ctx context.Context, noun string, ids []UUID) ([]UUID, error) {
	object, ok := objectsByID[noun]
	if !ok {
		return nil, fmt.Errorf("find accessible objects: no kind is called %q", noun)
	}
	within := WithinReach(ctx) // the condition on the object o and its client c, whose columns are NULL if o has none
	switch noun {
	case domain.AdminID{}.Noun():
		within = pg.SQL("(?) OR o.client_id IS NULL AND o.partner_id = ?", within, domain.CallerFrom(ctx).Partner)
	case domain.PolicyID{}.Noun():
		within = pg.SQL("o.archived_at IS NULL AND ?", within)
	case domain.TemplateID{}.Noun():
		within = pg.SQL("true")
	}

	// The LIMITs make the planner search an index for each id. With outdated statistics, of a table that was just filled,
	// it would read the whole table, or all clients of the partner. So conditions on a row are outside of its LIMIT.
	// ClientID only serves to read UUIDs: the ids are of the kind that noun names.
	reached, err := pg.All[domain.ClientID](ctx, d, "find accessible "+noun+"s", pg.SQL(`
		SELECT o.id FROM unnest(?::uuid[]) AS w (id) CROSS JOIN LATERAL (`+object+`) AS o
		LEFT JOIN LATERAL (SELECT id, partner_id, archived_at FROM clients WHERE id = o.client_id LIMIT 1) AS c ON true
		WHERE ?`, ids, within))
	return pg.IDs(reached), err
}

// V1Recipient is an owner or admin of a partner who is to be notified of the end of version 1.
type V1Recipient struct {
	Partner domain.PartnerID
	Name    string // of the partner
	// Email is empty if the partner has no owner or admin.
	Email string
}

// V1Recipients returns the owners and admins of all partners or, if only is not zero, of that partner, ordered by the
// name of the partner. For a partner without any it returns one without an Email. It leaves out partners that are being
// or were moved to another cell (SuspendedPartners), archived ones, and those whose clients are all archived.
func (d *DB) V1Recipients(ctx context.Context, only domain.PartnerID) ([]V1Recipient, error) {
	return pg.All[V1Recipient](ctx, d, "list whom to tell of the end of v1", pg.SQL(`
		SELECT p.id AS partner, p.name, coalesce(a.email, '') AS email FROM partners AS p LEFT JOIN LATERAL (
			SELECT DISTINCT ON (`+EmailKeyOf("a")+`) a.email, `+EmailKeyOf("a")+` AS key FROM admins AS a
			WHERE a.partner_id = p.id AND `+MailedAdmins+` ORDER BY `+EmailKeyOf("a")+`, a.created_at, a.id
		) AS a ON true
		WHERE (?0::uuid IS NULL OR p.id = ?0::uuid) AND p.archived_at IS NULL AND p.id NOT IN (`+SuspendedPartners+`)
			AND (p.client_count > 0 OR p.id NOT IN (SELECT partner_id FROM clients))
		ORDER BY p.name_key, p.id, a.key`, domain.OrNil(only)))
}
