package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// This file has the operations that only version 1 needs. It is deleted with version 1, and so are api/v1.go, which
// declares them, and db/v1.go, which reads and writes for them.

// ForV1 binds the operations that only version 1 needs in their own set, with the cursors, the AroundWrite and the
// Trace of the API's Set. It panics if one of them is not bound.
func ForV1(a *API) *op.Set {
	s := &op.Set{Cursors: a.Set.Cursors, AroundWrite: a.aroundWrite, Trace: a.Set.Trace}
	op.Bind(s, api.SendToUser, a.sendToUser)
	op.Bind(s, api.MoveMember, a.moveMember)
	op.BindList(s, api.SentEmails, a.sentEmails, addressedEmailOf)
	op.BindList(s, api.SentResults, a.sentResults, resultOf)
	op.BindList(s, api.OldReports, a.oldReports, reportOf)
	op.Bind(s, api.Reachable, a.reachable)
	if err := s.Complete(api.V1Operations); err != nil {
		panic(err)
	}
	return s
}

// aroundWrite calls a.Set.AroundWrite or, if that is nil, work. ForV1 cannot copy AroundWrite: it may be set afterwards
// (ginop's Edge.Mount).
func (a *API) aroundWrite(ctx context.Context, o op.Operation, in any, work func(context.Context) (any, error)) error {
	if a.Set.AroundWrite != nil {
		return a.Set.AroundWrite(ctx, o, in, work)
	}
	_, err := work(ctx) // the output is dropped: work also keeps it for its caller
	return err
}

func (a *API) sendToUser(ctx context.Context, in *api.SendToUserInput) (out *api.SentToUser, err error) {
	send := &api.SendPhishingInput{}
	send.Body.UserIDs, send.Body.SendAt = in.Body.UserIDs, in.Body.SendAt
	send.Body.TemplateID = domain.Give(*in.Body.TemplateID) // not nil, and UserIDs has one user: validated
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.TenantOfUser(ctx, in.Body.UserIDs[0])
		if err != nil {
			return err
		}
		sent, err := a.schedule(ctx, c, t, send)
		if err != nil {
			return err
		}
		in.Client = t.ID // an output: version 1 puts it into the successor's path
		out = &api.SentToUser{ID: in.Body.UserIDs[0], ClientID: t.ID, SendAt: sent.Sends[0].SendAt}
		return nil
	})
	return out, err
}

// moveMember adds a user to the collection, and removes the user from all other collections of the client.
func (a *API) moveMember(ctx context.Context, in *api.MoveMemberInput) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.findCollection(ctx, in.Path)
		if err != nil {
			return err
		}
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil { // first of the locks; MoveMember enrolls the user
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

func addressedEmailOf(e domain.SentEmail) api.AddressedEmail {
	return api.AddressedEmail{SentEmail: sentEmailOf(e), MessageID: e.ID, UserID: e.User}
}

// recipient is one user, or all users with an email address, whose emails are listed.
type recipient interface {
	// OnlyUser returns the user if there is only one; false for several.
	OnlyUser() (domain.UserID, bool)
	SentEmails(context.Context, domain.EmailFilter, domain.Window) (domain.Slice[domain.SentEmail], error)
}

// sentEmails lists the emails to a user or an email address. in.Since, in.Until and in.User are outputs, for version 1.
func (a *API) sentEmails(ctx context.Context, in *api.SentEmailsInput, w domain.Window) (domain.Slice[domain.SentEmail], error) {
	in.Since, in.Until = in.Period(a.db.Now())
	within, err := newPeriod("" /* prefix */, in.Since, in.Until)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}

	to, err := a.recipient(ctx, in)
	if err != nil {
		return domain.Slice[domain.SentEmail]{}, err
	}
	in.User, _ = to.OnlyUser() // zero unless there is exactly one
	return to.SentEmails(ctx, domain.EmailFilter{Types: in.Body.MessageTypes, Period: within}, w)
}

// recipient returns the user with the requested id or, without an id, the users with the email. A user who exists, but
// to whom the caller has no access, is Forbidden, not NotFound.
func (a *API) recipient(ctx context.Context, in *api.SentEmailsInput) (recipient, error) {
	id := in.Body.UserID
	switch {
	case id == nil && in.Body.Email == "":
		return nil, domain.ErrInvalid("user_id", "is required unless an email address is given")
	case id == nil:
		email, ok := domain.CleanEmail(in.Body.Email)
		if !ok { // no user has it
			return nil, domain.ErrNotFound((domain.UserID{}).Noun())
		}
		return a.db.Addressees(ctx, email)
	}

	u, err := a.db.User(ctx, *id)
	if !domain.IsCode(err, domain.NotFound) {
		return u, err
	}
	exists, existsErr := a.db.UserExists(ctx, *id)
	switch {
	case existsErr != nil:
		return nil, existsErr
	case exists:
		return nil, domain.ErrForbidden("this key has no access to the user")
	}
	return nil, err
}

func (a *API) sentResults(ctx context.Context, in *api.SentResultsInput, w domain.Window) (domain.Slice[domain.Result], error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	in.Client = u.Client // an output: version 1 puts it into the successor's path
	return u.SentResults(ctx, w)
}

// oldReports lists a client's reports, the oldest first.
func (a *API) oldReports(ctx context.Context, in *api.OldReportsInput, w domain.Window) (domain.Slice[domain.Report], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Report]{}, err
	}
	return t.ReportsByCreation(ctx, w)
}

// reachable returns the requested ids to which the caller has access. It runs one statement, or none without ids.
func (a *API) reachable(ctx context.Context, in *api.ReachableInput) (*api.Reached, error) {
	out := &api.Reached{IDs: make(map[db.UUID]bool, len(in.Body.IDs))}
	if len(in.Body.IDs) == 0 {
		return out, nil
	}
	found, err := a.db.Reached(ctx, string(in.Body.Kind), in.Body.IDs)
	for _, id := range found {
		out.IDs[id] = true
	}
	return out, err
}
