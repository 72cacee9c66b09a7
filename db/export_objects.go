package db

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ExportPartners reads the partners.
func (d *DB) ExportPartners(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.PartnerRecord, error] {
	q := pg.Rows[partnerRow]().Where("?0::boolean OR p.id = ?1", partner.IsZero(), partner).OrderBy("p.created_at, p.id")
	return exported[partnerRow, domain.PartnerRecord](ctx, d, q, nil)
}

// ExportCourses reads the courses of the catalogue, which all partners share. One that
// is in fewer languages than all has its title in each of them.
func (d *DB) ExportCourses(ctx context.Context, _ domain.PartnerID) iter.Seq2[domain.CourseRecord, error] {
	q := pg.Rows[importedCourse]().OrderBy("c.created_at, c.id")
	return exported(ctx, d, q, func(r *importedCourse, out *domain.CourseRecord) error {
		titles, err := r.titles()
		if len(titles) == 0 && len(r.Languages) < len(domain.English.Values()) {
			for _, language := range r.Languages {
				titles[domain.Language(language)] = r.Title
			}
		}
		if len(titles) > 0 {
			out.Titles = domain.Says(titles)
		}
		return err
	})
}

// ExportClients reads the clients, archived ones too.
func (d *DB) ExportClients(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.ClientRecord, error] {
	q := pg.Rows[importedClient]().Columns(`(
		SELECT coalesce(json_agg(json_build_object('course', p.course_id, 'due_after_days', p.due_after_days)
			ORDER BY p.position), '[]')::text
		FROM program_courses AS p WHERE p.client_id = c.id) AS program`).
		Where("?0::boolean OR c.partner_id = ?1", partner.IsZero(), partner).OrderBy("c.created_at, c.id")
	return exported(ctx, d, q, func(r *importedClient, out *domain.ClientRecord) error {
		var program []domain.ProgramCourse
		if err := json.Unmarshal([]byte(r.Program), &program); err != nil {
			return fmt.Errorf("read the program of a client: %w", err)
		}
		out.Program = domain.Says(program)
		if r.ArchivedAt != nil {
			out.Archived = domain.Says(true)
		}
		return nil
	})
}

// ExportAdmins reads the admins of partners and of their clients.
func (d *DB) ExportAdmins(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.AdminRecord, error] {
	q := pg.Rows[adminRow]().Where("?0::boolean OR a.partner_id = ?1", partner.IsZero(), partner).
		OrderBy("a.created_at, a.id")
	return exported(ctx, d, q, func(r *adminRow, out *domain.AdminRecord) error {
		if r.ClientID != nil {
			out.Partner = domain.Field[domain.Ref[domain.PartnerKind]]{} // it is the client's
		}
		return nil
	})
}

// ExportGroups reads the groups, client by client.
func (d *DB) ExportGroups(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.GroupRecord, error] {
	q := pg.Rows[groupRow]().Where("?", ofPartner("g.client_id", partner)).OrderBy("g.client_id, g.id")
	return exported[groupRow, domain.GroupRecord](ctx, d, q, nil)
}

// ExportUsers reads the users, client by client. The overrides say whether a role was
// set by hand.
func (d *DB) ExportUsers(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.UserRecord, error] {
	q := pg.Rows[userRow]().Where("?", ofPartner("u.client_id", partner)).OrderBy("u.client_id, u.created_at, u.id")
	return exported(ctx, d, q, func(r *userRow, out *domain.UserRecord) error {
		overrides := make([]domain.Override, len(r.Overrides))
		for i, f := range r.Overrides {
			overrides[i] = domain.Override(f)
		}
		out.Overrides = domain.Says(overrides)
		return nil
	})
}

// exportedCollection is a collection with a part of its members.
type exportedCollection struct {
	collectionRow
	Part    int      `bun:",scanonly"`
	Members []string `bun:",array,scanonly"`
}

// ExportCollections reads the collections, client by client. One with more members than
// a record may name has several records.
func (d *DB) ExportCollections(
	ctx context.Context, partner domain.PartnerID,
) iter.Seq2[domain.CollectionRecord, error] {
	q := pg.SQL(`
		SELECT `+pg.Columns[collectionRow]()+`, m.part, m.members FROM collections AS k CROSS JOIN LATERAL (
			SELECT ((n - 1) / ?1::integer)::integer AS part, array_agg(user_id::text ORDER BY user_id) AS members FROM (
				SELECT user_id, row_number() OVER (ORDER BY user_id) AS n FROM collection_members
				WHERE client_id = k.client_id AND collection_id = k.id) AS numbered
			GROUP BY 1
			UNION ALL SELECT 0, '{}' WHERE NOT EXISTS (
				SELECT FROM collection_members WHERE client_id = k.client_id AND collection_id = k.id)
		) AS m
		WHERE ?0 ORDER BY k.client_id, k.id, m.part`, ofPartner("k.client_id", partner), domain.MaxMembers)
	return exported(ctx, d, q, func(r *exportedCollection, out *domain.CollectionRecord) error {
		members := make([]domain.Ref[domain.UserKind], len(r.Members))
		for i, text := range r.Members {
			if err := members[i].UnmarshalText([]byte(text)); err != nil {
				return err
			}
		}
		out.Members = domain.Says(members)
		return nil
	})
}

// ExportPolicies reads the policies, archived ones too, client by client.
func (d *DB) ExportPolicies(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.PolicyRecord, error] {
	q := pg.Rows[importedPolicy]().Columns(`p.scope_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = p.client_id AND k.id = p.scope_id) AS scope_deleted`).
		Where("?", ofPartner("p.client_id", partner)).OrderBy("p.client_id, p.created_at, p.id")
	return exported(ctx, d, q, func(r *importedPolicy, out *domain.PolicyRecord) error {
		switch r.ScopeType {
		case domain.GroupScope:
			out.ScopeID = domain.Says(domain.AnyRefTo(domain.GroupID(r.ScopeID)))
		case domain.CollectionScope:
			out.ScopeID = domain.Says(domain.AnyRefTo(domain.CollectionID(r.ScopeID)))
		}
		if r.ArchivedAt != nil {
			out.Archived = domain.Says(true)
		}
		return nil
	})
}
