package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// PhishingResult is a simulated mail to one user and what became of it, as v2
// shows it.
type PhishingResult struct {
	ResultID               domain.ResultID     `json:"result_id"`
	UserID                 domain.UserID       `json:"user_id"`
	TemplateID             domain.TemplateID   `json:"template_id"`
	Status                 domain.ResultStatus `json:"status" doc:"How far the mail got. It only moves forward."`
	Reported               bool                `json:"reported"`
	Automated              bool                `json:"automated" doc:"What opened or clicked the mail was a mail scanner. It counts in no rate and no score."`
	SendAt                 op.Time             `json:"send_at"`
	SentAt                 *op.Time            `json:"sent_at"`
	OpenedAt               *op.Time            `json:"opened_at"`
	ClickedAt              *op.Time            `json:"clicked_at"`
	ReportedAt             *op.Time            `json:"reported_at"`
	CredentialsSubmittedAt *op.Time            `json:"credentials_submitted_at"`
	AttachmentOpenedAt     *op.Time            `json:"attachment_opened_at"`
	UpdatedAt              op.Time             `json:"updated_at"`
}

func resultOf(r domain.Result) PhishingResult {
	return PhishingResult{
		ResultID: r.ID, UserID: r.User, TemplateID: r.Template, Status: r.Status, Reported: r.Reported, Automated: r.Automated,
		SendAt: op.At(r.SendAt), SentAt: op.MaybeAt(r.SentAt), OpenedAt: op.MaybeAt(r.OpenedAt), ClickedAt: op.MaybeAt(r.ClickedAt),
		ReportedAt: op.MaybeAt(r.ReportedAt), CredentialsSubmittedAt: op.MaybeAt(r.CredentialsSubmittedAt),
		AttachmentOpenedAt: op.MaybeAt(r.AttachmentOpenedAt), UpdatedAt: op.At(r.UpdatedAt),
	}
}

// PhishingSummary counts a client's simulated mails, as v2 shows it.
type PhishingSummary struct {
	Days30         PhishingCounts `json:"30d" doc:"Mails sent in the last 30 days, today (UTC) included."`
	Days90         PhishingCounts `json:"90d"`
	Days365        PhishingCounts `json:"365d"`
	Total          PhishingCounts `json:"total"`
	RepeatClickers int            `json:"repeat_clickers" doc:"Users who fell for two or more mails of the last 365 days."`

	client domain.ClientID
}

// BudgetClient is the client that a call is charged to.
func (s PhishingSummary) BudgetClient() domain.ClientID { return s.client }

// PhishingCounts are simulated mails by how far they got.
type PhishingCounts struct {
	Sent                 int     `json:"sent"`
	Opened               int     `json:"opened"`
	Clicked              int     `json:"clicked" doc:"Fallen for in any way: clicked, attachment opened or credentials submitted."`
	Reported             int     `json:"reported"`
	CredentialsSubmitted int     `json:"credentials_submitted"`
	AttachmentsOpened    int     `json:"attachments_opened"`
	ClickRate            float64 `json:"click_rate" doc:"Clicked, in percent of sent."`
	ReportRate           float64 `json:"report_rate" doc:"Reported, in percent of sent."`
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
	ID        domain.TemplateID `json:"id"`
	Name      string            `json:"name"`
	Language  domain.Language   `json:"language"`
	Category  string            `json:"category"`
	Subject   string            `json:"subject"`
	FromEmail string            `json:"from_email"`
	CreatedAt op.Time           `json:"created_at"`
}

func templateOf(t domain.Template) PhishingTemplate {
	return PhishingTemplate{
		ID: t.ID, Name: t.Name, Language: t.Language, Category: t.Category, Subject: t.Subject, FromEmail: t.FromEmail(), CreatedAt: op.At(t.CreatedAt),
	}
}

