package v2

import (
	"cmp"
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func adminOf(a domain.Admin) api.Admin {
	scope := api.AdminScope("partner")
	if a.Client != nil {
		scope = "client"
	}
	return api.Admin{
		ID: a.ID, Email: a.Email, Name: a.Name, Role: a.Role, Scope: scope, ClientID: a.Client,
		LastLoginAt: domain.MaybeAt(a.LastLoginAt), CreatedAt: domain.At(a.CreatedAt),
	}
}

func (a *API) listClientAdmins(
	ctx context.Context, in *api.ListClientAdminsInput, w domain.Window,
) (domain.Slice[domain.Admin], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Admin]{}, err
	}
	return t.Admins(ctx, w)
}

func (a *API) inviteAdmin(ctx context.Context, req *api.InviteAdminInput) (*api.AdminInvite, error) {
	now := a.db.Now()
	invite := domain.Invite{
		ID: db.NewID[domain.InviteKind](), Client: req.Path.ClientID, Email: req.Body.Email,
		Role:      cmp.Or(req.Body.Role, domain.InviteRole(domain.FullRole)),
		CreatedAt: now, ExpiresAt: now.Add(domain.InviteLife),
	}
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := c.LockTenant(ctx, invite.Client)
		if err != nil {
			return err
		}
		return t.Invite(ctx, c, invite)
	})
	return &api.AdminInvite{ID: invite.ID, Email: invite.Email, Status: "queued", ExpiresAt: domain.At(invite.ExpiresAt)}, err
}
