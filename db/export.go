package db

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file reads what an import can take (decisions
// 10), as records: all clients' objects or those of one partner's, archived ones too.
// What the service derives is not in them. Each list is read by a cursor, in the
// transaction of ctx, without which it fails (Snapshot), and has the order of the
// objects' keys.

// exported reads records by a query, whose columns are those of a row. also says what the
// columns do not; it may be nil.
func exported[Row, Record any](
	ctx context.Context, d *DB, q pg.Query, also func(*Row, *Record) error,
) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export objects", q) {
			var record Record
			if err == nil {
				record = recordOf[Record](&row)
			}
			if err == nil && also != nil {
				err = also(&row, &record)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ofPartner is the condition that a client is the partner's; the zero partner has
// all. client is the SQL of its id.
func ofPartner(client string, partner domain.PartnerID) pg.Query {
	if partner.IsZero() {
		return pg.SQL("true")
	}
	return pg.SQL(client+" IN (SELECT id FROM clients WHERE partner_id = ?)", partner)
}

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
			out.Titles = domain.Give(titles)
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
		out.Program = domain.Give(program)
		if r.ArchivedAt != nil {
			out.Archived = domain.Give(true)
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
			out.Partner = domain.Optional[domain.Ref[domain.PartnerKind]]{} // it is the client's
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
		out.Overrides = domain.Give(overrides)
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
		out.Members = domain.Give(members)
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
			out.ScopeID = domain.Give(domain.AnyRefTo(domain.GroupID(r.ScopeID)))
		case domain.CollectionScope:
			out.ScopeID = domain.Give(domain.AnyRefTo(domain.CollectionID(r.ScopeID)))
		}
		if r.ArchivedAt != nil {
			out.Archived = domain.Give(true)
		}
		return nil
	})
}

// exportedResult is a result with its template's name, where that was imported.
type exportedResult struct {
	resultRow
	TemplateOwn      bool            `bun:",scanonly"`
	TemplateName     string          `bun:",scanonly"`
	TemplateLanguage domain.Language `bun:",scanonly"`
}

// ExportResults reads the simulated mails, user by user: an import scores each user
// once or twice then.
func (d *DB) ExportResults(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.ResultRecord, error] {
	q := pg.Rows[resultRow]().
		Columns("t.own AS template_own, t.name AS template_name, t.language AS template_language").
		Join("JOIN phishing_templates AS t ON t.id = r.template_id").
		Where("?", ofPartner("r.client_id", partner)).OrderBy("r.client_id, r.user_id, r.sent_at, r.id")
	return exported(ctx, d, q, func(r *exportedResult, out *domain.ResultRecord) error {
		if !r.TemplateOwn {
			out.Template = domain.Optional[domain.Ref[domain.TemplateKind]]{}
			out.TemplateName = domain.Give(domain.TemplateName{Name: r.TemplateName, Language: r.TemplateLanguage})
		}
		return nil
	})
}

// ExportSentEmails reads the mails that were sent to users, user by user.
func (d *DB) ExportSentEmails(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.SentEmailRecord, error] {
	q := pg.Rows[sentEmailRow]().Where("?", ofPartner("e.client_id", partner)).
		OrderBy("e.client_id, e.user_id, e.id")
	return exported[sentEmailRow, domain.SentEmailRecord](ctx, d, q, nil)
}

// ExportExposures reads the exposures, user by user.
func (d *DB) ExportExposures(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.ExposureRecord, error] {
	q := pg.Rows[exposureRow]().Where("?", ofPartner("e.client_id", partner)).
		OrderBy("e.client_id, e.user_id, e.breach_name")
	return exported[exposureRow, domain.ExposureRecord](ctx, d, q, nil)
}

// exportedFramework is a framework assignment, and whether its audience is gone.
type exportedFramework struct {
	frameworkRow
	Deleted bool `bun:",scanonly"`
}

