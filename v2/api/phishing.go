package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// PhishingResult is a simulated email to one user and its outcome, as v2 shows it.
type PhishingResult struct {
	ResultID               domain.ResultID         `json:"result_id" doc:"Opaque ID of the simulated email."`
	UserID                 domain.UserID           `json:"user_id" doc:"The recipient."`
	TemplateID             domain.TemplateID       `json:"template_id" doc:"The template of the email."`
	Status                 domain.ResultStatus     `json:"status" doc:"Status of the email, which only moves forward. failed: the email will never be sent."`
	Reported               bool                    `json:"reported" doc:"Whether the user reported the email."`
	Automated              bool                    `json:"automated" doc:"Whether an email scanner opened or clicked the email. Scanner activity does not affect statuses, times, rates or scores."`
	AutomatedReason        *domain.AutomatedReason `json:"automated_reason" doc:"How the scanner was recognized: it sent a HEAD request (head), announced a prefetch (prefetch), came from a listed network (network), or reacted too fast (fast). Null if no scanner was recognized."`
	Failure                *string                 `json:"failure" doc:"Why the email will never be sent; cancelled if a caller cancelled the email. Null unless status is failed."`
	FailedAt               *domain.Time            `json:"failed_at" doc:"When the service stopped trying to send the email. Null unless status is failed."`
	Label                  *string                 `json:"label" since:"2.5" doc:"Label of the email, spelled as in the client's first send with this label. Null if the email has no label."`
	SendAt                 domain.Time             `json:"send_at" doc:"When the email is scheduled to be sent."`
	SentAt                 *domain.Time            `json:"sent_at" doc:"When the email was sent. Null if the email has not been sent."`
	OpenedAt               *domain.Time            `json:"opened_at" doc:"When the user opened the email. Null if not opened yet."`
	ClickedAt              *domain.Time            `json:"clicked_at" doc:"When the user clicked the link. Null if not clicked yet."`
	ReportedAt             *domain.Time            `json:"reported_at" doc:"When the user reported the email. Null if not reported yet."`
	CredentialsSubmittedAt *domain.Time            `json:"credentials_submitted_at" doc:"When the user submitted credentials, which are never stored. Null if none were submitted."`
	AttachmentOpenedAt     *domain.Time            `json:"attachment_opened_at" doc:"When the user opened the attachment. Null if not opened yet."`
	UpdatedAt              domain.Time             `json:"updated_at" doc:"When the result last changed."`
}

// PhishingSummary counts a client's simulated emails, as v2 shows it.
type PhishingSummary struct {
	Days30         PhishingCounts `json:"30d" doc:"Emails sent in the last 30 days, including today (UTC)."`
	Days90         PhishingCounts `json:"90d" doc:"Emails sent in the last 90 days, including today (UTC)."`
	Days365        PhishingCounts `json:"365d" doc:"Emails sent in the last 365 days, including today (UTC)."`
	Total          PhishingCounts `json:"total" doc:"All emails ever sent."`
	RepeatClickers int            `json:"repeat_clickers" doc:"Number of users who fell for two or more emails sent in the last 365 days."`

	// Client is the client whose budget the call counts against.
	Client domain.ClientID `json:"-"`
}

// BudgetClient returns the client whose budget the call counts against.
func (s PhishingSummary) BudgetClient() domain.ClientID { return s.Client }

// PhishingCounts counts simulated emails by outcome, with the click and report rates.
type PhishingCounts struct {
	Sent                 int     `json:"sent" doc:"Number of emails sent."`
	Opened               int     `json:"opened" doc:"Number of emails opened, including all emails that users fell for."`
	Clicked              int     `json:"clicked" doc:"Number of emails that users fell for by clicking the link, opening the attachment or submitting credentials."`
	Reported             int     `json:"reported" doc:"Number of emails reported."`
	CredentialsSubmitted int     `json:"credentials_submitted" doc:"Number of emails that led to submitted credentials."`
	AttachmentsOpened    int     `json:"attachments_opened" doc:"Number of emails whose attachment was opened."`
	ClickRate            float64 `json:"click_rate" doc:"Percentage of sent emails that were clicked, from 0 to 100."`
	ReportRate           float64 `json:"report_rate" doc:"Percentage of sent emails that were reported, from 0 to 100."`
}

