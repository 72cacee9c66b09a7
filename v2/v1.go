package v2

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// This file is what only version 1 needs of version 2. It is deleted with it, and
// so is db/v1.go, which reads and writes for it.

// V1 is the operations that only version 1 needs. They are in no public Set.
type V1 struct {
	SendToUser  *op.Op[SendToUser, SentToUser]
	MoveMember  *op.Op[MoveMember, op.NoContent]
	SentEmails  *op.Op[SentEmails, op.Page[AddressedEmail]]
	SentResults *op.Op[SentResults, op.Page[PhishingResult]]
	OldReports  *op.Op[OldReports, op.Page[Report]]
	Reachable   *op.Op[Reachable, Reached]
}

// ForV1 declares the operations beside those of the API, with whose cursors and
// work around writes they run.
func ForV1(a *API) *V1 {
	s := &op.Set{Cursors: a.Set.Cursors, AroundWrite: a.aroundWrite, Trace: a.Set.Trace}
	return &V1{
		SendToUser: op.Add(s, op.Meta{
			ID: "v1.send", Tag: "phishing", Method: "POST", Path: "/sendphishing", Scope: domain.Write, Since: op.V2_0, Status: 200,
			Summary: "Send a simulated phishing mail to a user of any client",
		}, a.sendToUser),
		MoveMember: op.Add(s, op.Meta{
			ID: "v1.move", Tag: "collections", Method: "POST", Path: "/clients/:client_id/collections/:collection_id/members",
			Scope: domain.Write, Since: op.V2_0, Status: 200,
			Summary: "Move a user into a collection, out of all others",
		}, a.moveMember),
		SentEmails: op.AddList(s, op.Meta{
			ID: "v1.emails", Tag: "users", Method: "POST", Path: "/sentemails", Scope: domain.Read, Since: op.V2_0, Status: 200,
			Summary: "List the mails that were sent to a user, or to an email address",
		}, a.sentEmails, addressedEmailOf),
		SentResults: op.AddList(s, op.Meta{
			ID: "v1.results", Tag: "phishing", Method: "GET", Path: "/users/:user_id/phishing", Scope: domain.Read, Since: op.V2_0, Status: 200,
			Summary: "List the simulated mails that were sent to a user",
		}, a.sentResults, resultOf),
		OldReports: op.AddList(s, op.Meta{
			ID: "v1.reports", Tag: "reports", Method: "GET", Path: "/clients/:client_id/reports", Scope: domain.Read, Since: op.V2_0, Status: 200,
			Summary: "List the reports of a client, the oldest first",
		}, a.oldReports, reportOf),
		Reachable: op.Add(s, op.Meta{
			ID: "v1.reachable", Tag: "clients", Method: "POST", Path: "/reachable", Scope: domain.Read, Since: op.V2_0, Status: 200,
			Summary: "Find which of many objects are within the key's reach",
		}, a.reachable),
	}
}

// aroundWrite is the Set's AroundWrite as it is when a write runs: the edge sets
// it after the operations were declared.
func (a *API) aroundWrite(
	ctx context.Context, o op.Operation, in any, work func(context.Context) (any, error),
) error {
	if a.Set.AroundWrite != nil {
		return a.Set.AroundWrite(ctx, o, in, work)
	}
	_, err := work(ctx)
	return err
}

// SendToUser asks for a simulated mail to one user, whichever client the user
// belongs to.
type SendToUser struct {
	Body struct {
		UserIDs    []domain.UserID              `json:"user_ids" validate:"required,min=1,max=1"` // named as in SendPhishing
		TemplateID *domain.TemplateID           `json:"template_id" validate:"required"`
		SendAt     domain.Optional[domain.Time] `json:"send_at,omitzero"`
	}

	// Client is the user's, as it was found while sending.
	Client domain.ClientID `json:"-"`
}

// SentToUser is a user who will be sent a simulated mail, and when.
type SentToUser struct {
	ID       domain.UserID   `json:"id"`
	ClientID domain.ClientID `json:"client_id"`
	SendAt   domain.Time     `json:"send_at"`
}

func (a *API) sendToUser(ctx context.Context, in *SendToUser) (out *SentToUser, err error) {
	send := &SendPhishing{}
	send.Body.UserIDs, send.Body.SendAt = in.Body.UserIDs, in.Body.SendAt
	send.Body.TemplateID = domain.Give(*in.Body.TemplateID)
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.TenantOfUser(ctx, in.Body.UserIDs[0])
		if err != nil {
			return err
		}
		sent, err := a.schedule(ctx, c, t, send)
		if err != nil {
			return err
		}
		in.Client = t.ID
		out = &SentToUser{ID: in.Body.UserIDs[0], ClientID: t.ID, SendAt: sent.Sends[0].SendAt}
		return nil
	})
	return out, err
}

// MoveMember asks for a user to become a member of a collection and to leave the
// client's others.
type MoveMember struct {
	Path collectionPath
	Body struct {
		UserID *domain.UserID `json:"user_id" validate:"required"`
	}
}

