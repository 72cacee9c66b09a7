package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Policy is a policy as v2 shows it.
type Policy struct {
	ID                     domain.PolicyID  `json:"id"`
	ClientID               domain.ClientID  `json:"client_id"`
	Title                  string           `json:"title"`
	Description            *string          `json:"description"`
	Version                int              `json:"version" doc:"The current version; sign-off of an earlier one does not count."`
	ScopeType              domain.ScopeType `json:"scope_type" doc:"Whose users are the audience: the client's, a group's or a collection's."`
	ScopeID                domain.ScopeID   `json:"scope_id" doc:"The id of the client, the group or the collection, also when that was deleted: then the audience is empty."`
	RequiresAcknowledgment bool             `json:"requires_acknowledgment"`
	RenewalPeriodDays      int              `json:"renewal_period_days" doc:"How long a sign-off stays valid."`
	AudienceUserCount      *int             `json:"audience_user_count" doc:"Active users of the audience. Null, as the next two, where no acknowledgment is required."`
	AcknowledgedCount      *int             `json:"acknowledged_count" doc:"Those of the audience who signed the current version within the renewal period."`
	AcknowledgedPercentage *float64         `json:"acknowledged_percentage" doc:"From 0 to 100 with one decimal; 0 for an empty audience."`
	CreatedAt              op.Time          `json:"created_at"`
	UpdatedAt              op.Time          `json:"updated_at"`
}

// PolicyUser is a user of a policy's audience as v2 shows it.
type PolicyUser struct {
	UserID         domain.UserID `json:"user_id"`
	Email          string        `json:"email" format:"email"`
	Name           string        `json:"name"`
	Acknowledged   bool          `json:"acknowledged" doc:"Whether the current version was signed within the renewal period."`
	AcknowledgedAt *op.Time      `json:"acknowledged_at" doc:"Null where acknowledged is false."`
}

func policyOf(p domain.Policy) Policy {
	out := Policy{
		ID: p.ID, ClientID: p.Client, Title: p.Title, Description: p.Description, Version: p.Version,
		ScopeType: p.ScopeType, ScopeID: p.Scope, RequiresAcknowledgment: p.MustSign, RenewalPeriodDays: p.RenewalDays,
		CreatedAt: op.At(p.CreatedAt), UpdatedAt: op.At(p.UpdatedAt),
	}
	if s := p.SignOff; s != nil {
		percentage := s.Percentage()
		out.AudienceUserCount, out.AcknowledgedCount, out.AcknowledgedPercentage = &s.Audience, &s.Acknowledged, &percentage
	}
	return out
}

func policyUserOf(u domain.PolicyUser) PolicyUser {
	return PolicyUser{
		UserID: u.User, Email: u.Email, Name: u.Name,
		Acknowledged: u.AcknowledgedAt != nil, AcknowledgedAt: op.MaybeAt(u.AcknowledgedAt),
	}
}

// policyPath is the path of an operation on one policy.
type policyPath struct {
	clientPath
	PolicyID domain.PolicyID `path:"policy_id"`
}

func (a *API) declarePolicies() {
	a.ListPolicies = op.AddList(&a.Set, op.Meta{
		ID: "policies.list", Method: "GET", Path: "/clients/:client_id/policies",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the active policies of a client with their sign-off",
	}, a.listPolicies, policyOf)
	a.ListPolicyUsers = op.AddList(&a.Set, op.Meta{
		ID: "policies.users.list", Method: "GET", Path: "/clients/:client_id/policies/:policy_id/users",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the audience of a policy, and who signed",
	}, a.listPolicyUsers, policyUserOf)
	a.RemindPolicy = op.Add(&a.Set, op.Meta{
		ID: "policies.remind", Method: "POST", Path: "/clients/:client_id/policies/:policy_id/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202,
		Summary: "Send a reminder to everyone of the audience who has not signed, once a day (UTC)",
	}, a.remindPolicy)
}

// ListPolicies asks for a page of a client's policies.
type ListPolicies struct {
	Path  clientPath
	Query struct {
		op.Paging
		UpdatedSince *op.Time `query:"updated_since" doc:"Only policies that changed at or after this time, be it that a sign-off lapsed."`
	}
}

func (a *API) listPolicies(
	ctx context.Context, in *ListPolicies, w domain.Window,
) (domain.Slice[domain.Policy], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Policy]{}, err
	}
	return t.Policies(ctx, bound(in.Query.UpdatedSince), w)
}

// ListPolicyUsers asks for a page of a policy's audience.
type ListPolicyUsers struct {
	Path  policyPath
	Query struct {
		op.Paging
		Status       domain.SignFilter `query:"status" validate:"enum" default:"all"`
		UpdatedSince *op.Time          `query:"updated_since" doc:"Only users whose record or sign-off changed at or after this time, be it that it lapsed."`
	}
}

func (a *API) listPolicyUsers(
	ctx context.Context, in *ListPolicyUsers, w domain.Window,
) (domain.Slice[domain.PolicyUser], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.PolicyUser]{}, err
	}
	p, err := t.Policy(ctx, in.Path.PolicyID)
	if err != nil {
		return domain.Slice[domain.PolicyUser]{}, err
	}
	return p.Users(ctx, in.Query.Status, bound(in.Query.UpdatedSince), w)
}

// RemindPolicy asks for reminders to sign a policy.
type RemindPolicy struct {
	Path policyPath
}

// Reminded says to how many users a reminder goes.
type Reminded struct {
	RecipientCount int `json:"recipient_count"`
}

func (a *API) remindPolicy(ctx context.Context, in *RemindPolicy) (*Reminded, error) {
	var out Reminded
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		p, err := c.LockPolicy(ctx, t, in.Path.PolicyID)
		if err != nil {
			return err
		}
		mails, err := p.Remind(ctx, c)
		if err != nil {
			return err
		}

		out.RecipientCount = len(mails)
		c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, t.ID, mails...) })
		return nil
	})
	return &out, err
}
