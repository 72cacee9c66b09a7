package records

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of users.

// Users is the kind of users. It ignores the collections that records name: Memberships imports these. New users are
// enrolled as of their creation; courses past their due date are overdue, without an event. The role of a record
// becomes an override unless the source is a directory, or the record gives the overrides, as that of an export does.
var Users Kind = &kind[domain.UserRecord, db.UserRow]{
	object: "user", partner: ofPartner("u"), order: "u.client_id, u.created_at, u.id", audiences: db.SharedAudiences,
	adjustRecord: func(r *db.UserRow, out *domain.UserRecord) error {
		out.Overrides = domain.Give(texts[domain.Override](r.Overrides))
		return nil
	},
	begin: func(ctx context.Context, b *importingUsers) error {
		rows, err := b.LockUserRows(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.ids()))
		b.keep(rows)
		return err
	},
	setDefaults: func(r *db.UserRow) {
		r.Status, r.Language, r.Source, r.Overrides = domain.Active, domain.English, domain.FromHand, []string{}
	},
	finish: finishUser,
	names: emailNames(
		func(r *db.UserRow) *domain.ClientID { return &r.Client }, func(r *db.UserRow) string { return r.Email }),
	visible: func(before, after *db.UserRow) bool {
		a, b := before.ToUser(), after.ToUser()
		return !sameRecord(&a, &b) || !before.CreatedAt.Equal(after.CreatedAt)
	},
	afterStore: addUserEffects,
}

type (
	importingUsers = recordBatch[domain.UserRecord, db.UserRow]
	appliedUser    = recordChange[domain.UserRecord, db.UserRow]
)

// finishUser checks the group, and sets the overrides, the name key, the role, and a new user's score. A new user
// without a group is in the Manual group. A role given for a user kept by hand becomes an override, unless the record
// gives the overrides. The role is classified if the user has none, or if the title, department or email changes and
// the role is neither given nor an override.
func finishUser(b *importingUsers, a *appliedUser) error {
	r, u, old := a.record, a.after, domain.OrZero(a.before)
	switch {
	case r.Group.Given && !b.found.find(r.Group.Value).isOf(u.Client):
		return noSuch("group", r.Group.Value)
	case a.before == nil && u.GroupID == nil:
		u.GroupID = b.found.find(r.Client.Value).ManualGroup
	}
	if u.FirstName != old.FirstName || u.LastName != old.LastName {
		u.NameKey = domain.SortKey(domain.FullName(u.FirstName, u.LastName))
	}

	if overrides := texts[string](r.Overrides.Value); r.Overrides.Given && !slices.Equal(overrides, u.Overrides) {
		u.Overrides = overrides
	}
	byHand := u.Source == domain.FromHand || u.Source == domain.FromAPI
	overridden := slices.Contains(u.Overrides, "role")
	basisChanged := old.Email != u.Email || domain.OrZero(old.JobTitle) != domain.OrZero(u.JobTitle) ||
		domain.OrZero(old.Department) != domain.OrZero(u.Department)
	switch {
	case r.Role.Given && byHand && !r.Overrides.Given && !overridden:
		u.Overrides = append(slices.Clone(u.Overrides), "role")
	case u.Role == "", !r.Role.Given && !overridden && basisChanged:
		u.Role = domain.ClassifyRole(domain.OrZero(u.JobTitle), domain.OrZero(u.Department), u.Email)
	}
	if a.before == nil {
		u.Score = u.Role.Baseline()
	}
	return nil
}

// texts converts strings to another string type.
func texts[To, From ~string](list []From) []To {
	return pg.MapRows(list, func(text *From) To { return To(*text) })
}

// sameRecord reports whether two states of a user are equal in the fields that callers can see (SameShown, the email,
// the source and the group).
func sameRecord(a, b *domain.User) bool {
	return a.SameShown(b) && a.Email == b.Email && a.Source == b.Source && a.SameGroup(b)
}

// addUserEffects adds the effects of new and changed users to the change, and enrols the new users. Events are written
// only for changed users of clients that are not archived.
func addUserEffects(ctx context.Context, b *importingUsers) error {
	created := make([]domain.UserKey, len(b.inserts))
	for i, a := range b.inserts {
		u := a.after.ToUser()
		created[i] = u.Key()
		b.UserChanged(nil, &u)
	}
	b.UsersLocked(created...) // by their insertion

	clients := pg.MapRows(b.updates, func(a **appliedUser) domain.ClientID { return (*a).after.Client })
	archived, err := archivedClients(ctx, b.Change, clients)
	if err != nil {
		return err
	}
	for _, a := range b.updates {
		before, after := a.before.ToUser(), a.after.ToUser()
		b.UserChanged(&before, &after)
		if !sameRecord(&before, &after) && !archived[after.Client] {
			b.UserUpdated(&before, &after)
		}
	}
	return b.EnrolSince(ctx, created)
}
