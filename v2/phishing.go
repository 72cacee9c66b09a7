package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func resultOf(r domain.Result) api.PhishingResult {
	return api.PhishingResult{
		ResultID: r.ID, UserID: r.User, TemplateID: r.Template, Status: r.Status, Reported: r.Reported,
		Automated: r.Automated, AutomatedReason: domain.OrNil(r.AutomatedReason),
		Failure: domain.OrNil(r.PublicFailure()), FailedAt: domain.MaybeAt(r.FailedAt),
		Label: domain.OrNil(r.Label), SendAt: domain.At(r.SendAt), SentAt: domain.MaybeAt(r.SentAt), OpenedAt: domain.MaybeAt(r.OpenedAt), ClickedAt: domain.MaybeAt(r.ClickedAt),
		ReportedAt: domain.MaybeAt(r.ReportedAt), CredentialsSubmittedAt: domain.MaybeAt(r.CredentialsSubmittedAt),
		AttachmentOpenedAt: domain.MaybeAt(r.AttachmentOpenedAt), UpdatedAt: domain.At(r.UpdatedAt),
	}
}

func countsOf(c domain.PhishingCounts) api.PhishingCounts {
	return api.PhishingCounts{
		Sent: c.Sent, Opened: c.Opened, Clicked: c.Clicked, Reported: c.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted, AttachmentsOpened: c.AttachmentsOpened,
		ClickRate: domain.Percent(c.Clicked, c.Sent), ReportRate: domain.Percent(c.Reported, c.Sent),
	}
}

func labelOf(l domain.PhishingLabel) api.PhishingLabel {
	c := countsOf(l.PhishingCounts)
	return api.PhishingLabel{
		Label: l.Label, Sends: l.Sends, FirstSendAt: domain.At(l.FirstSendAt), LastSendAt: domain.At(l.LastSendAt),
		Opened: c.Opened, Clicked: c.Clicked, Reported: c.Reported, CredentialsSubmitted: c.CredentialsSubmitted,
		AttachmentsOpened: c.AttachmentsOpened, ClickRate: c.ClickRate, ReportRate: c.ReportRate,
	}
}

func templateOf(t domain.Template) api.PhishingTemplate {
	return api.PhishingTemplate{
		ID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category, Subject: t.Subject, FromEmail: t.FromEmail(),
		CreatedAt: domain.At(t.CreatedAt), UpdatedAt: domain.At(t.UpdatedAt),
	}
}

// resultFilter converts the query to a filter; InvalidRequest if since is not before until.
func resultFilter(in *api.ListPhishingResultsInput) (domain.ResultFilter, error) {
	q := in.Query
	within, err := newPeriod("" /* prefix */, q.Since, q.Until)
	f := domain.ResultFilter{
		Period: within, UpdatedSince: toTime(q.UpdatedSince), Sort: domain.Sort(q.Sort),
		User: filterID[domain.UserKind](q.UserID), Result: filterID[domain.ResultKind](q.ResultID),
	}
	if q.Status != nil {
		f.Statuses = *q.Status
	}
	f.LabelKey = labelKey(q.Label)
	return f, err
}

// labelKey returns the key of a query's label; nil if it is empty.
func labelKey(label string) *string { return domain.OrNil(domain.SortKey(label)) }

func (a *API) listPhishingResults(
	ctx context.Context, in *api.ListPhishingResultsInput, w domain.Window,
) (domain.Slice[domain.Result], error) {
	filter, err := resultFilter(in)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	return t.Results(ctx, filter, w)
}

func (a *API) getPhishingSummary(ctx context.Context, in *api.GetPhishingSummaryInput) (*api.PhishingSummary, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	s, err := t.PhishingSummary(ctx, labelKey(in.Query.Label))
	return &api.PhishingSummary{
		Days30: countsOf(s.Days30), Days90: countsOf(s.Days90), Days365: countsOf(s.Days365), Total: countsOf(s.Total),
		RepeatClickers: s.RepeatClickers, Client: t.ID,
	}, err
}

func (a *API) listPhishingLabels(
	ctx context.Context, in *api.ListPhishingLabelsInput, w domain.Window,
) (domain.Slice[domain.PhishingLabel], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.PhishingLabel]{}, err
	}
	return t.Labels(ctx, w)
}

func (a *API) listPhishingTemplates(
	ctx context.Context, in *api.ListPhishingTemplatesInput, w domain.Window,
) (domain.Slice[domain.Template], error) {
	return a.db.Templates(ctx, toTime(in.Query.UpdatedSince), w)
}
