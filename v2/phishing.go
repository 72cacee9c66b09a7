package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// PhishingResult is a simulated mail to one user and what became of it, as v2
// shows it.
type PhishingResult struct {
	ResultID               domain.ResultID         `json:"result_id" doc:"Opaque id of the simulated mail to this user."`
	UserID                 domain.UserID           `json:"user_id" doc:"The user whom the mail is for."`
	TemplateID             domain.TemplateID       `json:"template_id" doc:"The template of the mail."`
	Status                 domain.ResultStatus     `json:"status" doc:"How far people got with the mail. It only moves forward. failed: the mail will never be sent."`
	Reported               bool                    `json:"reported" doc:"Whether the user reported the mail."`
	Automated              bool                    `json:"automated" doc:"Whether a mail scanner opened or clicked the mail, too. That moves no status, no time, no rate and no score."`
	AutomatedReason        *domain.AutomatedReason `json:"automated_reason" doc:"How the scanner was recognized: it asked for the head of a page only (head), came from a listed network (network), or was too fast (fast). Null without one."`
	Failure                *string                 `json:"failure" doc:"Why the mail will never be sent. Null unless the status is failed."`
	FailedAt               *domain.Time            `json:"failed_at" doc:"When sending was given up. Null unless the status is failed."`
	SendAt                 domain.Time             `json:"send_at" doc:"When the mail is to be sent."`
	SentAt                 *domain.Time            `json:"sent_at" doc:"When the mail was sent. Null for not yet."`
	OpenedAt               *domain.Time            `json:"opened_at" doc:"When the user opened the mail. Null for not yet."`
	ClickedAt              *domain.Time            `json:"clicked_at" doc:"When the user clicked the link. Null for not yet."`
	ReportedAt             *domain.Time            `json:"reported_at" doc:"When the user reported the mail. Null for not yet."`
	CredentialsSubmittedAt *domain.Time            `json:"credentials_submitted_at" doc:"When the user submitted credentials, which are never stored. Null for not yet."`
	AttachmentOpenedAt     *domain.Time            `json:"attachment_opened_at" doc:"When the user opened the attachment. Null for not yet."`
	UpdatedAt              domain.Time             `json:"updated_at" doc:"When the result last changed."`
}

func resultOf(r domain.Result) PhishingResult {
	return PhishingResult{
		ResultID: r.ID, UserID: r.User, TemplateID: r.Template, Status: r.Status, Reported: r.Reported,
		Automated: r.Automated, AutomatedReason: unlessZero(r.AutomatedReason),
		Failure: unlessZero(r.Failure), FailedAt: domain.MaybeAt(r.FailedAt),
		SendAt: domain.At(r.SendAt), SentAt: domain.MaybeAt(r.SentAt), OpenedAt: domain.MaybeAt(r.OpenedAt), ClickedAt: domain.MaybeAt(r.ClickedAt),
		ReportedAt: domain.MaybeAt(r.ReportedAt), CredentialsSubmittedAt: domain.MaybeAt(r.CredentialsSubmittedAt),
		AttachmentOpenedAt: domain.MaybeAt(r.AttachmentOpenedAt), UpdatedAt: domain.At(r.UpdatedAt),
	}
}

// unlessZero points to a value; nil where it is zero.
func unlessZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// PhishingSummary counts a client's simulated mails, as v2 shows it.
type PhishingSummary struct {
	Days30         PhishingCounts `json:"30d" doc:"Mails sent in the last 30 days, today (UTC) included."`
	Days90         PhishingCounts `json:"90d" doc:"Mails sent in the last 90 days, today (UTC) included."`
	Days365        PhishingCounts `json:"365d" doc:"Mails sent in the last 365 days, today (UTC) included."`
	Total          PhishingCounts `json:"total" doc:"All mails that were ever sent."`
	RepeatClickers int            `json:"repeat_clickers" doc:"Number of users who fell for two or more mails of the last 365 days."`

	client domain.ClientID
}

// BudgetClient is the client that a call is charged to.
func (s PhishingSummary) BudgetClient() domain.ClientID { return s.client }

// PhishingCounts are simulated mails by how far they got.
type PhishingCounts struct {
	Sent                 int     `json:"sent" doc:"Number of mails sent."`
	Opened               int     `json:"opened" doc:"Number of mails opened or fallen for."`
	Clicked              int     `json:"clicked" doc:"Number of mails fallen for in any way: clicked, attachment opened or credentials submitted."`
	Reported             int     `json:"reported" doc:"Number of mails reported."`
	CredentialsSubmitted int     `json:"credentials_submitted" doc:"Number of mails that led to submitted credentials."`
	AttachmentsOpened    int     `json:"attachments_opened" doc:"Number of mails whose attachment was opened."`
	ClickRate            float64 `json:"click_rate" doc:"Mails clicked, in percent of those sent, 0 to 100."`
	ReportRate           float64 `json:"report_rate" doc:"Mails reported, in percent of those sent, 0 to 100."`
}

func countsOf(c domain.PhishingCounts) PhishingCounts {
	return PhishingCounts{
		Sent: c.Sent, Opened: c.Opened, Clicked: c.Clicked, Reported: c.Reported,
		CredentialsSubmitted: c.CredentialsSubmitted, AttachmentsOpened: c.AttachmentsOpened,
		ClickRate: domain.Percent(c.Clicked, c.Sent), ReportRate: domain.Percent(c.Reported, c.Sent),
	}
}

