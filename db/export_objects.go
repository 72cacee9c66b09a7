package db

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ExportPartners reads the partners.
func (d *DB) ExportPartners(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.PartnerRecord, error] {
	q := pg.SQL(`SELECT `+pg.Columns[partnerRow]()+` FROM partners AS p WHERE ?0::boolean OR p.id = ?1
		ORDER BY p.created_at, p.id`, partner.IsZero(), partner)
	return exported(ctx, d, "partners", q, func(r *partnerRow) (domain.PartnerRecord, error) {
		return domain.PartnerRecord{
			ID: domain.RefTo(r.ID), Name: domain.Says(r.Name), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}, nil
	})
}

// exportedCourse is a course with its titles as JSON.
type exportedCourse struct {
	courseRow
	Titles string `bun:",scanonly"`
}

// ExportCourses reads the courses of the catalogue, which all partners share. One that
// is in fewer languages than all has its title in each of them.
func (d *DB) ExportCourses(ctx context.Context, _ domain.PartnerID) iter.Seq2[domain.CourseRecord, error] {
	q := pg.SQL(`SELECT ` + pg.Columns[courseRow]() + `, c.titles::text AS titles FROM courses AS c
		ORDER BY c.created_at, c.id`)
	return exported(ctx, d, "courses", q, func(r *exportedCourse) (domain.CourseRecord, error) {
		titles := map[domain.Language]string{}
		if err := json.Unmarshal([]byte(r.Titles), &titles); err != nil {
			return domain.CourseRecord{}, fmt.Errorf("read the titles of a course: %w", err)
		}
		out := domain.CourseRecord{
			ID: domain.RefTo(r.ID), Title: domain.Says(r.Title), RenewalMonths: domain.Says(r.RenewalMonths),
			CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}
		if len(titles) == 0 && len(r.Languages) < len(domain.English.Values()) {
			for _, language := range r.Languages {
				titles[domain.Language(language)] = r.Title
			}
		}
		if len(titles) > 0 {
			out.Titles = domain.Says(titles)
		}
		return out, nil
	})
}

// exportedClient is a client with its program as JSON.
type exportedClient struct {
	ID                domain.ClientID
	PartnerID         domain.PartnerID
	Name              string
	Industry          *string
	ExternalID        *string
	DarkWebMonitoring bool
	Archived          bool
	CreatedAt         time.Time
	Program           string
}

// ExportClients reads the clients, archived ones too.
func (d *DB) ExportClients(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.ClientRecord, error] {
	q := pg.SQL(`
		SELECT c.id, c.partner_id, c.name, c.industry, c.external_id, c.dark_web_monitoring,
			c.archived_at IS NOT NULL AS archived, c.created_at, (
				SELECT coalesce(json_agg(json_build_object('course', p.course_id, 'due_after_days', p.due_after_days)
					ORDER BY p.position), '[]')::text
				FROM program_courses AS p WHERE p.client_id = c.id) AS program
		FROM clients AS c WHERE ?0::boolean OR c.partner_id = ?1 ORDER BY c.created_at, c.id`, partner.IsZero(), partner)
	return exported(ctx, d, "clients", q, func(r *exportedClient) (domain.ClientRecord, error) {
		var program []domain.ProgramCourse
		if err := json.Unmarshal([]byte(r.Program), &program); err != nil {
			return domain.ClientRecord{}, fmt.Errorf("read the program of a client: %w", err)
		}
		out := domain.ClientRecord{
			ID: domain.RefTo(r.ID), Partner: saysRef(r.PartnerID), Name: domain.Says(r.Name), Industry: saysSome(r.Industry),
			ExternalID: saysSome(r.ExternalID), DarkWebMonitoring: domain.Says(r.DarkWebMonitoring),
			Program: domain.Says(program), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}
		if r.Archived {
			out.Archived = domain.Says(true)
		}
		return out, nil
	})
}

// ExportAdmins reads the admins of partners and of their clients.
func (d *DB) ExportAdmins(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.AdminRecord, error] {
	q := pg.SQL(`SELECT `+pg.Columns[adminRow]()+` FROM admins AS a WHERE ?0::boolean OR a.partner_id = ?1
		ORDER BY a.created_at, a.id`, partner.IsZero(), partner)
	return exported(ctx, d, "admins", q, func(r *adminRow) (domain.AdminRecord, error) {
		out := domain.AdminRecord{
			ID: domain.RefTo(r.ID), Email: domain.Says(r.Email), Name: domain.Says(r.Name), Role: domain.Says(r.Role),
			LastLoginAt: saysMoment(r.LastLoginAt), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}
		if r.ClientID != nil {
			out.Client = saysRef(*r.ClientID)
		} else {
			out.Partner = saysRef(r.PartnerID)
		}
		return out, nil
	})
}

// exportedGroup is a row of groups.
type exportedGroup struct {
	ClientID  domain.ClientID
	ID        domain.GroupID
	Name      string
	Manual    bool
	CreatedAt time.Time
}

