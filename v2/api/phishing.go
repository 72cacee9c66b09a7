package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// PhishingResult is a simulated mail to one user and its outcome, as v2 shows it.
type PhishingResult struct {
	ResultID               domain.ResultID         `json:"result_id" doc:"Opaque id of the simulated mail to this user."`
	UserID                 domain.UserID           `json:"user_id" doc:"The user whom the mail is for."`
	TemplateID             domain.TemplateID       `json:"template_id" doc:"The template of the mail."`
	Status                 domain.ResultStatus     `json:"status" doc:"How far people got with the mail. It only moves forward. failed: the mail will never be sent."`
	Reported               bool                    `json:"reported" doc:"Whether the user reported the mail."`
	Automated              bool                    `json:"automated" doc:"Whether a mail scanner opened or clicked the mail, too. That moves no status, no time, no rate and no score."`
	AutomatedReason        *domain.AutomatedReason `json:"automated_reason" doc:"How the scanner was recognized: it requested only the head of a page (head), announced a prefetch (prefetch), came from a listed network (network), or was too fast (fast). Null if no scanner was recognized."`
	Failure                *string                 `json:"failure" doc:"Why the mail will never be sent; cancelled where a caller cancelled it. Null unless the status is failed."`
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

// PhishingSummary counts a client's simulated mails, as v2 shows it.
type PhishingSummary struct {
	Days30         PhishingCounts `json:"30d" doc:"Mails sent in the last 30 days, today (UTC) included."`
	Days90         PhishingCounts `json:"90d" doc:"Mails sent in the last 90 days, today (UTC) included."`
	Days365        PhishingCounts `json:"365d" doc:"Mails sent in the last 365 days, today (UTC) included."`
	Total          PhishingCounts `json:"total" doc:"All mails that were ever sent."`
	RepeatClickers int            `json:"repeat_clickers" doc:"Number of users who fell for two or more mails of the last 365 days."`

	// Client is the client whose budget the call counts against.
	Client domain.ClientID `json:"-"`
}

// BudgetClient returns the client whose budget the call counts against.
func (s PhishingSummary) BudgetClient() domain.ClientID { return s.Client }

// PhishingCounts counts simulated mails by outcome, with the click and report rates.
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

// PhishingTemplate is a simulated mail of the catalogue, as v2 shows it.
type PhishingTemplate struct {
	ID        domain.TemplateID `json:"id" doc:"Opaque id of the template."`
	Name      string            `json:"name" doc:"The template's name."`
	Language  domain.Language   `json:"language" doc:"Language of the mail."`
	Category  string            `json:"category" doc:"Category of the mail, by which clients enable templates."`
	Subject   string            `json:"subject" doc:"Subject of the mail."`
	FromEmail string            `json:"from_email" doc:"Address that the mail claims to come from."`
	CreatedAt domain.Time       `json:"created_at" doc:"When the template was added."`
	UpdatedAt domain.Time       `json:"updated_at" since:"2.5" doc:"When the template was added or last changed: what updated_since goes by."`
}

// The operations on the results and the templates of simulated mails.
var (
	ListPhishingResults = op.DeclareList[ListPhishingResultsInput, PhishingResult](op.Meta{
		ID: "phishing.results.list", Method: "GET", Path: "/clients/:client_id/phishing/results", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List a client's simulated mails and what became of them",
		Description: "Returns the simulated mails to the users of a client and how far each got, in order of creation. " +
			"With `since` or `until` the list is in order of sending, otherwise with `updated_since` in order of the last change.",
		Columns: []string{"result_id", "user_id", "template_id", "status", "reported", "sent_at", "clicked_at"},
	})
	GetPhishingSummary = op.Declare[GetPhishingSummaryInput, PhishingSummary](op.Meta{
		ID: "phishing.summary", Method: "GET", Path: "/clients/:client_id/phishing/summary", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary: "Count a client's simulated mails",
		Description: "Returns counts and rates for 30, 90 and 365 days and in total, by the day (UTC) of sending. " +
			"What mail scanners did is not counted.",
	})
	ListPhishingTemplates = op.DeclareList[ListPhishingTemplatesInput, PhishingTemplate](op.Meta{
		ID: "phishing.templates.list", Starred: true, Method: "GET", Path: "/phishing/templates", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the catalogue of simulated mails",
		Description: "Returns the templates that `template_id` stands for, by their creation. All clients share them.",
		Columns:     []string{"id", "name", "language", "category", "subject"},
	})
)

// ListPhishingResultsInput asks for a page of a client's results. With since or until they are in the order of sending,
// or else with updated_since in that of the last change, and otherwise in that of creation.
type ListPhishingResultsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UserID       string          `query:"user_id" validate:"max=500" doc:"Only results of this user."`
		ResultID     string          `query:"result_id" validate:"max=500" doc:"Only this result."`
		Status       *ResultStatuses `query:"status" doc:"Only results that are in one of these states now, comma-separated."`
		Since        *domain.Time    `query:"since" doc:"Only mails sent at or after this time. The list is then in the order of sending."`
		Until        *domain.Time    `query:"until" doc:"Only mails sent before this time. The list is then in the order of sending."`
		UpdatedSince *domain.Time    `query:"updated_since" doc:"Only results that changed at or after this time."`
	}
}