func (a *API) declarePhishing() {
	a.ListPhishingResults = op.Add(&a.Set, op.Meta{
		ID: "phishing.results.list", Method: "GET", Path: "/clients/:client_id/phishing/results", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List a client's simulated mails and what became of them",
	}, a.listPhishingResults)
	a.GetPhishingSummary = op.Add(&a.Set, op.Meta{
		ID: "phishing.summary", Method: "GET", Path: "/clients/:client_id/phishing/summary", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary: "Count a client's simulated mails",
	}, a.getPhishingSummary)
	a.ListPhishingTemplates = op.Add(&a.Set, op.Meta{
		ID: "phishing.templates.list", Method: "GET", Path: "/phishing/templates", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the catalogue of simulated mails",
	}, a.listPhishingTemplates)
}

// ListPhishingResults asks for a page of a client's results, by their creation;
// by the time of sending where since or until is given, and else by their last
// change where updated_since is.
type ListPhishingResults struct {
	Path  clientPath
	Query struct {
		op.Paging
		UserID       string              `query:"user_id" validate:"max=500" doc:"Only results of this user."`
		ResultID     string              `query:"result_id" validate:"max=500" doc:"Only this result."`
		Status       domain.ResultStatus `query:"status" validate:"omitempty,enum" doc:"Only results that are in this state now."`
		Since        *op.Time            `query:"since" doc:"Only mails sent at or after this time."`
		Until        *op.Time            `query:"until" doc:"Only mails sent before this time."`
		UpdatedSince *op.Time            `query:"updated_since" doc:"Only results that changed at or after this time."`
	}
	// Sent asks for the mails that were sent to one user, newest first,
	// whichever client the user belongs to. It is an input of other surfaces in
	// this process and stands in for the path.
	Sent *domain.UserID
}

func (in *ListPhishingResults) filter() (domain.ResultFilter, error) {
	q := in.Query
	within, err := period(q.Since, q.Until)
	f := domain.ResultFilter{
		User: in.Sent, Newest: in.Sent != nil, Status: q.Status, Period: within, UpdatedSince: bound(q.UpdatedSince),
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

func (a *API) listPhishingResults(ctx context.Context, in *ListPhishingResults) (*op.Page[PhishingResult], error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	list := op.NewList(a.cursors, "phishing.results.list", in.Path.ClientID, filter, filter.Order())
	return mapPage(list, in.Query.Paging, func(w domain.Window) (domain.Slice[domain.Result], error) {
		client, err := a.clientOfResults(ctx, in)
		if err != nil {
			return domain.Slice[domain.Result]{}, err
		}
		return a.db.Results(ctx, client, filter, w)
	}, resultOf)
}

// clientOfResults is the client whose results are asked for, within reach.
func (a *API) clientOfResults(ctx context.Context, in *ListPhishingResults) (domain.ClientID, error) {
	if in.Sent != nil {
		u, err := a.db.User(ctx, *in.Sent)
		if err != nil {
			return domain.ClientID{}, err
		}
		return u.Client, nil
	}
	c, err := a.db.Client(ctx, in.Path.ClientID)
	return c.ID, err
}

// GetPhishingSummary asks for the counts of a client's simulated mails.
type GetPhishingSummary struct {
	Path clientPath
}

func (a *API) getPhishingSummary(ctx context.Context, in *GetPhishingSummary) (*PhishingSummary, error) {
	c, err := a.db.Client(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	s, err := a.db.PhishingSummary(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	return &PhishingSummary{
		Days30: countsOf(s.Days30), Days90: countsOf(s.Days90), Days365: countsOf(s.Days365), Total: countsOf(s.Total),
		RepeatClickers: s.RepeatClickers, client: c.ID,
	}, nil
}

// ListPhishingTemplates asks for a page of the catalogue, by creation.
type ListPhishingTemplates struct {
	Query struct {
		op.Paging
		UpdatedSince *op.Time `query:"updated_since" doc:"Only templates that were added or changed at or after this time."`
	}
}

func (a *API) listPhishingTemplates(ctx context.Context, in *ListPhishingTemplates) (*op.Page[PhishingTemplate], error) {
	since := bound(in.Query.UpdatedSince)
	list := op.NewList(a.cursors, "phishing.templates.list", since)
	return mapPage(list, in.Query.Paging, func(w domain.Window) (domain.Slice[domain.Template], error) {
		return a.db.Templates(ctx, since, w)
	}, templateOf)
}
