package v2

import (
	"context"

	"partnerapi/domain"
)

// This file holds what only v1 asks of sent mails.

// Addressee finds whom mails were sent to: by the user's id, else by the email,
// which users of several clients may have. A user who exists beyond the
// caller's reach is told apart from one who does not: Forbidden.
type Addressee struct {
	User  *domain.UserID
	Email string
}

// recipient is who was sent mails: a user, or all who have an address.
type recipient interface {
	SentEmails(context.Context, domain.EmailFilter, domain.Window) (domain.Slice[domain.SentEmail], error)
}

// emailsTo reads the mails of an addressee.
func (a *API) emailsTo(
	ctx context.Context, in *ListEmails, filter domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	if in.LastDays > 0 {
		since := a.db.Now().AddDate(0, 0, -in.LastDays)
		filter.Since = &since
	}
	to, err := a.recipient(ctx, in.To)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}
	return to.SentEmails(ctx, filter, w)
}

func (a *API) recipient(ctx context.Context, to *Addressee) (recipient, error) {
	switch {
	case to.User == nil && to.Email == "":
		return nil, domain.ErrInvalid("user_id", "is required unless an email address is given")
	case to.User == nil:
		email, ok := domain.CleanEmail(to.Email)
		if !ok { // which is nobody's
			return nil, domain.ErrNotFound((domain.UserKind{}).Noun())
		}
		return a.db.Addressees(ctx, email)
	}
	u, err := a.db.User(ctx, *to.User)
	if !domain.IsCode(err, domain.NotFound) {
		return u, err
	}
	exists, failed := a.db.UserExists(ctx, *to.User)
	switch {
	case failed != nil:
		return nil, failed
	case exists:
		return nil, domain.ErrForbidden("this key has no access to the user")
	}
	return nil, err
}
