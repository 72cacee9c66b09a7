package v1compat

import (
	"net/http"
	"strings"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// MessageType is the purpose of an email, limited to the types of v1.
type MessageType string

// Values lists the types of v1.
func (MessageType) Values() []string {
	return []string{
		string(domain.TrainingInvite), string(domain.PhishingMail), string(domain.PhishReminder),
		string(domain.CertificateMail), string(domain.MonthlyReportMail),
	}
}

// SentEmail is v1's record of an email.
type SentEmail struct {
	MessageInfimaID UUID[domain.MessageKind] `json:"message_infima_id" doc:"UUID of the email."`
	UserInfimaID    UUID[domain.UserKind]    `json:"user_infima_id" doc:"UUID of the user to whom the email was sent."`
	EventTime       Time                     `json:"event_time" doc:"When the email was sent."`
	FromEmail       string                   `json:"from_email" doc:"Email address of the sender."`
	Subject         string                   `json:"subject" doc:"Subject of the email."`
	SendMethod      domain.SendMethod        `json:"send_method" doc:"How the email was sent."`
	MessageType     MessageType              `json:"message_type" doc:"Purpose of the email."`
}

// upTo1000From100 is the window of sent emails: 100 rows by default, up to 1000.
type upTo1000From100 struct {
	Limit integer `query:"limit" default:"100" doc:"Number of items to return, from 1 to 1000. Values outside this range are set to the nearest allowed value."`
	window
}

func (w upTo1000From100) page() pageRequest { return w.upTo(1000, w.Limit) }

type listSentEmails struct {
	Query struct{ upTo1000From100 }
	Body  struct {
		UserInfimaID *UUID[domain.UserKind] `json:"user_infima_id,omitzero" doc:"UUID of the user. This field takes precedence over email_address; one of the two fields is required."`
		EmailAddress string                 `json:"email_address,omitzero" doc:"Email address of one or more users. Ignored if user_infima_id is given."`
		MessageTypes []choice[MessageType]  `json:"message_types,omitzero" validate:"max=50" doc:"Only emails of these types. If omitted or empty, emails of all types are returned."`
		StartTime    *domain.Time           `json:"start_time,omitzero" doc:"Start of the 30-day period to return. Default: 30 days ago."`
	}
}

// addEmailRoutes adds the route of sent emails.
func (f *Facade) addEmailRoutes() {
	addList(f, Meta{
		ID: "sentemails", Method: "POST", Path: "/sentemails", Status: http.StatusOK,
		Summary: "Retrieve Sent Emails",
		Description: "Returns the emails sent in a 30-day period to a user, or to all accessible users who have the given email " +
			"address, newest first. Send `limit` and `offset` in the query string.",
		Fails:   []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
		Fields:  map[string]string{"user_id": "user_infima_id"},
		GivenUp: []string{"message_infima_id"}, Successor: api.ListEmails,
	}, api.SentEmails, fillListSentEmails, toSentEmail, nextListSentEmails)
}

// fillListSentEmails uses the address only if no user is named, and asks for all types of v1 if none is named.
func fillListSentEmails(in *listSentEmails, out *api.SentEmailsInput) {
	if in.Body.UserInfimaID != nil {
		out.Body.UserID = &in.Body.UserInfimaID.ID
	} else {
		out.Body.Email = strings.TrimSpace(in.Body.EmailAddress)
	}
	out.Body.Start = in.Body.StartTime
	for _, t := range in.Body.MessageTypes {
		out.Body.MessageTypes = append(out.Body.MessageTypes, domain.MessageType(t))
	}
	if len(out.Body.MessageTypes) == 0 {
		for _, t := range MessageType("").Values() {
			out.Body.MessageTypes = append(out.Body.MessageTypes, domain.MessageType(t))
		}
	}
}

// nextListSentEmails returns nil unless one user is named: v2 does not list the emails of several.
func nextListSentEmails(in *api.SentEmailsInput, _ *op.Page[api.AddressedEmail]) any {
	if in.User.IsZero() {
		return nil
	}
	out := &api.ListEmailsInput{}
	out.Path.UserID = in.User
	out.Query.MessageTypes = new(api.MessageTypes(in.Body.MessageTypes))
	out.Query.Since, out.Query.Until = in.Since, in.Until
	return out
}

func toSentEmail(e api.AddressedEmail) SentEmail {
	return SentEmail{
		MessageInfimaID: uuidOf(e.MessageID), UserInfimaID: uuidOf(e.UserID), EventTime: at(e.SentAt),
		FromEmail: e.FromEmail, Subject: e.Subject, SendMethod: e.SendMethod, MessageType: MessageType(e.MessageType),
	}
}
