package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// ReportedEmail is an email that a user reported and that is not a simulation, as v2 shows it.
type ReportedEmail struct {
	ID             domain.ReportedEmailID `json:"id" doc:"Opaque ID of the reported email."`
	UserID         domain.UserID          `json:"user_id" doc:"The user who reported the email."`
	ClientID       domain.ClientID        `json:"client_id" doc:"The user's client."`
	ReportedAt     domain.Time            `json:"reported_at" doc:"When the user reported the email."`
	Subject        string                 `json:"subject" doc:"Subject of the email. Can be empty."`
	Sender         string                 `json:"sender" doc:"Sender as stated in the email, usually an email address."`
	Classification domain.EmailClass      `json:"classification" doc:"Triage result; pending until the email is triaged. This field is a draft and depends on the mailbox integration."`
	ClassifiedAt   *domain.Time           `json:"classified_at" doc:"When the email was classified. Null while classification is pending."`
	MailboxAction  *domain.MailboxAction  `json:"mailbox_action" doc:"What the mailbox integration did with the email. Null if not known. This field is a draft."`
	UpdatedAt      domain.Time            `json:"updated_at" since:"2.5" doc:"When the service received the report or the latest classification. updated_since filters by this time."`
}

// ListReportedEmails lists the emails that users reported.
var ListReportedEmails = op.DeclareList[ListReportedEmailsInput, ReportedEmail](op.Meta{
	ID: "phishing.reported.list", Method: "GET", Path: "/clients/:client_id/phishing/reported", Scope: domain.Read, Since: op.V2_2, Status: 200,
	Summary: "List reported emails",
	Description: "Returns the emails (except simulations) that users reported with the report button, with triage results, " +
		"in the order in which they were reported. An email reported by several users is listed once for each user.",
	Columns: []string{"id", "user_id", "reported_at", "subject", "classification"},
})

// ListReportedEmailsInput asks for a page of the emails that a client's users reported, by the time of the report.
// An email that several users reported is listed once for each of them.
type ListReportedEmailsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Since          *domain.Time             `query:"since" doc:"Only emails reported at or after this time."`
		Until          *domain.Time             `query:"until" doc:"Only emails reported before this time."`
		Classification domain.EmailClass        `query:"classification" validate:"omitempty,enum" doc:"Only emails that currently have this classification."`
		UpdatedSince   *domain.Time             `query:"updated_since" doc:"Only emails that were reported or classified at or after this time."`
		Sort           domain.ReportedEmailSort `query:"sort" since:"2.5" validate:"omitempty,enum" doc:"Order of the list: reported_at (default), or -reported_at to list the newest reports first."`
	}
}
