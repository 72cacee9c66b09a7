package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// ReportedEmail is a real mail that a user reported, as v2 shows it.
type ReportedEmail struct {
	ID             domain.ReportedEmailID `json:"id" doc:"Opaque id of the report."`
	UserID         domain.UserID          `json:"user_id" doc:"The user who reported the mail."`
	ClientID       domain.ClientID        `json:"client_id" doc:"The user's client."`
	ReportedAt     domain.Time            `json:"reported_at" doc:"When the user reported the mail."`
	Subject        string                 `json:"subject" doc:"Subject of the mail; may be empty."`
	Sender         string                 `json:"sender" doc:"Sender as the mail names it: mostly an address."`
	Classification domain.EmailClass      `json:"classification" doc:"What triage made of the mail; pending before it. Draft: it depends on the mailbox integration."`
	ClassifiedAt   *domain.Time           `json:"classified_at" doc:"When the mail was classified. Null while it is pending."`
	MailboxAction  *domain.MailboxAction  `json:"mailbox_action" doc:"What the mailbox integration did with the mail. Null where that is not known. Draft."`
	UpdatedAt      domain.Time            `json:"updated_at" since:"2.5" doc:"When the email was reported or last classified, as the service learned of it: what updated_since goes by."`
}

// ListReportedEmails lists the real mails that users reported.
var ListReportedEmails = op.DeclareList[ListReportedEmailsInput, ReportedEmail](op.Meta{
	ID: "phishing.reported.list", Method: "GET", Path: "/clients/:client_id/phishing/reported", Scope: domain.Read, Since: op.V2_2, Status: 200,
	Summary: "List the real mails that a client's users reported",
	Description: "Returns the real mails that users flagged with the report button, in the order of reporting, " +
		"with what triage made of them. A mail that several users reported is listed once for each.",
	Columns: []string{"id", "user_id", "reported_at", "subject", "classification"},
})

// ListReportedEmailsInput asks for a page of the real mails that a client's users reported, by the time of the report.
// A mail that several users reported is listed once for each of them.
type ListReportedEmailsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Since          *domain.Time      `query:"since" doc:"Only mails reported at or after this time."`
		Until          *domain.Time      `query:"until" doc:"Only mails reported before this time."`
		Classification domain.EmailClass `query:"classification" validate:"omitempty,enum" doc:"Only mails that are classified so now."`
		UpdatedSince   *domain.Time      `query:"updated_since" doc:"Only mails that were reported or classified at or after this time."`
	}
}