func (a *API) moveMember(ctx context.Context, in *MoveMember) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.collection(ctx, in.Path)
		if err != nil {
			return err
		}
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		user := *in.Body.UserID
		found, err := t.LockUsers(ctx, c, []domain.UserID{user})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return domain.ErrNotFound(user.Noun())
		}
		return t.MoveMember(ctx, c, k.ID, user)
	})
	return &op.NoContent{}, err
}

// SentEmails asks for a page of the mails that were sent to a user within 30 days,
// newest first.
type SentEmails struct {
	Query struct{ op.Paging }
	Body  struct {
		// The mails are found by the user's id, else by the email, which users of
		// several clients may have.
		UserID *domain.UserID `json:"user_id"`
		Email  string         `json:"email"`
		// MessageTypes are all types where it is empty.
		MessageTypes []domain.MessageType `json:"message_types"`
		// Start begins the 30 days; nil is for the last 30.
		Start *domain.Time `json:"start"`
	}

	// User is the one user whose mails they are, zero where there are several, and
	// Since and Until are the ends of the days: as they were found while reading.
	User         domain.UserID `json:"-"`
	Since, Until *domain.Time  `json:"-"`
}

// emailDays is how many days of mails one look-up covers (decisions 5.13).
const emailDays = 30

// AddressedEmail is the record of a mail with the ids of the mail and of the user,
// of whom there may be several in a list.
type AddressedEmail struct {
	SentEmail
	MessageID domain.MessageID `json:"message_id"`
	UserID    domain.UserID    `json:"user_id"`
}

func addressedEmailOf(e domain.SentEmail) AddressedEmail {
	return AddressedEmail{SentEmail: sentEmailOf(e), MessageID: e.ID, UserID: e.User}
}

// recipient is who was sent mails: a user, or all who have an address.
type recipient interface {
	// Only is the one user who it is; false where there are several.
	Only() (domain.UserID, bool)
	SentEmails(context.Context, domain.EmailFilter, domain.Window) (domain.Slice[domain.SentEmail], error)
}

func (a *API) sentEmails(ctx context.Context, in *SentEmails, w domain.Window) (domain.Slice[domain.SentEmail], error) {
	in.Since, in.Until = in.Days(a.db.Now())
	within, err := period(in.Since, in.Until)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}

	to, err := a.recipient(ctx, in)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}
	in.User, _ = to.Only()
	return to.SentEmails(ctx, domain.EmailFilter{Types: in.Body.MessageTypes, Period: within}, w)
}

// Days are the ends of the days that are asked for; the second is nil where they
// go on until now, or past what can be written.
func (in *SentEmails) Days(now time.Time) (since, until *domain.Time) {
	if in.Body.Start == nil {
		return &domain.Time{Time: now.AddDate(0, 0, -emailDays)}, nil
	}
	end := in.Body.Start.Time.AddDate(0, 0, emailDays)
	if end.Year() > 9999 {
		return in.Body.Start, nil
	}
	return in.Body.Start, &domain.Time{Time: end}
}

// recipient finds whom the mails were sent to. A user who exists beyond the
// caller's reach is distinguished from one who does not: Forbidden.
func (a *API) recipient(ctx context.Context, in *SentEmails) (recipient, error) {
	id := in.Body.UserID
	switch {
	case id == nil && in.Body.Email == "":
		return nil, domain.ErrInvalid("user_id", "is required unless an email address is given")
	case id == nil:
		email, ok := domain.CleanEmail(in.Body.Email)
		if !ok { // which is no user's
			return nil, domain.ErrNotFound((domain.UserKind{}).Noun())
		}
		return a.db.Addressees(ctx, email)
	}

	u, err := a.db.User(ctx, *id)
	if !domain.IsCode(err, domain.NotFound) {
		return u, err
	}
	exists, failed := a.db.UserExists(ctx, *id)
	switch {
	case failed != nil:
		return nil, failed
	case exists:
		return nil, domain.ErrForbidden("this key has no access to the user")
	}
	return nil, err
}

// SentResults asks for a page of the simulated mails that were sent to a user,
// newest first.
type SentResults struct {
	Path  userPath
	Query struct{ op.Paging }

	// Client is the user's, as it was found while reading.
	Client domain.ClientID `json:"-"`
}

func (a *API) sentResults(ctx context.Context, in *SentResults, w domain.Window) (domain.Slice[domain.Result], error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	in.Client = u.Client
	return u.SentResults(ctx, w)
}

// OldReports asks for a page of a client's reports, the oldest first.
type OldReports struct {
	Path  clientPath
	Query struct{ op.Paging }
}

func (a *API) oldReports(ctx context.Context, in *OldReports, w domain.Window) (domain.Slice[domain.Report], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Report]{}, err
	}
	return t.ReportsByCreation(ctx, w)
}
