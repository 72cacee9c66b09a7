package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// GetPartner reads the key's partner.
var GetPartner = op.Declare[GetPartnerInput, Partner](op.Meta{
	ID: "partner.get", Starred: true, Method: "GET", Path: "/partner", Scope: domain.Read, Since: op.V2_1, Status: 200,
	Summary:     "Get the current partner",
	Description: "Returns the partner that the API key belongs to, with the admins who have access to all its clients.",
})

// GetPartnerInput asks for the key's partner.
type GetPartnerInput struct{}

// Partner is a partner as v2 shows it.
type Partner struct {
	Name      string      `json:"name" doc:"The partner's name."`
	CreatedAt domain.Time `json:"created_at" doc:"When the partner was created."`
	Admins    []Admin     `json:"admins" doc:"The admins who have access to all clients."`
}
