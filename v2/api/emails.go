package api

import (
	"errors"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// SentEmail is the record of an email that was sent to a user, as v2 shows it.
type SentEmail struct {
	SentAt      domain.Time        `json:"sent_at" doc:"When the email was sent."`
	FromEmail   string             `json:"from_email" doc:"Email address of the sender."`
	Subject     string             `json:"subject" doc:"Subject of the email."`
	SendMethod  domain.SendMethod  `json:"send_method" doc:"How the email was sent."`
	MessageType domain.MessageType `json:"message_type" doc:"Purpose of the email."`
}

// ListEmails lists the emails that were sent to a user.
var ListEmails = op.DeclareList[ListEmailsInput, SentEmail](op.Meta{
	ID: "users.emails", Method: "GET", Path: "/users/:user_id/emails", Scope: domain.Read, Since: op.V2_1, Status: 200,
	Summary: "List emails sent to a user",
	Description: "Returns the emails that the service sent to the user, such as simulations, invites and " +
		"reminders, newest first. The service does not store email bodies.",
	Columns: []string{"sent_at", "subject", "message_type"},
})

// MessageTypes is a comma-separated list of types of email.
type MessageTypes = EnumList[domain.MessageType]

// EnumList is a comma-separated list of distinct values of an enum. An empty list counts as absent.
type EnumList[E enum] []E

// enum is a string type with a fixed set of values.
type enum interface {
	~string
	Values() []string
}

// MaxItems returns the maximum number of items.
func (*EnumList[E]) MaxItems() int { return 50 }

// JSONSchema returns the schema of the list, for the document. It names the values.
func (EnumList[E]) JSONSchema() string {
	return `{"type":"string","description":"Known values: ` + strings.Join(E("").Values(), ", ") + `."}`
}

// UnmarshalText reads the list; it drops blank items and repeated values.
func (l *EnumList[E]) UnmarshalText(text []byte) error {
	*l = nil
	for item := range strings.SplitSeq(string(text), ",") {
		value := E(strings.TrimSpace(item))
		switch {
		case value == "" || slices.Contains(*l, value):
		case slices.Contains(value.Values(), string(value)):
			*l = append(*l, value)
		default:
			return errors.New("must be a list of these values, separated by commas: " + strings.Join(value.Values(), ", "))
		}
	}
	return nil
}

// AppendText appends the list as UnmarshalText reads it. It never fails.
func (l *EnumList[E]) AppendText(b []byte) ([]byte, error) {
	for i, value := range *l {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, value...)
	}
	return b, nil
}

// ListEmailsInput asks for a page of the emails that were sent to a user, newest first.
type ListEmailsInput struct {
	Path  UserPath
	Query struct {
		op.Paging
		MessageTypes *MessageTypes `query:"message_types" doc:"Only emails of these types, comma-separated."`
		Since        *domain.Time  `query:"since" doc:"Only emails sent at or after this time."`
		Until        *domain.Time  `query:"until" doc:"Only emails sent before this time."`
	}
}
