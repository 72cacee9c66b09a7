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
	SentAt      op.Time            `json:"sent_at"`
	FromEmail   string             `json:"from_email"`
	Subject     string             `json:"subject"`
	SendMethod  domain.SendMethod  `json:"send_method"`
	MessageType domain.MessageType `json:"message_type"`

	// What v1 shows of a mail and v2 does not: the ids of the mail, and of the
	// user, of whom there may be several there.
	MessageID domain.MessageID `json:"-"`
	UserID    domain.UserID    `json:"-"`
}

func sentEmailOf(e domain.SentEmail) SentEmail {
	return SentEmail{
		SentAt: op.At(e.SentAt), FromEmail: e.From, Subject: e.Subject, SendMethod: e.Method, MessageType: e.Type,
		MessageID: e.ID, UserID: e.User,
	}
}

func (a *API) declareEmails() {
	a.ListEmails = op.Add(&a.Set, op.Meta{
		ID: "users.emails", Method: "GET", Path: "/users/:user_id/emails", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the mails that were sent to a user",
	}, a.listEmails)
}

// MessageTypes is a comma-separated list of types of mail.
type MessageTypes []domain.MessageType

// MaxItems is how many items the list may hold.
func (*MessageTypes) MaxItems() int { return 50 }

// JSONSchema says what the list looks like, for the document.
func (MessageTypes) JSONSchema() string { return `{"type":"string"}` }

// UnmarshalText reads the list, each type once; an empty one is as good as none.
func (m *MessageTypes) UnmarshalText(text []byte) error {
	*m = nil
	for item := range strings.SplitSeq(string(text), ",") {
		kind := domain.MessageType(strings.TrimSpace(item))
		switch {
		case kind == "" || slices.Contains(*m, kind):
		case op.EnumHas(kind, string(kind)):
			*m = append(*m, kind)
		default:
			return errors.New("must be a list of " + strings.Join(kind.Values(), ", "))
		}
	}
	return nil
}

// ListEmails asks for a page of the mails that were sent to a user, newest
// first.
type ListEmails struct {
	Path  userPath
	Query struct {
		op.Paging
		MessageTypes *MessageTypes `query:"message_types" doc:"Only mails of these types, comma-separated: training-invite, phishing, phish-reminder, certificate, monthly-report, welcome, policy-reminder, admin-invite."`
		Since        *op.Time      `query:"since" doc:"Only mails sent at or after this time."`
		Until        *op.Time      `query:"until" doc:"Only mails sent before this time."`
	}
	// To and LastDays are inputs of other surfaces in this process. To stands
	// in for the path. LastDays, where positive, stands in for Since, and moves
	// with the clock.
	To       *Addressee
	LastDays int
}

// Addressee finds whom mails were sent to: by the user's id, else by the email,
// which users of several clients may have. A user who exists beyond the
// caller's reach is told apart from one who does not: Forbidden.
type Addressee struct {
	User  *domain.UserID
	Email string
}

func (a *API) listEmails(ctx context.Context, in *ListEmails) (*op.Page[SentEmail], error) {
	q := in.Query
	within, err := period(q.Since, q.Until)
	if err != nil {
		return nil, err
	}
	filter := domain.EmailFilter{Period: within}
	if q.MessageTypes != nil {
		filter.Types = *q.MessageTypes
	}
	// The cursor is bound to the number of days, not to where they begin now.
	list := op.NewList(a.cursors, "users.emails", in.Path.UserID, in.To, filter, in.LastDays)
	if in.LastDays > 0 {
		since := a.db.Now().AddDate(0, 0, -in.LastDays)
		filter.Since = &since
	}
	return mapPage(list, q.Paging, func(w domain.Window) (domain.Slice[domain.SentEmail], error) {
		to, err := a.addressees(ctx, in)
		if err != nil {
			return domain.Slice[domain.SentEmail]{}, err
		}
		return a.db.SentEmails(ctx, to, filter, w)
	}, sentEmailOf)
}

func (a *API) addressees(ctx context.Context, in *ListEmails) ([]domain.UserKey, error) {
	switch {
	case in.To == nil:
		return a.addressee(ctx, in.Path.UserID)
	case in.To.User != nil:
		to, err := a.addressee(ctx, *in.To.User)
		if !domain.IsCode(err, domain.NotFound) {
			return to, err
		}
		exists, failed := a.db.UserExists(ctx, *in.To.User)
		if failed != nil {
			return nil, failed
		}
		if exists {
			return nil, domain.ErrForbidden("this key has no access to the user")
		}
		return nil, err
	case in.To.Email == "":
		return nil, domain.ErrInvalid("user_id", "is required unless an email address is given")
	}
	email, ok := domain.CleanEmail(in.To.Email)
	if !ok { // which is nobody's
		return nil, domain.ErrNotFound((domain.UserKind{}).Noun())
	}
	to, err := a.db.UsersByEmail(ctx, email)
	if err == nil && len(to) == 0 {
		err = domain.ErrNotFound((domain.UserKind{}).Noun())
	}
	return to, err
}

func (a *API) addressee(ctx context.Context, id domain.UserID) ([]domain.UserKey, error) {
	u, err := a.db.User(ctx, id)
	if err != nil {
		return nil, err
	}
	return []domain.UserKey{u.Key()}, nil
}

// period is the stretch of time between two bounds, either of which may be nil.
func period(since, until *op.Time) (domain.Period, error) {
	p := domain.Period{Since: bound(since), Until: bound(until)}
	if p.Since != nil && p.Until != nil && !p.Since.Before(*p.Until) {
		return p, domain.ErrInvalid("since", "must be before until")
	}
	return p, nil
}

// bound is a time that bounds a list; nil for none.
func bound(t *op.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
