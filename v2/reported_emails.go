package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func reportedEmailOf(r domain.ReportedEmail) api.ReportedEmail {
	return api.ReportedEmail{
		ID: r.ID, UserID: r.User, ClientID: r.Client, ReportedAt: domain.At(r.ReportedAt), Subject: r.Subject, Sender: r.Sender,
		Classification: r.Class, ClassifiedAt: domain.MaybeAt(r.ClassifiedAt), MailboxAction: domain.OrNil(r.Action),
		UpdatedAt: domain.At(r.UpdatedAt),
	}
}

func (a *API) listReportedEmails(
	ctx context.Context, in *api.ListReportedEmailsInput, w domain.Window,
) (domain.Slice[domain.ReportedEmail], error) {
	q := in.Query
	within, err := newPeriod("" /* prefix */, q.Since, q.Until)
	if err != nil {
		return domain.Slice[domain.ReportedEmail]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.ReportedEmail]{}, err
	}
	return t.ReportedEmails(ctx, domain.ReportedEmailFilter{
		Period: within, Class: domain.OrNil(q.Classification), UpdatedSince: toTime(q.UpdatedSince),
		Sort: domain.Sort(q.Sort),
	}, w)
}
