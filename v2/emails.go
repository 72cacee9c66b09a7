package v2

import (
	"context"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func sentEmailOf(e domain.SentEmail) api.SentEmail {
	return api.SentEmail{
		SentAt: domain.At(e.SentAt), FromEmail: e.From, Subject: e.Subject, SendMethod: e.Method, MessageType: e.Type,
	}
}

func (a *API) listEmails(
	ctx context.Context, in *api.ListEmailsInput, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	within, err := newPeriod("" /* prefix */, in.Query.Since, in.Query.Until)
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

// newPeriod returns the period between two bounds, of which either may be nil. Nothing is in a period whose bounds are
// equal. newPeriod returns InvalidRequest if since is after until. prefix is that of the names of their parameters, such
// as completed_.
func newPeriod(prefix string, since, until *domain.Time) (domain.Period, error) {
	p := domain.Period{Since: toTime(since), Until: toTime(until)}
	if p.Since != nil && p.Until != nil && p.Since.After(*p.Until) {
		return p, domain.ErrInvalid(prefix+"since", "must not be after "+prefix+"until")
	}
	return p, nil
}

// filterID returns the id in a filter's text; nil for an empty text. A text that is no id of the kind becomes the zero
// id, which no object has: the list is empty.
func filterID[K domain.Kind](text string) *domain.ID[K] {
	if text == "" {
		return nil
	}
	id, _ := domain.ParseID[K](text)
	return &id
}

// toTime converts an optional time of a query; nil stays nil.
func toTime(t *domain.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
