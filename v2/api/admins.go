package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Admin is a dashboard admin as v2 shows it.
type Admin struct {
	ID          domain.AdminID   `json:"id" doc:"Opaque id of the admin."`
	Email       string           `json:"email" format:"email" doc:"The address that the admin signs in with."`
	Name        string           `json:"name" doc:"The admin's full name."`
	Role        domain.AdminRole `json:"role" doc:"What the admin may do: owner and admin may change things, viewer may read."`
	Scope       AdminScope       `json:"scope" doc:"What the admin sees: partner, every client; client, one client."`
	ClientID    *domain.ClientID `json:"client_id" doc:"The client that the admin sees. Null where the scope is partner."`
	LastLoginAt *domain.Time     `json:"last_login_at" doc:"When the admin last signed in to the dashboard. Null for never."`
	CreatedAt   domain.Time      `json:"created_at" doc:"When the admin was created."`
}

// AdminScope is the scope of an admin: all clients of the partner, or one client.
type AdminScope string

// Values lists the scopes of admins.
func (AdminScope) Values() []string { return []string{"partner", "client"} }

// The operations on admins.
var (
	ListClientAdmins = op.DeclareList[ListClientAdminsInput, Admin](op.Meta{
		ID: "admins.list", Method: "GET", Path: "/clients/:client_id/admins", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List the admins of a client",
		Description: "Returns the dashboard admins of this client only. The admins of the partner are in `GET " +
			"/v2/partner`.",
		Columns: []string{"id", "email", "name", "role", "last_login_at"},
	})
	InviteAdmin = op.Declare[InviteAdminInput, AdminInvite](op.Meta{
		ID: "admins.invite", Method: "POST", Path: "/clients/:client_id/admins/invites", Scope: domain.Write, Since: op.V2_2,
		Status: 202, ReachesOut: true, Summary: "Invite an admin to a client",
		Description: "Sends an invite to become an admin of the client, which expires after 7 days. An address that is an " +
			"admin of the client, or has an open invite, is a conflict; more than 20 invites an hour to a client, " +
			"or 100 in 24 hours to all clients of the partner, are 429.", Fails: []domain.Code{domain.Conflict},
	})
)

// ListClientAdminsInput asks for a page of the admins of one client.
type ListClientAdminsInput struct {
	Path  ClientPath
	Query struct{ op.Paging }
}

// InviteAdminInput asks for an invite to become an admin of a client.
type InviteAdminInput struct {
	Path ClientPath
	Body struct {
		Email string            `json:"email" validate:"filled,max=254,email" doc:"The address to invite."`
		Role  domain.InviteRole `json:"role,omitzero" validate:"omitempty,enum" default:"admin" doc:"What the new admin may do."`
	}
}

// AdminInvite is the answer to InviteAdmin.
type AdminInvite struct {
	// ID is for the audit trail.
	ID        domain.InviteID `json:"-"`
	Email     string          `json:"email" format:"email" doc:"The address that is invited."`
	Status    InviteStatus    `json:"status" doc:"What became of the mail: queued, it will be sent."`
	ExpiresAt domain.Time     `json:"expires_at" doc:"Until when the invite can be accepted, 7 days from now."`
}

// InviteStatus is the state of an invite's mail.
type InviteStatus string

// Values lists the states.
func (InviteStatus) Values() []string { return []string{"queued"} }