// ExportGroups reads the groups, client by client.
func (d *DB) ExportGroups(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.GroupRecord, error] {
	q := pg.SQL(`SELECT g.client_id, g.id, g.name, g.manual, g.created_at FROM groups AS g
		WHERE ? ORDER BY g.client_id, g.id`, ofPartner("g.client_id", partner))
	return exported(ctx, d, "groups", q, func(r *exportedGroup) (domain.GroupRecord, error) {
		out := domain.GroupRecord{
			ID: domain.RefTo(r.ID), Client: saysRef(r.ClientID), Name: domain.Says(r.Name),
			CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}
		if r.Manual {
			out.Manual = domain.Says(true)
		}
		return out, nil
	})
}

// ExportUsers reads the users, client by client. The overrides say whether a role was
// set by hand.
func (d *DB) ExportUsers(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.UserRecord, error] {
	q := pg.SQL(`SELECT `+pg.Columns[userRow]()+` FROM users AS u
		WHERE ? ORDER BY u.client_id, u.created_at, u.id`, ofPartner("u.client_id", partner))
	return exported(ctx, d, "users", q, func(r *userRow) (domain.UserRecord, error) {
		out := domain.UserRecord{
			ID: domain.RefTo(r.ID), Client: saysRef(r.ClientID), Email: domain.Says(r.Email),
			FirstName: domain.Says(r.FirstName), LastName: domain.Says(r.LastName), Department: saysSome(r.Department),
			JobTitle: saysSome(r.JobTitle), ManagerEmail: saysSome(r.ManagerEmail), Role: domain.Says(r.Role),
			PreferredLanguage: domain.Says(r.PreferredLanguage), Status: domain.Says(r.Status), Source: domain.Says(r.Source),
			CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)), Overrides: domain.Says(overridesOf(r.Overrides)),
		}
		if r.GroupID != nil {
			out.Group = saysRef(*r.GroupID)
		}
		return out, nil
	})
}

func overridesOf(fields []string) []domain.Override {
	out := make([]domain.Override, len(fields))
	for i, f := range fields {
		out[i] = domain.Override(f)
	}
	return out
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
	return exported(ctx, d, "collections", q, func(r *exportedCollection) (domain.CollectionRecord, error) {
		members := make([]domain.Ref[domain.UserKind], len(r.Members))
		for i, text := range r.Members {
			if err := members[i].UnmarshalText([]byte(text)); err != nil {
				return domain.CollectionRecord{}, err
			}
		}
		return domain.CollectionRecord{
			ID: domain.RefTo(r.ID), Client: saysRef(r.ClientID), Name: domain.Says(r.Name), Description: saysSome(r.Description),
			Members: domain.Says(members), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}, nil
	})
}

// exportedPolicy is a policy, and whether its scope is gone.
type exportedPolicy struct {
	ClientID               domain.ClientID
	ID                     domain.PolicyID
	Title                  string
	Description            *string
	Version                int
	ScopeType              domain.ScopeType
	ScopeID                [16]byte
	ScopeDeleted           bool
	RequiresAcknowledgment bool
	RenewalPeriodDays      int
	ReviewedAt             time.Time
	Archived               bool
	CreatedAt              time.Time
}

// ExportPolicies reads the policies, archived ones too, client by client.
func (d *DB) ExportPolicies(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.PolicyRecord, error] {
	q := pg.SQL(`
		SELECT p.client_id, p.id, p.title, p.description, p.version, p.scope_type, p.scope_id,
			p.scope_type = 'collection' AND NOT EXISTS (SELECT 1 FROM collections AS k
				WHERE k.client_id = p.client_id AND k.id = p.scope_id) AS scope_deleted,
			p.requires_acknowledgment, p.renewal_period_days, p.reviewed_at, p.archived_at IS NOT NULL AS archived,
			p.created_at
		FROM policies AS p WHERE ? ORDER BY p.client_id, p.created_at, p.id`, ofPartner("p.client_id", partner))
	return exported(ctx, d, "policies", q, func(r *exportedPolicy) (domain.PolicyRecord, error) {
		out := domain.PolicyRecord{
			ID: domain.RefTo(r.ID), Client: saysRef(r.ClientID), Title: domain.Says(r.Title),
			Description: saysSome(r.Description), Version: domain.Says(r.Version), ScopeType: domain.Says(r.ScopeType),
			RequiresAcknowledgment: domain.Says(r.RequiresAcknowledgment),
			RenewalPeriodDays:      domain.Says(r.RenewalPeriodDays), ReviewedAt: domain.Says(domain.MomentOf(r.ReviewedAt)),
			CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		}
		switch r.ScopeType {
		case domain.GroupScope:
			out.ScopeID = domain.Says(domain.AnyRefTo(domain.GroupID(r.ScopeID)))
		case domain.CollectionScope:
			out.ScopeID = domain.Says(domain.AnyRefTo(domain.CollectionID(r.ScopeID)))
		}
		if r.ScopeDeleted {
			out.ScopeDeleted = domain.Says(true)
		}
		if r.Archived {
			out.Archived = domain.Says(true)
		}
		return out, nil
	})
}
