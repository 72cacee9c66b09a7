package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of policies.

// importedPolicy is a row of policies with the additional columns of imports and exports.
type importedPolicy struct {
	bun.BaseModel `bun:"table:policies,alias:p"`
	db.PolicyRow
	ReviewedAt time.Time
	ArchivedAt *time.Time

	ScopeDeleted bool `bun:",scanonly"`
}

// Policies is the kind of policies, including archived ones. If a record changes the version, the signatures of the old
// version remain signatures of that version.
var Policies Kind = &kind[domain.PolicyRecord, importedPolicy]{
	object: "policy", partner: ofPartner("p"), order: "p.client_id, p.created_at, p.id",
	rank: db.PolicyLocks, locked: "p.client_id, p.id",
	columns: `p.scope_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = p.client_id AND k.id = p.scope_id) AS scope_deleted`,
	adjustRecord: func(r *importedPolicy, out *domain.PolicyRecord) error {
		if r.ScopeType != domain.TenantScope {
			out.ScopeID = domain.Give(domain.ScopeOf(r.ScopeType, r.ScopeID))
		}
		out.Archived = archivedField(r.ArchivedAt)
		return nil
	},
	setDefaults: func(r *importedPolicy) {
		r.Version, r.ScopeType, r.MustSign, r.RenewalDays = 1, domain.TenantScope, true, 365
	},
	finish: finishPolicy,
	afterStore: func(_ context.Context, b *importingPolicies) error {
		if len(b.updates) > 0 {
			b.PoliciesChanged("p.id = ANY(?::uuid[])", idsOf(b.updates))
		}
		return nil
	},
}

type (
	importingPolicies = recordBatch[domain.PolicyRecord, importedPolicy]
	appliedPolicy     = recordChange[domain.PolicyRecord, importedPolicy]
)

// finishPolicy checks and sets the scope, and sets the times of archiving, of review and, for a new version, of
// publication.
func finishPolicy(b *importingPolicies, a *appliedPolicy) error {
	if err := checkScope(b, a); err != nil {
		return err
	}
	r, p := a.record, a.after
	switch {
	case p.ScopeType == domain.TenantScope:
		p.ScopeID = p.Client
	case r.ScopeID.Given:
		p.ScopeID = r.ScopeID.Value.UUID
	}
	setArchived(b.Change, r.Archived, &p.ArchivedAt)

	if a.before == nil {
		if !r.ReviewedAt.Given {
			p.ReviewedAt = p.CreatedAt
		}
		return nil
	}
	if p.Version > a.before.Version {
		at := domain.Later(p.UpdatedAt, b.At) // which becomes UpdatedAt too
		p.PublishedAt = &at
		if !r.ReviewedAt.Given {
			p.ReviewedAt = domain.Later(p.ReviewedAt, b.At)
		}
	}
	return nil
}

// checkScope returns an error if the record's scope is not the client or one of its groups or collections, or is
// missing. An unchanged scope of an existing policy may have been deleted. A record can name a deleted collection by
// scope_deleted.
func checkScope(b *importingPolicies, a *appliedPolicy) error {
	r, p, scope := a.record, a.after, a.record.ScopeID.Value
	typeChanged := a.before == nil || p.ScopeType != a.before.ScopeType
	switch {
	case p.ScopeType == domain.TenantScope:
		if id, ok := domain.RefAs[domain.ClientKind](scope); r.ScopeID.Given && (!ok || id != p.Client) {
			return errors.New("scope_id: must be the policy's client, or be left out")
		}
		return nil
	case !r.ScopeID.Given && r.ScopeType.Given && typeChanged:
		return missing("scope_id")
	case !r.ScopeID.Given, !typeChanged && scope.UUID == a.before.ScopeID:
		return nil // unchanged
	case p.ScopeType == domain.GroupScope:
		if id, ok := domain.RefAs[domain.GroupKind](scope); !ok || !b.found.find(id).isOf(p.Client) {
			return noSuch("scope_id", id)
		}
		return nil
	}

	id, ok := domain.RefAs[domain.CollectionKind](scope)
	collection := b.found.find(id)
	switch deleted := r.ScopeDeleted.Value; {
	case ok && collection == nil && deleted: // the record is of a policy for a deleted collection
	case !ok || !collection.isOf(p.Client):
		return noSuch("scope_id", id)
	case deleted:
		return errors.New("scope_deleted: the collection is there")
	}
	return nil
}