// PhishingLabel is a label of a client's simulated emails with its counts, as v2 shows it.
type PhishingLabel struct {
	Label                string      `json:"label" doc:"The label, spelled as in the client's first send with this label."`
	Sends                int         `json:"sends" doc:"Number of emails with the label, excluding cancelled emails."`
	FirstSendAt          domain.Time `json:"first_send_at" doc:"Earliest send_at of the emails with the label, ignoring cancelled emails unless all are cancelled."`
	LastSendAt           domain.Time `json:"last_send_at" doc:"Latest send_at of the emails with the label, ignoring cancelled emails unless all are cancelled."`
	Opened               int         `json:"opened" doc:"Number of emails opened, including all emails that users fell for."`
	Clicked              int         `json:"clicked" doc:"Number of emails that users fell for by clicking the link, opening the attachment or submitting credentials."`
	Reported             int         `json:"reported" doc:"Number of emails reported."`
	CredentialsSubmitted int         `json:"credentials_submitted" doc:"Number of emails that led to submitted credentials."`
	AttachmentsOpened    int         `json:"attachments_opened" doc:"Number of emails whose attachment was opened."`
	ClickRate            float64     `json:"click_rate" doc:"Percentage of sent emails that were clicked, from 0 to 100."`
	ReportRate           float64     `json:"report_rate" doc:"Percentage of sent emails that were reported, from 0 to 100."`
}

// PhishingTemplate is a simulated email of the catalog, as v2 shows it.
type PhishingTemplate struct {
	ID        domain.TemplateID `json:"id" doc:"Opaque ID of the template."`
	Name      string            `json:"name" doc:"The template's name."`
	Language  domain.Language   `json:"language" doc:"Language of the email."`
	Category  string            `json:"category" doc:"Category of the email. Clients enable templates by category."`
	Subject   string            `json:"subject" doc:"Subject of the email."`
	FromEmail string            `json:"from_email" doc:"Email address that the email appears to come from."`
	CreatedAt domain.Time       `json:"created_at" doc:"When the template was added."`
	UpdatedAt domain.Time       `json:"updated_at" since:"2.5" doc:"When the template was added or last changed. updated_since filters by this time."`
}

// The operations on the results and the templates of simulated emails.
var (
	ListPhishingResults = op.DeclareList[ListPhishingResultsInput, PhishingResult](op.Meta{
		ID: "phishing.results.list", Method: "GET", Path: "/clients/:client_id/phishing/results", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List phishing results",
		Description: "Returns the client's simulated emails and their outcomes, in order of creation. With `since` or `until`, the list is " +
			"sorted by sending time; with only `updated_since`, it is sorted by the time of the last change.",
		Columns: []string{"result_id", "user_id", "template_id", "status", "reported", "sent_at", "clicked_at"},
	})
	GetPhishingSummary = op.Declare[GetPhishingSummaryInput, PhishingSummary](op.Meta{
		ID: "phishing.summary", Method: "GET", Path: "/clients/:client_id/phishing/summary", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary: "Get a client's phishing summary",
		Description: "Returns counts by outcome, with click and report rates, for simulated emails sent in the last 30, 90 and 365 days " +
			"(UTC) and in total. Email scanner activity is not counted.",
	})
	ListPhishingLabels = op.DeclareList[ListPhishingLabelsInput, PhishingLabel](op.Meta{
		ID: "phishing.labels.list", Starred: true, Method: "GET", Path: "/clients/:client_id/phishing/labels", Scope: domain.Read, Since: op.V2_5, Status: 200,
		Summary: "List phishing labels",
		Description: "Returns the labels of the client's simulated emails, each with its number of emails by outcome, latest " +
			"`first_send_at` first. Email scanner activity is not counted.",
		Columns: []string{"label", "sends", "first_send_at", "last_send_at", "clicked", "reported", "click_rate", "report_rate"},
	})
	ListPhishingTemplates = op.DeclareList[ListPhishingTemplatesInput, PhishingTemplate](op.Meta{
		ID: "phishing.templates.list", Starred: true, Method: "GET", Path: "/phishing/templates", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List phishing templates",
		Description: "Returns the catalog of templates in order of creation, with the IDs to use as `template_id`. All clients share the catalog.",
		Columns:     []string{"id", "name", "language", "category", "subject"},
	})
)

