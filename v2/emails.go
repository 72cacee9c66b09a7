package v2

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// SentEmail is the record of a mail that was sent to a user, as v2 shows it.
type SentEmail struct {
	SentAt      domain.Time        `json:"sent_at" doc:"When the mail was sent."`
	FromEmail   string             `json:"from_email" doc:"Address of the sender."`
	Subject     string             `json:"subject" doc:"Subject of the mail."`
	SendMethod  domain.SendMethod  `json:"send_method" doc:"How the mail was handed over."`
	MessageType domain.MessageType `json:"message_type" doc:"What the mail was for."`
}

func sentEmailOf(e domain.SentEmail) SentEmail {
	return SentEmail{
		SentAt: domain.At(e.SentAt), FromEmail: e.From, Subject: e.Subject, SendMethod: e.Method, MessageType: e.Type,
	}
}

func (a *API) declareEmails() {
	a.ListEmails = op.AddList(&a.Set, op.Meta{
		ID: "users.emails", Method: "GET", Path: "/users/:user_id/emails", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the mails that were sent to a user",
		Description: "Returns the mails that the service sent to a user, newest first: simulations, invites, " +
			"reminders and the like. Bodies are not kept.",
		Columns: []string{"sent_at", "subject", "message_type"},
	}, a.listEmails, sentEmailOf)
}

// MessageTypes is a comma-separated list of types of mail.
type MessageTypes = EnumList[domain.MessageType]

// EnumList is a comma-separated list of values of an enum, each of which it holds
// once. An empty list is as good as none.
type EnumList[E enum] []E

// enum is a string that has one of a number of values.
type enum interface {
	~string
	Values() []string
}

// MaxItems is how many items the list may hold.
func (*EnumList[E]) MaxItems() int { return 50 }

// JSONSchema says what the list looks like, for the document.
func (EnumList[E]) JSONSchema() string { return `{"type":"string"}` }

// UnmarshalText reads the list.
func (l *EnumList[E]) UnmarshalText(text []byte) error {
	*l = nil
	for item := range strings.SplitSeq(string(text), ",") {
		value := E(strings.TrimSpace(item))
		switch {
		case value == "" || slices.Contains(*l, value):
		case slices.Contains(value.Values(), string(value)):
			*l = append(*l, value)
		default:
			return errors.New("must be a list of " + strings.Join(value.Values(), ", "))
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

// ListEmails asks for a page of the mails that were sent to a user, newest
// first.
type ListEmails struct {
	Path  userPath
	Query struct {
		op.Paging
		MessageTypes *MessageTypes `query:"message_types" doc:"Only mails of these types, comma-separated: training-invite, phishing, phish-reminder, certificate, monthly-report, welcome, policy-reminder, admin-invite, exposure-notice, training-reminder."`
		Since        *domain.Time  `query:"since" doc:"Only mails sent at or after this time."`
		Until        *domain.Time  `query:"until" doc:"Only mails sent before this time."`
	}
}

func (a *API) listEmails(
	ctx context.Context, in *ListEmails, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	within, err := period(in.Query.Since, in.Query.Until)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}
	filter := domain.EmailFilter{Period: within}
	if in.Query.MessageTypes != nil {
		filter.Types = *in.Query.MessageTypes
	}
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}
	return u.SentEmails(ctx, filter, w)
}

// period is the stretch of time between two bounds, either of which may be nil.
func period(since, until *domain.Time) (domain.Period, error) {
	p := domain.Period{Since: bound(since), Until: bound(until)}
	if p.Since != nil && p.Until != nil && !p.Since.Before(*p.Until) {
		return p, domain.ErrInvalid("since", "must be before until")
	}
	return p, nil
}

// bound is a time that bounds a list; nil for none.
func bound(t *domain.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
