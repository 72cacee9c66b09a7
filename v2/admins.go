package v2

import (
	"context"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Admin is a dashboard admin as v2 shows it.
type Admin struct {
	ID          domain.AdminID   `json:"id"`
	Email       string           `json:"email" format:"email"`
	Name        string           `json:"name"`
	Role        domain.AdminRole `json:"role"`
	Scope       AdminScope       `json:"scope" doc:"An admin of the partner sees every client, one of a client that client only."`
	ClientID    *domain.ClientID `json:"client_id" doc:"Set where the scope is client."`
	LastLoginAt *op.Time         `json:"last_login_at"`
	CreatedAt   op.Time          `json:"created_at"`
}

// AdminScope is what an admin sees.
type AdminScope string

// Values lists the scopes of admins.
func (AdminScope) Values() []string { return []string{"partner", "client"} }

func adminOf(a domain.Admin) Admin {
	scope := AdminScope("partner")
	if a.Client != nil {
		scope = "client"
	}
	return Admin{
		ID: a.ID, Email: a.Email, Name: a.Name, Role: a.Role, Scope: scope, ClientID: a.Client,
		LastLoginAt: op.MaybeAt(a.LastLoginAt), CreatedAt: op.At(a.CreatedAt),
	}
}

func (a *API) declareAdmins() {
	a.ListClientAdmins = op.Add(&a.Set, op.Meta{
		ID: "admins.list", Method: "GET", Path: "/clients/:client_id/admins", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List the admins of a client",
	}, a.listClientAdmins)
	a.InviteAdmin = op.Add(&a.Set, op.Meta{
		ID: "admins.invite", Method: "POST", Path: "/clients/:client_id/admins/invites", Scope: domain.Write, Since: op.V2_2, Status: 202,
		Summary: "Invite an admin to a client", Fails: []domain.Code{domain.Conflict},
	}, a.inviteAdmin)
}

// ListClientAdmins asks for a page of the admins of one client.
type ListClientAdmins struct {
	Path  clientPath
	Query struct {
		op.Paging
	}
}

func (a *API) listClientAdmins(ctx context.Context, in *ListClientAdmins) (*op.Page[Admin], error) {
	list := op.NewList(a.cursors, "admins.list", in.Path.ClientID)
	return mapPage(list, in.Query.Paging, func(w domain.Window) (domain.Slice[domain.Admin], error) {
		if _, err := a.db.Client(ctx, in.Path.ClientID); err != nil {
			return domain.Slice[domain.Admin]{}, err
		}
		return a.db.ClientAdmins(ctx, in.Path.ClientID, w)
	}, adminOf)
}

// InviteAdmin asks for an invite to become an admin of a client.
type InviteAdmin struct {
	Path clientPath
	Body struct {
		Email string            `json:"email" validate:"filled,max=254,email"`
		Role  domain.InviteRole `json:"role,omitzero" validate:"omitempty,enum" default:"admin"`
	}
}

// AdminInvite says that an invite is on its way.
type AdminInvite struct {
	Email     string       `json:"email" format:"email"`
	Status    InviteStatus `json:"status"`
	ExpiresAt op.Time      `json:"expires_at"`
}

// InviteStatus is what becomes of an invite's mail.
type InviteStatus string

// Values lists the states.
func (InviteStatus) Values() []string { return []string{"queued"} }

func (a *API) inviteAdmin(ctx context.Context, req *InviteAdmin) (*AdminInvite, error) {
	now := a.db.Now()
	invite := domain.Invite{
		ID: db.NewID[domain.InviteKind](), Client: req.Path.ClientID, Email: strings.ToLower(req.Body.Email), Role: req.Body.Role,
		CreatedAt: now, ExpiresAt: now.Add(domain.InviteLife),
	}
	if invite.Role == "" {
		invite.Role = domain.InviteRole(domain.FullRole)
	}
	err := a.db.Tx(ctx, func(ctx context.Context) error {
		if _, err := a.db.LockClient(ctx, invite.Client); err != nil {
			return err
		}
		mail, err := a.db.InsertInvite(ctx, invite)
		if err != nil {
			return err
		}
		return a.sendMail(ctx, invite.Client, mail)
	})
	if err != nil {
		return nil, err
	}
	return &AdminInvite{Email: invite.Email, Status: "queued", ExpiresAt: op.At(invite.ExpiresAt)}, nil
}