// Imports and exports of framework assignments and courses.

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
var Frameworks Kind = &kind[domain.FrameworkAssignmentRecord, importedFramework]{
	object: "framework_assignment", partner: ofPartner("f"), order: "f.client_id, f.created_at, f.id",
	columns: `f.audience_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = f.client_id AND k.id = f.audience_id) AS deleted`,
	adjustRecord: adjustFramework,
	audiences:    db.ExclusiveAudiences, locked: "f.client_id, f.id",
	setDefaults: func(r *importedFramework) { // the defaults of the API
		r.AudienceType, r.Training, r.Phishing, r.Reporting = domain.FrameworkForAll, true, true, true
	},
	finish: finishFramework,
	names: &names[importedFramework]{
		field: "audience",
		held: `t.client_id = k.scope::uuid
			AND concat_ws('/', t.framework_id, t.audience_type, t.audience_id) = k.key`,
		nameOf: func(r *importedFramework) name {
			key := r.FrameworkID + "/" + string(r.AudienceType)
			if r.AudienceID != nil {
				key += "/" + domain.GroupID(*r.AudienceID).UUID()
			}
			return name{r.ClientID.UUID(), key}
		},
	},
	afterStore: addFrameworkEffects,
}

type (
	importingFrameworks = recordBatch[domain.FrameworkAssignmentRecord, importedFramework]
	appliedFramework    = recordChange[domain.FrameworkAssignmentRecord, importedFramework]
)

// adjustFramework sets the audience and the modules of an exported record.
func adjustFramework(r *importedFramework, out *domain.FrameworkAssignmentRecord) error {
	audience := domain.AudienceRecord{Type: r.AudienceType, Deleted: r.Deleted}
	switch id := domain.OrZero(r.AudienceID); r.AudienceType {
	case domain.FrameworkForGroup:
		audience.ID = new(domain.AnyRefTo(domain.GroupID(id)))
	case domain.FrameworkForCollection:
		audience.ID = new(domain.AnyRefTo(domain.CollectionID(id)))
	}
	out.Audience = domain.Give(audience)
	out.Modules = domain.Give(domain.ModulesRecord{
		Training: &r.Training, Phishing: &r.Phishing, Policies: &r.Policies, Reporting: &r.Reporting,
	})
	return nil
}

// finishFramework sets the audience of a new framework assignment, and the modules. It returns an error for an unknown
// framework, and for a changed audience.
func finishFramework(b *importingFrameworks, a *appliedFramework) error {
	audience, row := a.record.Audience, a.after
	if _, found := domain.FrameworkByID(row.FrameworkID); a.before == nil && !found {
		return errors.New("framework must be a framework of the catalogue, such as hipaa")
	}
	switch id := domain.OrZero(audience.Value.ID).UUID; {
	case !audience.Given: // a new one keeps the default, all users
	case a.before == nil:
		if err := setAudience(b, row, audience.Value); err != nil {
			return err
		}
	case audience.Value.Type != row.AudienceType || id != domain.OrZero(row.AudienceID):
		return cannotChange("audience")
	}

	modules := a.record.Modules.Value
	row.Training, row.Phishing = pg.Or(modules.Training, row.Training), pg.Or(modules.Phishing, row.Phishing)
	row.Policies, row.Reporting = pg.Or(modules.Policies, row.Policies), pg.Or(modules.Reporting, row.Reporting)
	return nil
}

