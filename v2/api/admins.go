package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Admin is a dashboard admin as v2 shows it.
type Admin struct {
	ID          domain.AdminID   `json:"id" doc:"Opaque ID of the admin."`
	Email       string           `json:"email" format:"email" doc:"The email address that the admin signs in with."`
	Name        string           `json:"name" doc:"The admin's full name."`
	Role        domain.AdminRole `json:"role" doc:"The admin's permissions: owners and admins can make changes, and viewers can only read."`
	Scope       AdminScope       `json:"scope" doc:"Which clients the admin can access. partner: all clients; client: one client."`
	ClientID    *domain.ClientID `json:"client_id" doc:"The client that the admin can access. Null if scope is partner."`
	LastLoginAt *domain.Time     `json:"last_login_at" doc:"When the admin last signed in to the dashboard. Null if never."`
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
		Summary:     "List client admins",
		Description: "Returns only this client's admins. `GET /v2/partner` returns the partner's admins.",
		Columns:     []string{"id", "email", "name", "role", "last_login_at"},
	})
	InviteAdmin = op.Declare[InviteAdminInput, AdminInvite](op.Meta{
		ID: "admins.invite", Method: "POST", Path: "/clients/:client_id/admins/invites", Scope: domain.Write, Since: op.V2_2,
		Status: 202, ReachesOut: true, Summary: "Invite an admin",
		Description: "Emails an invite to become an admin of the client; returns 409 if the email address belongs to one of the " +
			"client's admins or has an open invite. Invites are valid for 7 days; sending more than 20 an hour for a client or 100 in 24 " +
			"hours for a partner returns 429.", Fails: []domain.Code{domain.Conflict},
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
		Email string            `json:"email" validate:"filled,max=254,email" doc:"The email address to invite."`
		Role  domain.InviteRole `json:"role,omitzero" validate:"omitempty,enum" default:"admin" doc:"The role of the new admin: admins can make changes, and viewers can only read."`
	}
}

// AdminInvite is the response to InviteAdmin.
type AdminInvite struct {
	// ID is for the audit trail.
	ID        domain.InviteID `json:"-"`
	Email     string          `json:"email" format:"email" doc:"The invited email address."`
	Status    InviteStatus    `json:"status" doc:"Status of the email. queued: the email will be sent."`
	ExpiresAt domain.Time     `json:"expires_at" doc:"When the invite expires: 7 days after the request."`
}

// InviteStatus is the state of an invite's email.
type InviteStatus string

// Values lists the states.
func (InviteStatus) Values() []string { return []string{"queued"} }
