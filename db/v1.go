package db

import (
	"context"
	"fmt"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file is what only version 1 reads and writes. It is deleted with it.

// TenantOfUser finds the client of a user. NotFound where the caller does not
// reach the user.
func (d *DB) TenantOfUser(ctx context.Context, id domain.UserID) (*Tenant, error) {
	row, err := pg.Find[clientRow](ctx, d, id.Noun(), pg.From("clients AS c").Columns(pg.Columns[clientRow]()).
		Join("JOIN users AS u ON u.client_id = c.id").Where("u.id = ?", id).Where("?", WithinReach(ctx)))
	if err != nil {
		return nil, err
	}
	return &Tenant{Client: row.client(), db: d}, nil
}

// MoveMember makes a user, who is locked, leave all collections of the client but
// one, and join that one. NotFound where the client has no such collection.
func (t *Tenant) MoveMember(ctx context.Context, c *Change, to domain.CollectionID, user domain.UserID) error {
	rows, err := t.lockCollections(ctx, c, pg.SQL(`k.id = ?1 OR k.id IN (
		SELECT collection_id FROM collection_members WHERE client_id = ?0 AND user_id = ?2)`, t.ID, to, user))
	if _, err = among(rows, to, err); err != nil {
		return err
	}

	if _, err = t.leave(ctx, c, "m.collection_id <> ? AND m.user_id = ?", to, user); err != nil {
		return err
	}
	_, err = t.AddMembers(ctx, c, to, []domain.UserID{user})
	return err
}

// SentResults reads a page of the simulated mails that were sent to the user,
// newest first.
func (u *User) SentResults(ctx context.Context, w domain.Window) (domain.Slice[domain.Result], error) {
	k := resultList(u.Client, domain.BySending)
	k.Desc = true
	k.Where.Add("r.user_id = ? AND r.sent_at IS NOT NULL", u.ID)
	rows, err := pg.CountedPage(ctx, u.db, k, w)
	return pg.Map(rows, (*resultRow).result), err
}

// Addressees are users who have one email address, at the most one in each
// client, and were found within the caller's reach.
type Addressees struct {
	users []domain.UserKey
	db    *DB
}

// Addressees finds the users who have the email, which is in lower case.
// NotFound where there is none.
func (d *DB) Addressees(ctx context.Context, email string) (*Addressees, error) {
	users, err := pg.All[userKeyRow](ctx, d, "find users by email", pg.From("users AS u").Columns("u.client_id, u.id").
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.email = ?", email).Where("?", WithinReach(ctx)).
		OrderBy("u.client_id"))
	if err == nil && len(users) == 0 {
		err = domain.ErrNotFound((domain.UserKind{}).Noun())
	}
	to := &Addressees{db: d}
	for _, u := range users {
		to.users = append(to.users, domain.UserKey{Client: u.ClientID, User: u.ID})
	}
	return to, err
}

type userKeyRow struct {
	ClientID domain.ClientID
	ID       domain.UserID
}

// SentEmails reads a page of the mails that were sent to all of them, newest
// first.
func (a *Addressees) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	to := pg.SQL("e.client_id = ? AND e.user_id = ?", a.users[0].Client, a.users[0].User) // in the order of an index
	if len(a.users) > 1 {
		clients, users := keyLists(a.users)
		to = pg.SQL("(e.client_id, e.user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, users)
	}
	return sentEmails(ctx, a.db, to, f, w)
}

// Only is the one of them; false where there are several.
func (a *Addressees) Only() (domain.UserID, bool) {
	if len(a.users) != 1 {
		return domain.UserID{}, false
	}
	return a.users[0].User, true
}

// Only is the user's id, as a user is one.
func (u *User) Only() (domain.UserID, bool) { return u.ID, true }

// UserExists reports whether any partner's client has the user, within the
// caller's reach or not. What is archived does not exist.
func (d *DB) UserExists(ctx context.Context, id domain.UserID) (bool, error) {
	return pg.One[bool](ctx, d, "look for a user", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM users AS u JOIN clients AS c ON c.id = u.client_id
			WHERE u.id = ? AND c.archived_at IS NULL)`, id))
}

// ReportsByCreation reads a page of the client's reports, the oldest first.
func (t *Tenant) ReportsByCreation(ctx context.Context, w domain.Window) (domain.Slice[domain.Report], error) {
	rows, err := pg.CountedPage(ctx, t.db, reportList(t.ID), w)
	return pg.Map(rows, (*reportRow).report), err
}

// The rest finds which of many objects a caller reaches. Only version 1 asks; the
// file is deleted with it.

// UUID is the id of an object of whichever kind.
type UUID = [16]byte

// A reachableKind says how objects of one kind are found by their ids, and who
// reaches them.
type reachableKind struct {
	// find selects the object whose id is w.id, its client and what else within asks
	// for: one probe of an index on the id alone. Those of collections, groups and
	// reports are made by idmap's migrations.
	find string
	// within is the condition that the caller reaches the object o, of the client c.
	within func(ctx context.Context) pg.Query
}

// reachable has each kind under its noun.
var reachable = map[string]reachableKind{
	domain.ClientKind{}.Noun():     {"SELECT w.id, w.id AS client_id", ofClients},
	domain.UserKind{}.Noun():       {"SELECT id, client_id FROM users WHERE id = w.id LIMIT 1", ofClients},
	domain.AdminKind{}.Noun():      {"SELECT id, client_id, partner_id FROM admins WHERE id = w.id LIMIT 1", ofClientsOrPartner},
	domain.CollectionKind{}.Noun(): {"SELECT id, client_id FROM collections WHERE id = w.id LIMIT 1", ofClients},
	domain.GroupKind{}.Noun():      {"SELECT id, client_id FROM groups WHERE id = w.id LIMIT 1", ofClients},
	domain.PolicyKind{}.Noun(): {
		"SELECT id, client_id, archived_at FROM policies WHERE id = w.id LIMIT 1", notArchived,
	},
	domain.ReportKind{}.Noun():   {"SELECT id, client_id FROM reports WHERE id = w.id LIMIT 1", ofClients},
	domain.TemplateKind{}.Noun(): {"SELECT id, NULL::uuid AS client_id FROM phishing_templates WHERE id = w.id LIMIT 1", ofEverybody},
}

// ofClients are within the reach of who reaches their client.
func ofClients(ctx context.Context) pg.Query { return WithinReach(ctx) }

// notArchived are so too, unless they were archived themselves.
func notArchived(ctx context.Context) pg.Query {
	return pg.SQL("o.archived_at IS NULL AND ?", WithinReach(ctx))
}

// ofClientsOrPartner are so too, or the partner's own.
func ofClientsOrPartner(ctx context.Context) pg.Query {
	return pg.SQL("(?) OR o.client_id IS NULL AND o.partner_id = ?", WithinReach(ctx), domain.CallerFrom(ctx).Partner)
}

// ofEverybody are within everybody's reach.
func ofEverybody(context.Context) pg.Query { return pg.SQL("true") }

// Reached returns which of the objects of one kind, given by its noun, are within
// the caller's reach, in no particular order. It takes one statement.
//
// Neither an archived client nor what belongs to it is, nor an archived policy. The
// admins of the partner are within the reach of all of its keys, also of those with
// listed clients, and templates within everybody's: so Partner and Templates show
// them.
func (d *DB) Reached(ctx context.Context, noun string, ids []UUID) ([]UUID, error) {
	kind, known := reachable[noun]
	if !known {
		return nil, fmt.Errorf("find what is reached: no kind is called %q", noun)
	}

	// The LIMITs keep the planner at one index probe per id and table: by stale
	// statistics of a table that was just filled it would read the whole table, or all
	// clients of the partner. What else is asked of a row comes after its probe.
	found, err := pg.All[domain.ClientID](ctx, d, "find which of the "+noun+"s are reached", pg.SQL(`
		SELECT o.id FROM unnest(?::uuid[]) AS w (id) CROSS JOIN LATERAL (`+kind.find+`) AS o
		LEFT JOIN LATERAL (SELECT id, partner_id, archived_at FROM clients WHERE id = o.client_id LIMIT 1) AS c ON true
		WHERE ?`, ids, kind.within(ctx)))
	reached := make([]UUID, len(found))
	for i, id := range found {
		reached[i] = UUID(id)
	}
	return reached, err
}