// setAudience sets the audience of a new framework assignment. It returns an error if the client has no such group or
// collection, unless the record marks a collection as deleted; its audience is empty (decisions 7.7).
func setAudience(b *importingFrameworks, row *importedFramework, a domain.AudienceRecord) error {
	row.AudienceType = a.Type
	switch {
	case a.Type == domain.FrameworkForAll && (a.ID != nil || a.Deleted):
		return errors.New("audience: that of all users has a type alone")
	case a.Type == domain.FrameworkForAll:
		return nil
	case a.ID == nil:
		return errors.New("audience: needs the id of the " + string(a.Type))
	case a.Deleted && a.Type != domain.FrameworkForCollection:
		return errors.New("audience: only a collection may be deleted")
	}

	row.AudienceID = &a.ID.UUID
	object := b.found.find(domain.GroupID(a.ID.UUID))
	if a.Type == domain.FrameworkForCollection {
		object = b.found.find(domain.CollectionID(a.ID.UUID))
	}
	switch exists := object.isOf(row.ClientID); {
	case exists && a.Deleted:
		return errors.New("audience: the collection is there, and not deleted")
	case !exists && !a.Deleted:
		return fmt.Errorf("audience: there is no such %s of the client", a.Type)
	}
	return nil
}

// addFrameworkEffects assigns the courses of new framework assignments and of those whose training was switched on, and
// withdraws the courses of those whose training was switched off. It marks the evaluations of changed ones as stale.
func addFrameworkEffects(ctx context.Context, b *importingFrameworks) error {
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

// importedCourse is a row of courses with its titles by language, as JSON.
type importedCourse struct {
	bun.BaseModel `bun:"table:courses,alias:c"`
	ID            domain.CourseID `bun:"id,pk"`
	Title         string
	RenewalMonths int
	Languages     []domain.Language `bun:"languages,array"`
	CreatedAt     time.Time
	Titles        json.RawMessage `bun:"type:jsonb"`
}

// titles parses the titles by language.
func (r *importedCourse) titles() (titles map[domain.Language]string, err error) {
	err = json.Unmarshal(r.Titles, &titles)
	return titles, err
}

// Courses is the kind of the courses of the catalogue, which all partners share. Changing a course does not change
// existing assignments of it.
var Courses Kind = &kind[domain.CourseRecord, importedCourse]{
	object: "course", order: "c.created_at, c.id", locked: "c.id",
	adjustRecord: adjustCourse,
	setDefaults: func(r *importedCourse) {
		r.Titles, r.RenewalMonths = json.RawMessage("{}"), 12
		r.Languages = []domain.Language{domain.English, domain.Spanish, domain.French}
	},
	finish: finishCourse,
}

// adjustCourse sets the titles by language of an exported record. If a course has none, and is not in all languages,
// each of its languages gets the course's title, so that an import restores the languages.
func adjustCourse(r *importedCourse, out *domain.CourseRecord) error {
	titles, err := r.titles()
	if err != nil {
		return err
	}
	if len(titles) == 0 && len(r.Languages) < len(domain.English.Values()) {
		for _, language := range r.Languages {
			titles[language] = r.Title
		}
	}
	if len(titles) > 0 {
		out.Titles = domain.Give(titles)
	}
	return nil
}

// finishCourse sets the titles by language, if they are given, and sets the course's languages to those of the titles.
// It does not touch equal values, so that an unchanged course is not written.
func finishCourse(
	_ *recordBatch[domain.CourseRecord, importedCourse], a *recordChange[domain.CourseRecord, importedCourse],
) error {
	titles, err := a.after.titles()
	if err != nil || !a.record.Titles.Given {
		return err
	}
	if languages := slices.Sorted(maps.Keys(a.record.Titles.Value)); !slices.Equal(languages, a.after.Languages) {
		a.after.Languages = languages
	}
	if !maps.Equal(titles, a.record.Titles.Value) {
		a.after.Titles, err = json.Marshal(a.record.Titles.Value)
	}
	return err
}