// ListPhishingResultsInput asks for a page of a client's results. With since or until they are in the order of sending,
// , otherwise with updated_since in that of the last change, and otherwise in that of creation.
type ListPhishingResultsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UserID       string            `query:"user_id" validate:"max=500" doc:"Only results for this user."`
		ResultID     string            `query:"result_id" validate:"max=500" doc:"Only the result with this ID."`
		Status       *ResultStatuses   `query:"status" doc:"Only results that currently have one of these comma-separated statuses."`
		Label        string            `query:"label" since:"2.5" validate:"max=100,name" doc:"Only emails with this label, ignoring case."`
		Since        *domain.Time      `query:"since" doc:"Only emails sent at or after this time. The list is then sorted by sending time."`
		Until        *domain.Time      `query:"until" doc:"Only emails sent before this time. The list is then sorted by sending time."`
		UpdatedSince *domain.Time      `query:"updated_since" doc:"Only results that changed at or after this time."`
		Sort         domain.ResultSort `query:"sort" since:"2.5" validate:"omitempty,enum" doc:"Order of the list, regardless of filters: send_at, or -send_at for the newest first. If omitted, the filters determine the order."`
	}
}

// ResultStatuses is a comma-separated list of states.
type ResultStatuses = EnumList[domain.ResultStatus]

// GetPhishingSummaryInput asks for the counts of a client's simulated emails.
type GetPhishingSummaryInput struct {
	Path  ClientPath
	Query struct {
		Label string `query:"label" since:"2.5" validate:"max=100,name" doc:"Count only emails with this label, ignoring case."`
	}
}

// ListPhishingLabelsInput asks for a page of the labels of a client's simulated emails.
type ListPhishingLabelsInput struct {
	Path  ClientPath
	Query struct{ op.Paging }
}

// ListPhishingTemplatesInput asks for a page of the catalog, in order of creation.
type ListPhishingTemplatesInput struct {
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only templates that were added or changed at or after this time."`
	}
}

// PhishingSent is the response to SendPhishing.
type PhishingSent struct {
	Sends []PhishingSend `json:"sends" doc:"The emails, one for each user, in the order of the request."`
}

// PhishingSend is a simulated email that will be sent.
type PhishingSend struct {
	UserID     domain.UserID     `json:"user_id" doc:"The recipient."`
	ResultID   *domain.ResultID  `json:"result_id" doc:"Opaque ID of the email in the client's phishing results. Null in a dry run."`
	TemplateID domain.TemplateID `json:"template_id" doc:"The template of the email."`
	SendAt     domain.Time       `json:"send_at" doc:"When the email will be sent."`
}

