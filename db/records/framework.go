package records

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedFramework is a row of framework_assignments. Deleted reports whether its audience, a collection, was deleted.
type importedFramework struct {
	bun.BaseModel `bun:"table:framework_assignments,alias:f"`
	db.FrameworkRow

	Deleted bool `bun:",scanonly"`
}

// Frameworks is the kind of framework assignments. A client has at most one for each framework and audience. A new one
// assigns its courses to its audience, as of the creation of the user or the framework assignment, whichever is later
// (decisions 7.7, 10). Switching training on does the same. Switching it off withdraws the courses, with statements for
// each client.
var Frameworks = declare[frameworks](kind[domain.FrameworkAssignmentRecord, importedFramework]{
	object: "framework_assignment", partner: ofPartner("f"), order: "f.client_id, f.created_at, f.id",
	columns: `f.audience_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = f.client_id AND k.id = f.audience_id) AS deleted`,
	audiences: db.ExclusiveAudiences, locked: "f.client_id, f.id",
	unique: &unique{
		field: "audience", column: "id",
		held: `t.client_id = k.scope::uuid
			AND concat_ws('/', t.framework_id, t.audience_type, t.audience_id) = k.key`,
	},
})

type frameworks struct {
	batch[domain.FrameworkAssignmentRecord, importedFramework]
}

// create sets the defaults of the API.
func (b *frameworks) create(in *domain.FrameworkAssignmentRecord, row *importedFramework) {
	row.ID, row.CreatedAt = in.ID.ID, b.At
	row.AudienceType, row.Training, row.Phishing, row.Reporting = domain.FrameworkForAll, true, true, true
}

// apply sets the audience of a new framework assignment, and the modules. It returns an error for an unknown framework,
// and for a changed audience.
func (b *frameworks) apply(in *domain.FrameworkAssignmentRecord, before, row *importedFramework) error {
	if _, found := domain.FrameworkByID(row.FrameworkID); before == nil && !found {
		return errors.New("framework must be the ID of a framework in the catalog, such as hipaa")
	}
	switch audience := in.Audience.Value; {
	case !in.Audience.Given: // a new one keeps the default, all users
	case before == nil:
		if err := b.setAudience(row, audience); err != nil {
			return err
		}
	case audience.Type != row.AudienceType || domain.OrZero(audience.ID).UUID != domain.OrZero(row.AudienceID):
		return cannotChange("audience")
	}

	modules := in.Modules.Value
	row.Training, row.Phishing = pg.Or(modules.Training, row.Training), pg.Or(modules.Phishing, row.Phishing)
	row.Policies, row.Reporting = pg.Or(modules.Policies, row.Policies), pg.Or(modules.Reporting, row.Reporting)
	return nil
}

// setAudience sets the audience of a new framework assignment. It returns an error if the client has no such group or
// collection, unless the record marks a collection as deleted; its audience is empty (decisions 7.7).
func (b *frameworks) setAudience(row *importedFramework, a domain.AudienceRecord) error {
	row.AudienceType = a.Type
	switch {
	case a.Type == domain.FrameworkForAll && (a.ID != nil || a.Deleted):
		return errors.New("audience: id and deleted are not allowed if type is all")
	case a.Type == domain.FrameworkForAll:
		return nil
	case a.ID == nil:
		return errors.New("audience: id is required if type is " + string(a.Type))
	case a.Deleted && a.Type != domain.FrameworkForCollection:
		return errors.New("audience: deleted is allowed only if type is collection")
	}

	row.AudienceID = &a.ID.UUID
	object := b.found.find(domain.GroupID(a.ID.UUID))
	if a.Type == domain.FrameworkForCollection {
		object = b.found.find(domain.CollectionID(a.ID.UUID))
	}
	switch exists := object.isOf(row.ClientID); {
	case exists && a.Deleted:
		return errors.New("audience: deleted is true, but the collection exists")
	case !exists && !a.Deleted:
		return noneOfClient("audience", string(a.Type))
	}
	return nil
}

// nameOf returns the framework and its audience within the client.
func (b *frameworks) nameOf(row *importedFramework) (name, string) {
	key := row.FrameworkID + "/" + string(row.AudienceType)
	if row.AudienceID != nil {
		key += "/" + domain.GroupID(*row.AudienceID).UUID()
	}
	return name{row.ClientID.UUID(), key}, ""
}

// follow assigns the courses of new framework assignments and of those whose training was switched on, and withdraws
// the courses of those whose training was switched off. It marks the evaluations of changed ones as stale.
func (b *frameworks) follow(ctx context.Context) error {
	var on []domain.FrameworkAssignmentID
	off := map[domain.ClientID][]domain.FrameworkAssignmentID{}
	for _, f := range b.inserts {
		on = append(on, f.after.ID)
		b.FrameworksChanged(f.after.ClientID) // the client's list of frameworks
	}
	for _, f := range b.updates {
		switch {
		case f.after.Training && !f.before.Training:
			on = append(on, f.after.ID)
		case f.before.Training && !f.after.Training:
			off[f.after.ClientID] = append(off[f.after.ClientID], f.after.ID)
		}
	}
	err := pg.Run(ctx, b, "mark evaluations as stale", pg.SQL(`
		UPDATE framework_assignments SET evaluated_at = 'epoch', changed_at = ?
		WHERE id = ANY(?::uuid[])`, b.At, idsOf(b.updates)))
	if err != nil {
		return err
	}
	if err := b.WithdrawFrameworks(ctx, off); err != nil {
		return err
	}
	return b.AssignFrameworksSince(ctx, on)
}

func (b *frameworks) complete(row *importedFramework, out *domain.FrameworkAssignmentRecord) error {
	audience := domain.AudienceRecord{Type: row.AudienceType, Deleted: row.Deleted}
	switch id := domain.OrZero(row.AudienceID); row.AudienceType {
	case domain.FrameworkForGroup:
		audience.ID = new(domain.AnyRefTo(domain.GroupID(id)))
	case domain.FrameworkForCollection:
		audience.ID = new(domain.AnyRefTo(domain.CollectionID(id)))
	}
	out.Audience = domain.Give(audience)
	out.Modules = domain.Give(domain.ModulesRecord{
		Training: &row.Training, Phishing: &row.Phishing, Policies: &row.Policies, Reporting: &row.Reporting,
	})
	return nil
}