// ExportFrameworkAssignments reads the framework assignments, client by client.
func (d *DB) ExportFrameworkAssignments(
	ctx context.Context, partner domain.PartnerID,
) iter.Seq2[domain.FrameworkAssignmentRecord, error] {
	q := pg.Rows[frameworkRow]().Columns(`f.audience_type = 'collection' AND NOT EXISTS (
		SELECT 1 FROM collections AS k WHERE k.client_id = f.client_id AND k.id = f.audience_id) AS deleted`).
		Where("?", ofPartner("f.client_id", partner)).OrderBy("f.client_id, f.created_at, f.id")
	return exported(ctx, d, q, func(r *exportedFramework, out *domain.FrameworkAssignmentRecord) error {
		audience := domain.AudienceRecord{Type: r.AudienceType, Deleted: r.Deleted}
		switch id := pg.Or(r.AudienceID, [16]byte{}); r.AudienceType {
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
	})
}

// SignalLine is a signal as a line of an ingestion has it; what its type does not have
// is nil.
type SignalLine struct {
	ID             string                `json:"id"`
	Type           domain.SignalType     `json:"type"`
	At             string                `json:"at"`
	UserID         *domain.UserID        `json:"user_id,omitzero"`
	CourseID       *domain.CourseID      `json:"course_id,omitzero"`
	PolicyID       *domain.PolicyID      `json:"policy_id,omitzero"`
	Version        *int                  `json:"version,omitzero"`
	MessageID      *string               `json:"message_id,omitzero"`
	Subject        *string               `json:"subject,omitzero"`
	Sender         *string               `json:"sender,omitzero"`
	Classification *domain.EmailClass    `json:"classification,omitzero"`
	MailboxAction  *domain.MailboxAction `json:"mailbox_action,omitzero"`
	ClientID       *domain.ClientID      `json:"client_id,omitzero"`
}

// exportSignalsSQL are the signals that tell what users did and no record of an import
// holds: courses begun and completed, policies signed, emails reported and classified.
// Of archived clients and policies there are none, as none is taken of them. Their ids
// follow from what they tell.
const exportSignalsSQL = `
	WITH reached AS (SELECT c.id FROM clients AS c WHERE c.archived_at IS NULL AND ?0)
	(SELECT 'course_completed/' || a.user_id || '/' || a.course_id || '/' || a.round AS id, 'course_completed' AS type,
		a.completed_at AS at, a.user_id, a.course_id, NULL::uuid AS policy_id, NULL::integer AS version,
		NULL AS message_id, NULL AS subject, NULL AS sender, NULL AS classification, NULL AS mailbox_action,
		NULL::uuid AS client_id
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.completed_at IS NOT NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'course_started/' || a.user_id || '/' || a.course_id || '/' || a.round, 'course_started', a.started_at,
		a.user_id, a.course_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.started_at IS NOT NULL
		AND a.completed_at IS NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'policy_signed/' || s.user_id || '/' || s.policy_id || '/' || s.version, 'policy_signed', s.signed_at,
		s.user_id, NULL, s.policy_id, s.version, NULL, NULL, NULL, NULL, NULL, NULL
	FROM policy_signatures AS s JOIN policies AS p ON p.client_id = s.client_id AND p.id = s.policy_id
	WHERE s.client_id IN (SELECT id FROM reached) AND p.archived_at IS NULL
	ORDER BY s.client_id, s.policy_id, s.version, s.user_id)
	UNION ALL
	(SELECT 'email_reported/' || e.user_id || '/' || md5(e.message_id), 'email_reported', e.reported_at,
		e.user_id, NULL, NULL, NULL, e.message_id, e.subject, e.sender, NULL, NULL, NULL
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached)
	ORDER BY e.client_id, e.user_id, e.message_id)
	UNION ALL
	(SELECT DISTINCT ON (e.client_id, e.message_id)
		'email_classified/' || e.client_id || '/' || md5(e.message_id), 'email_classified', e.classified_at,
		NULL, NULL, NULL, NULL, e.message_id, NULL, NULL, e.classification, e.mailbox_action, e.client_id
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached) AND e.classified_at IS NOT NULL
	ORDER BY e.client_id, e.message_id, e.classified_at DESC, e.id)`

// ExportSignals reads what users did, beside what records hold, as signals with their
// own dates.
func (d *DB) ExportSignals(ctx context.Context, partner domain.PartnerID) iter.Seq2[SignalLine, error] {
	return pg.Each[SignalLine](ctx, d, "export signals", pg.SQL(`
		SELECT id, type, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, user_id, course_id,
			policy_id, version, message_id, subject, sender, classification, mailbox_action, client_id
		FROM (`+exportSignalsSQL+`) AS s`, ofPartner("c.id", partner)))
}