// The operations on sends.
var (
	SendPhishing = op.Declare[SendPhishingInput, PhishingSent](op.Meta{
		ID: "phishing.send", Method: "POST", Path: "/clients/:client_id/phishing/sends", Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Send phishing simulations",
		Description: "Schedules one simulated email to each of up to 100 active users; if any user is inactive or unknown, the operation returns " +
			"400 and schedules none. To track an email, find its `result_id` in the client's phishing results.",
	})
	CancelSend = op.Declare[CancelSendInput, op.NoContent](op.Meta{
		ID: "phishing.sends.cancel", Tag: "phishing", Starred: true, Method: "DELETE", Path: "/clients/:client_id/phishing/sends/:result_id",
		Scope: domain.Write, Since: op.V2_4, Status: 204,
		Summary: "Cancel a scheduled simulation",
		Description: "Cancels an email not yet sent to the mail server and marks its result as `failed` with the failure " +
			"`cancelled`. Cancelling the email again changes nothing; if the email was sent, is being sent or has failed, the operation returns 409.",
		Fails: []domain.Code{domain.Conflict},
	})
	CancelSends = op.Declare[CancelSendsInput, SendsCancelled](op.Meta{
		ID: "phishing.sends.cancel_many", Tag: "phishing", Starred: true, Method: "POST", Path: "/clients/:client_id/phishing/sends/cancel",
		Scope: domain.Write, Since: op.V2_4, Status: 200,
		Summary: "Cancel scheduled simulations",
		Description: "Cancels the specified emails not yet sent to the mail server and returns the emails that could not be cancelled. " +
			"If any ID does not identify one of the client's simulated emails, no emails are cancelled.",
	})
)

// SendPhishingInput asks for a simulated email to each of several users.
type SendPhishingInput struct {
	Path ClientPath
	Body struct {
		UserIDs    []domain.UserID                    `json:"user_ids" validate:"required,min=1,max=100" doc:"Active users of the client. A repeated ID counts once."`
		TemplateID domain.Optional[domain.TemplateID] `json:"template_id,omitzero" doc:"The template for all users. If omitted, each user receives a template in their language from the client's enabled categories, preferably one not yet sent to them, otherwise the one sent longest ago."`
		SendAt     domain.Optional[domain.Time]       `json:"send_at,omitzero" doc:"When to send the emails. If omitted or in the past, the emails are sent immediately."`
		Label      domain.Optional[string]            `json:"label,omitzero" since:"2.5" validate:"omitnil,filled,max=100,name" doc:"A name that groups related sends, such as all sends in a campaign. Labels are case-insensitive."`
		DryRun     bool                               `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Whether to preview the emails instead of scheduling them. Previewed emails have no result_id."`
	}
}

// SendPath is the part of a path that contains the ID of a client's simulated email.
type SendPath struct {
	ClientPath
	ResultID domain.ResultID `path:"result_id" doc:"Opaque ID of the simulated email. Take it from the response to your send request or from the client's phishing results."`
}

// CancelSendInput asks to cancel a simulated email.
type CancelSendInput struct{ Path SendPath }

// CancelSendsInput asks to cancel simulated emails.
type CancelSendsInput struct {
	Path ClientPath
	Body struct {
		ResultIDs []domain.ResultID       `json:"result_ids,omitzero" optional:"2.5" validate:"omitnil,min=1,max=500" doc:"The simulated emails to cancel. A repeated ID counts once."`
		Label     domain.Optional[string] `json:"label,omitzero" since:"2.5" validate:"omitnil,filled,max=100,name" doc:"The label of the simulated emails to cancel, instead of result_ids. One request cancels at most 50,000 emails. An unknown label cancels no emails."`
	}

	// Done is the last of the emails of the label that the step before the transaction has processed, by their IDs.
	Done domain.ResultID
}

// SendsCancelled is the response to CancelSends.
type SendsCancelled struct {
	CancelledCount    int               `json:"cancelled_count" doc:"Number of cancelled emails, including emails that were already cancelled."`
	NotCancelledCount int               `json:"not_cancelled_count" since:"2.5" doc:"Number of emails that were not cancelled. If you cancel by label, the number includes emails beyond the limit of 50,000 per request; repeat the request to cancel them. In this case, not_cancelled contains at most 500 emails, sorted by send_at."`
	NotCancelled      []UncancelledSend `json:"not_cancelled" doc:"The emails that could not be cancelled, in the order of result_ids."`
}

// UncancelledSend is a simulated email that could not be cancelled.
type UncancelledSend struct {
	ResultID domain.ResultID     `json:"result_id" doc:"Opaque ID of the simulated email."`
	Status   domain.ResultStatus `json:"status" doc:"Status of the result. scheduled: the email is being sent to the mail server or may have been sent."`
}
