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
	q := pg.SQL(`
		SELECT `+pg.Columns[resultRow]()+`, t.own AS template_own, t.name AS template_name, t.language AS template_language
		FROM phishing_results AS r JOIN phishing_templates AS t ON t.id = r.template_id
		WHERE ? ORDER BY r.client_id, r.user_id, r.sent_at, r.id`, ofPartner("r.client_id", partner))
	return exported(ctx, d, "results", q, (*exportedResult).record)
}

func (r *exportedResult) record() (domain.ResultRecord, error) {
	out := domain.ResultRecord{
		ID: domain.RefTo(r.ID), User: saysRef(r.UserID), SendAt: domain.Says(domain.MomentOf(r.SendAt)),
		SentAt: saysMoment(r.SentAt), OpenedAt: saysMoment(r.OpenedAt), AttachmentOpenedAt: saysMoment(r.AttachmentOpenedAt),
		ClickedAt: saysMoment(r.ClickedAt), CredentialsSubmittedAt: saysMoment(r.CredentialsSubmittedAt),
		ReportedAt: saysMoment(r.ReportedAt), AutomatedReason: saysSome(r.AutomatedReason),
		Failure: saysSome(r.Failure), FailedAt: saysMoment(r.FailedAt), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
	}
	if r.Reported {
		out.Reported = domain.Says(true)
	}
	if r.TemplateOwn {
		out.Template = saysRef(r.TemplateID)
	} else {
		out.TemplateName = domain.Says(domain.TemplateName{Name: r.TemplateName, Language: r.TemplateLanguage})
	}
	return out, nil
}

// ExportSentEmails reads the mails that were sent to users, user by user.
func (d *DB) ExportSentEmails(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.SentEmailRecord, error] {
	q := pg.SQL(`
		SELECT `+pg.Columns[sentEmailRow]()+` FROM sent_emails AS e
		WHERE ? ORDER BY e.client_id, e.user_id, e.id`, ofPartner("e.client_id", partner))
	return exported(ctx, d, "sent mails", q, func(r *sentEmailRow) (domain.SentEmailRecord, error) {
		return domain.SentEmailRecord{
			ID: domain.RefTo(r.ID), User: saysRef(r.UserID), EventTime: domain.Says(domain.MomentOf(r.SentAt)),
			FromEmail: domain.Says(r.FromEmail), Subject: domain.Says(r.Subject), SendMethod: domain.Says(r.SendMethod),
			MessageType: domain.Says(r.MessageType),
		}, nil
	})
}

// ExportExposures reads the exposures, user by user.
func (d *DB) ExportExposures(ctx context.Context, partner domain.PartnerID) iter.Seq2[domain.ExposureRecord, error] {
	q := pg.SQL(`
		SELECT `+pg.Columns[exposureRow]()+` FROM exposures AS e
		WHERE ? ORDER BY e.client_id, e.user_id, e.breach_name`, ofPartner("e.client_id", partner))
	return exported(ctx, d, "exposures", q, func(r *exposureRow) (domain.ExposureRecord, error) {
		return domain.ExposureRecord{
			ID: domain.RefTo(domain.ExposureID(r.ID)), User: saysRef(r.UserID), BreachName: domain.Says(r.BreachName),
			FirstSeenAt: domain.Says(domain.MomentOf(r.FirstSeenAt)), NotifiedAt: saysMoment(r.NotifiedAt),
			ResolvedAt: saysMoment(r.ResolvedAt), Severity: domain.Says(r.Severity), DataClasses: domain.Says(r.DataClasses),
		}, nil
	})
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
	q := pg.SQL(`
		SELECT `+pg.Columns[frameworkRow]()+`, f.audience_type = 'collection' AND NOT EXISTS (SELECT 1 FROM collections AS k
			WHERE k.client_id = f.client_id AND k.id = f.audience_id) AS deleted
		FROM framework_assignments AS f
		WHERE ? ORDER BY f.client_id, f.created_at, f.id`, ofPartner("f.client_id", partner))
	return exported(ctx, d, "framework assignments", q, (*exportedFramework).record)
}

func (r *exportedFramework) record() (domain.FrameworkAssignmentRecord, error) {
	audience := domain.AudienceRecord{Type: r.AudienceType, Deleted: r.Deleted}
	switch id := or(r.AudienceID, [16]byte{}); r.AudienceType {
	case domain.FrameworkForGroup:
		audience.ID = new(domain.AnyRefTo(domain.GroupID(id)))
	case domain.FrameworkForCollection:
		audience.ID = new(domain.AnyRefTo(domain.CollectionID(id)))
	}
	return domain.FrameworkAssignmentRecord{
		ID: domain.RefTo(r.ID), Client: saysRef(r.ClientID), Framework: domain.Says(r.FrameworkID),
		Audience: domain.Says(audience), CreatedAt: domain.Says(domain.MomentOf(r.CreatedAt)),
		Modules: domain.Says(domain.ModulesRecord{
			Training: &r.Training, Phishing: &r.Phishing, Policies: &r.Policies, Reporting: &r.Reporting,
		}),
	}, nil
}