// ResultStatuses is a comma-separated list of states.
type ResultStatuses = EnumList[domain.ResultStatus]

// GetPhishingSummaryInput asks for the counts of a client's simulated mails.
type GetPhishingSummaryInput struct{ Path ClientPath }

// ListPhishingTemplatesInput asks for a page of the catalogue, by creation.
type ListPhishingTemplatesInput struct {
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only templates that were added or changed at or after this time."`
	}
}

// PhishingSent is the answer to SendPhishing.
type PhishingSent struct {
	Sends []PhishingSend `json:"sends" doc:"The mails, one for each user, in the order of the request."`
}

// PhishingSend is a simulated mail that will be sent.
type PhishingSend struct {
	UserID     domain.UserID     `json:"user_id" doc:"The user whom the mail is for."`
	ResultID   *domain.ResultID  `json:"result_id" doc:"Opaque id of the result. Follow it in the client's phishing results. Null in a dry run."`
	TemplateID domain.TemplateID `json:"template_id" doc:"The template of the mail."`
	SendAt     domain.Time       `json:"send_at" doc:"When the mail is sent."`
}

// The operations on sends.
var (
	SendPhishing = op.Declare[SendPhishingInput, PhishingSent](op.Meta{
		ID: "phishing.send", Method: "POST", Path: "/clients/:client_id/phishing/sends", Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Send simulated phishing mails to users of a client",
		Description: "Schedules a simulated mail to each user, for all of them or for none; an inactive user is refused. " +
			"Each mail has a `result_id` to follow in the client's phishing results.",
	})
	CancelSend = op.Declare[CancelSendInput, op.NoContent](op.Meta{
		ID: "phishing.sends.cancel", Tag: "phishing", Starred: true, Method: "DELETE", Path: "/clients/:client_id/phishing/sends/:result_id",
		Scope: domain.Write, Since: op.V2_4, Status: 204,
		Summary: "Cancel a scheduled simulated mail",
		Description: "Cancels a mail that was not handed over yet: its result is `failed`, with the failure `cancelled`. " +
			"One that was cancelled before stays so; one that was handed over, is being handed over, or failed is a conflict.",
		Fails: []domain.Code{domain.Conflict},
	})
	CancelSends = op.Declare[CancelSendsInput, SendsCancelled](op.Meta{
		ID: "phishing.sends.cancel_many", Tag: "phishing", Starred: true, Method: "POST", Path: "/clients/:client_id/phishing/sends/cancel",
		Scope: domain.Write, Since: op.V2_4, Status: 200,
		Summary: "Cancel scheduled simulated mails of a client",
		Description: "Cancels those of the mails that were not handed over yet, and lists the others. Where an id is of no " +
			"simulated mail of the client, none is cancelled.",
	})
)

// SendPhishingInput asks for a simulated mail to each of several users.
type SendPhishingInput struct {
	Path ClientPath
	Body struct {
		UserIDs    []domain.UserID                    `json:"user_ids" validate:"required,min=1,max=100" doc:"Active users of the client. A user who is named twice is sent one mail."`
		TemplateID domain.Optional[domain.TemplateID] `json:"template_id,omitzero" doc:"The template for all users. Left out, each user is sent one that they have not seen, in their language and of the client's enabled categories."`
		SendAt     domain.Optional[domain.Time]       `json:"send_at,omitzero" doc:"When to send. Left out or past, at once."`
		DryRun     bool                               `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Answer as if the mails were scheduled, without their result_id, and change nothing."`
	}
}

// SendPath is the part of a path that names a client's simulated mail.
type SendPath struct {
	ClientPath
	ResultID domain.ResultID `path:"result_id" doc:"Opaque id of the simulated mail, from the answer to its sending or the client's phishing results."`
}

// CancelSendInput asks to cancel a simulated mail.
type CancelSendInput struct{ Path SendPath }

// CancelSendsInput asks to cancel simulated mails.
type CancelSendsInput struct {
	Path ClientPath
	Body struct {
		ResultIDs []domain.ResultID `json:"result_ids" validate:"required,min=1,max=500" doc:"The simulated mails to cancel. One that is named twice counts once."`
	}
}

// SendsCancelled is the answer to CancelSends.
type SendsCancelled struct {
	CancelledCount int               `json:"cancelled_count" doc:"Number of mails that are cancelled, those that were cancelled before among them."`
	NotCancelled   []UncancelledSend `json:"not_cancelled" doc:"The mails that are not cancelled, in the order of the request."`
}

// UncancelledSend is a simulated mail that could not be cancelled.
type UncancelledSend struct {
	ResultID domain.ResultID     `json:"result_id" doc:"Opaque id of the simulated mail."`
	Status   domain.ResultStatus `json:"status" doc:"The status of its result. scheduled: it is being handed over, or may have been."`
}
