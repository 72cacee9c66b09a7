package records

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Users is the kind of users. It ignores the collections that records name: Memberships imports these. New users are
// enrolled as of their creation; courses past their due date are overdue, without an event. The role of a record
// becomes an override unless the source is a directory, or the record gives the overrides, as that of an export does.
var Users = declare[users](kind[domain.UserRecord, db.UserRow]{
	object: "user", partner: ofPartner("u"), order: "u.client_id, u.created_at, u.id", audiences: db.SharedAudiences,
	unique: uniqueEmail,
})

type users struct {
	batch[domain.UserRecord, db.UserRow]
}

func (b *users) lock(ctx context.Context) error {
	rows, err := b.LockUserRows(ctx, pg.SQL("u.id = ANY(?::uuid[])", idsOf(b.list)))
	b.keep(rows)
	return err
}

func (b *users) create(in *domain.UserRecord, u *db.UserRow) {
	u.ID, u.CreatedAt, u.UpdatedAt = in.ID.ID, b.At, b.At
	u.Status, u.Language, u.Source, u.Overrides = domain.Active, domain.English, domain.FromHand, []string{}
}

// apply checks the group, and sets the overrides, the keys of name and address, the role, and a new user's score. A new
// user without a group is in the Manual group. updated_at advances if callers can see the change.
func (b *users) apply(in *domain.UserRecord, before, u *db.UserRow) error {
	old := domain.OrZero(before)
	setEmailKey(old.Email, u.Email, &u.EmailKey, &u.EmailState)
	switch {
	case in.Group.Given && !b.found.find(in.Group.Value).isOf(u.Client):
		return noSuch("group", in.Group.Value)
	case before == nil && u.GroupID == nil:
		u.GroupID = b.found.find(in.Client.Value).ManualGroup
	}
	if u.FirstName != old.FirstName || u.LastName != old.LastName {
		u.NameKey = domain.SortKey(domain.FullName(u.FirstName, u.LastName))
	}
	setRole(in, &old, u)
	u.SetSortKeys()
	switch {
	case before == nil:
		u.Score = u.Role.Baseline()
	case changed(before, u):
		if a, b := before.ToUser(), u.ToUser(); sameRecord(&a, &b) && a.SameOverrides(&b) && before.CreatedAt.Equal(u.CreatedAt) {
			return nil
		}
		u.UpdatedAt = domain.Later(u.UpdatedAt, b.At)
	}
	return nil
}

// setRole sets the overrides and the role. A role given for a user kept by hand becomes an override, unless the record
// gives the overrides. The role is classified if the user has none, or if the title, department or email changes and
// the role is neither given nor an override.
func setRole(in *domain.UserRecord, old, u *db.UserRow) {
	if overrides := texts[string](in.Overrides.Value); in.Overrides.Given && !slices.Equal(overrides, u.Overrides) {
		u.Overrides = overrides
	}
	byHand := u.Source == domain.FromHand || u.Source == domain.FromAPI
	overridden := slices.Contains(u.Overrides, "role")
	basisChanged := old.Email != u.Email || domain.OrZero(old.JobTitle) != domain.OrZero(u.JobTitle) ||
		domain.OrZero(old.Department) != domain.OrZero(u.Department)
	switch {
	case in.Role.Given && byHand && !in.Overrides.Given && !overridden:
		u.Overrides = append(slices.Clone(u.Overrides), "role")
	case u.Role == "", !in.Role.Given && !overridden && basisChanged:
		u.Role = domain.ClassifyRole(domain.OrZero(u.JobTitle), domain.OrZero(u.Department), u.Email)
	}
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

func (b *users) nameOf(u *db.UserRow) (name, string) {
	return name{u.Client.UUID(), domain.EmailKey(u.Email)}, u.Email
}

// follow adds the effects of new and changed users to the change, and enrolls the new users. Events are written only
// for changed users of clients that are not archived. The next sync sets fields that are no longer overrides.
func (b *users) follow(ctx context.Context) error {
	created := make([]domain.UserKey, len(b.inserts))
	for i, a := range b.inserts {
		u := a.after.ToUser()
		created[i] = u.Key()
		b.UserChanged(nil, &u)
	}
	b.UsersLocked(created...) // by their insertion

	updated := rowsAfter(b.updates)
	archived, err := archivedClients(ctx, b.Change, pg.MapRows(updated, func(u *db.UserRow) domain.ClientID { return u.Client }))
	if err != nil {
		return err
	}
	var freed []domain.UserKey // of overrides
	for _, a := range b.updates {
		before, after := a.before.ToUser(), a.after.ToUser()
		if slices.ContainsFunc(before.Overrides, func(field string) bool { return !slices.Contains(after.Overrides, field) }) {
			freed = append(freed, after.Key())
		}
		b.UserChanged(&before, &after)
		if !sameRecord(&before, &after) && !archived[after.Client] {
			b.UserUpdated(&before, &after)
		}
	}
	if err := b.SyncAgain(ctx, freed...); err != nil {
		return err
	}
	return b.EnrolSince(ctx, created)
}

func (b *users) complete(u *db.UserRow, out *domain.UserRecord) error {
	out.Overrides = domain.Give(texts[domain.Override](u.Overrides))
	return nil
}
