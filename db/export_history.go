package db

import (
	"context"
	"iter"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
			out.Template = domain.Field[domain.Ref[domain.TemplateKind]]{}
			out.TemplateName = domain.Says(domain.TemplateName{Name: r.TemplateName, Language: r.TemplateLanguage})
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
		out.Audience = domain.Says(audience)
		out.Modules = domain.Says(domain.ModulesRecord{
			Training: &r.Training, Phishing: &r.Phishing, Policies: &r.Policies, Reporting: &r.Reporting,
		})
		return nil
	})
}
