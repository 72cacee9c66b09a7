package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// GetKey reads the calling key.
var GetKey = op.Declare[GetKeyInput, Key](op.Meta{
	ID: "key.get", Starred: true, Method: "GET", Path: "/key", Scope: domain.AnyScope, Since: op.V2_4, Status: 200,
	Summary: "Get the current API key",
	Description: "Returns the API release that the service runs, and the calling API key's scopes, access, networks and expiry, but " +
		"not its secret. Any valid key can call this operation, so you can use it to test a connection.",
})

// GetKeyInput asks for the calling key.
type GetKeyInput struct{}

// Key is an API key as its owner sees it.
type Key struct {
	Prefix     string            `json:"prefix" doc:"The first characters of the key, which identify the key in logs and to the operator."`
	Name       string            `json:"name" doc:"The key's name."`
	Partner    string            `json:"partner" doc:"The name of the partner that the key belongs to."`
	Scopes     []domain.Scope    `json:"scopes" doc:"The key's permissions."`
	AllClients bool              `json:"all_clients" doc:"Whether the key has access to all clients of the partner, including future ones."`
	ClientIDs  []domain.ClientID `json:"client_ids" doc:"The clients that the key can access; empty if the key can access all clients."`
	Networks   []string          `json:"networks" doc:"The networks from which the key can be used, in CIDR notation; empty if there is no restriction."`
	CreatedAt  domain.Time       `json:"created_at" doc:"When the key was created."`
	ExpiresAt  *domain.Time      `json:"expires_at" doc:"When the key expires. Null if never."`
	Release    string            `json:"release" doc:"The release of the API that this service runs, such as 2.4."`
}