// PhishingTemplate is a simulated mail of the catalogue, as v2 shows it.
type PhishingTemplate struct {
	ID        domain.TemplateID `json:"id" doc:"Opaque id of the template."`
	Name      string            `json:"name" doc:"The template's name."`
	Language  domain.Language   `json:"language" doc:"Language of the mail."`
	Category  string            `json:"category" doc:"Category of the mail, by which clients enable templates."`
	Subject   string            `json:"subject" doc:"Subject of the mail."`
	FromEmail string            `json:"from_email" doc:"Address that the mail claims to come from."`
	CreatedAt domain.Time       `json:"created_at" doc:"When the template was added."`
}

func templateOf(t domain.Template) PhishingTemplate {
	return PhishingTemplate{
		ID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category, Subject: t.Subject, FromEmail: t.FromEmail(),
		CreatedAt: domain.At(t.CreatedAt),
	}
}

func (a *API) declarePhishing() {
	a.ListPhishingResults = op.AddList(&a.Set, op.Meta{
		ID: "phishing.results.list", Method: "GET", Path: "/clients/:client_id/phishing/results", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List a client's simulated mails and what became of them",
		Description: "Returns the simulated mails to the users of a client and how far each got, by their creation. " +
			"With `since` or `until` the list is in the order of sending.",
		Columns: []string{"result_id", "user_id", "template_id", "status", "reported", "sent_at", "clicked_at"},
	}, a.listPhishingResults, resultOf)
	a.GetPhishingSummary = op.Add(&a.Set, op.Meta{
		ID: "phishing.summary", Method: "GET", Path: "/clients/:client_id/phishing/summary", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary: "Count a client's simulated mails",
		Description: "Returns counts and rates for 30, 90 and 365 days and in total, by the day (UTC) of sending. " +
			"What mail scanners did is not counted.",
	}, a.getPhishingSummary)
	a.ListPhishingTemplates = op.AddList(&a.Set, op.Meta{
		ID: "phishing.templates.list", Starred: true, Method: "GET", Path: "/phishing/templates", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the catalogue of simulated mails",
		Description: "Returns the templates that `template_id` stands for, by their creation. All clients share them.",
		Columns:     []string{"id", "name", "language", "category", "subject"},
	}, a.listPhishingTemplates, templateOf)
}

// ListPhishingResults asks for a page of a client's results, by their creation;
// by the time of sending where since or until is given, and else by their last
// change where updated_since is.
type ListPhishingResults struct {
	Path  clientPath
	Query struct {
		op.Paging
		UserID       string          `query:"user_id" validate:"max=500" doc:"Only results of this user."`
		ResultID     string          `query:"result_id" validate:"max=500" doc:"Only this result."`
		Status       *ResultStatuses `query:"status" doc:"Only results that are in one of these states now, comma-separated: scheduled, sent, opened, attachment_opened, clicked, credentials_submitted, failed."`
		Since        *domain.Time    `query:"since" doc:"Only mails sent at or after this time. The list is then in the order of sending."`
		Until        *domain.Time    `query:"until" doc:"Only mails sent before this time. The list is then in the order of sending."`
		UpdatedSince *domain.Time    `query:"updated_since" doc:"Only results that changed at or after this time."`
	}
}

// ResultStatuses is a comma-separated list of states.
type ResultStatuses = EnumList[domain.ResultStatus]

func (in *ListPhishingResults) filter() (domain.ResultFilter, error) {
	q := in.Query
	within, err := period(q.Since, q.Until)
	f := domain.ResultFilter{Period: within, UpdatedSince: bound(q.UpdatedSince)}
	if q.Status != nil {
		f.Statuses = *q.Status
	}
	// A text that is no id is the id of nothing: no result is found.
	if q.UserID != "" {
		id, _ := domain.ParseID[domain.UserKind](q.UserID)
		f.User = &id
	}
	if q.ResultID != "" {
		id, _ := domain.ParseID[domain.ResultKind](q.ResultID)
		f.Result = &id
	}
	return f, err
}

func (a *API) listPhishingResults(
	ctx context.Context, in *ListPhishingResults, w domain.Window,
) (domain.Slice[domain.Result], error) {
	filter, err := in.filter()
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	return t.Results(ctx, filter, w)
}

// GetPhishingSummary asks for the counts of a client's simulated mails.
type GetPhishingSummary struct {
	Path clientPath
}

func (a *API) getPhishingSummary(ctx context.Context, in *GetPhishingSummary) (*PhishingSummary, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	s, err := t.PhishingSummary(ctx)
	if err != nil {
		return nil, err
	}
	return &PhishingSummary{
		Days30: countsOf(s.Days30), Days90: countsOf(s.Days90), Days365: countsOf(s.Days365), Total: countsOf(s.Total),
		RepeatClickers: s.RepeatClickers, client: t.ID,
	}, nil
}

// ListPhishingTemplates asks for a page of the catalogue, by creation.
type ListPhishingTemplates struct {
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only templates that were added or changed at or after this time."`
	}
}

func (a *API) listPhishingTemplates(
	ctx context.Context, in *ListPhishingTemplates, w domain.Window,
) (domain.Slice[domain.Template], error) {
	return a.db.Templates(ctx, bound(in.Query.UpdatedSince), w)
}
