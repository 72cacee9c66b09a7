package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// GetKey reads the calling key.
var GetKey = op.Declare[GetKeyInput, Key](op.Meta{
	ID: "key.get", Starred: true, Method: "GET", Path: "/key", Scope: domain.AnyScope, Since: op.V2_4, Status: 200,
	Summary: "Get the current API key",
	Description: "Returns the calling API key without its secret: scopes, access, networks and expiry, and the release of " +
		"the API. Any valid key can send this request, so use it to test a connection.",
})

// GetKeyInput asks for the calling key.
type GetKeyInput struct{}

// Key is an API key as its owner sees it.
type Key struct {
	Prefix     string            `json:"prefix" doc:"The first characters of the key, which identify it in logs and to the operator."`
	Name       string            `json:"name" doc:"The key's name."`
	Partner    string            `json:"partner" doc:"The name of the partner that the key belongs to."`
	Scopes     []domain.Scope    `json:"scopes" doc:"The key's permissions."`
	AllClients bool              `json:"all_clients" doc:"Whether the key has access to all clients of the partner, including future ones."`
	ClientIDs  []domain.ClientID `json:"client_ids" doc:"The clients that the key has access to; empty if it has access to all clients."`
	Networks   []string          `json:"networks" doc:"The networks from which the key can be used, in CIDR notation; empty if there is no restriction."`
	CreatedAt  domain.Time       `json:"created_at" doc:"When the key was created."`
	ExpiresAt  *domain.Time      `json:"expires_at" doc:"When the key expires. Null if never."`
	Release    string            `json:"release" doc:"The release of the API that this service runs, such as 2.4."`
}
