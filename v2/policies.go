package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func policyOf(p domain.Policy) api.Policy {
	out := api.Policy{
		ID: p.ID, ClientID: p.Client, Title: p.Title, Description: p.Description, Version: p.Version,
		ScopeType: p.ScopeType, ScopeID: p.Scope, RequiresAcknowledgment: p.MustSign, RenewalPeriodDays: p.RenewalDays,
		CreatedAt: domain.At(p.CreatedAt), UpdatedAt: domain.At(p.UpdatedAt),
	}
	if s := p.SignOff; s != nil {
		percentage := s.Percentage()
		out.AudienceUserCount, out.AcknowledgedCount, out.AcknowledgedPercentage = &s.Audience, &s.Acknowledged, &percentage
	}
	return out
}

func policyUserOf(u domain.PolicyUser) api.PolicyUser {
	return api.PolicyUser{
		UserID: u.User, Email: u.Email, Name: u.Name,
		Acknowledged: u.AcknowledgedAt != nil, AcknowledgedAt: domain.MaybeAt(u.AcknowledgedAt),
		UpdatedAt: domain.At(u.UpdatedAt),
	}
}

func (a *API) listPolicies(
	ctx context.Context, in *api.ListPoliciesInput, w domain.Window,
) (domain.Slice[domain.Policy], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Policy]{}, err
	}
	return t.Policies(ctx, toTime(in.Query.UpdatedSince), w)
}

func (a *API) listPolicyUsers(
	ctx context.Context, in *api.ListPolicyUsersInput, w domain.Window,
) (domain.Slice[domain.PolicyUser], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.PolicyUser]{}, err
	}
	p, err := t.Policy(ctx, in.Path.PolicyID)
	if err != nil {
		return domain.Slice[domain.PolicyUser]{}, err
	}
	return p.Users(ctx, in.Query.Status, toTime(in.Query.UpdatedSince), w)
}

func (a *API) remindPolicy(ctx context.Context, in *api.RemindPolicyInput) (*api.Reminded, error) {
	var out api.Reminded
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		p, err := c.LockPolicy(ctx, t, in.Path.PolicyID)
		if err != nil {
			return err
		}
		out.RecipientCount, err = p.Remind(ctx, c)
		return err
	})
	return &out, err
}
