package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// GetKey reads the calling key.
var GetKey = op.Declare[GetKeyInput, Key](op.Meta{
	ID: "key.get", Starred: true, Method: "GET", Path: "/key", Scope: domain.AnyScope, Since: op.V2_4, Status: 200,
	Summary: "Read the calling key",
	Description: "Returns what the API key of the request is and may do, and the release that is served. " +
		"A call with any valid key succeeds, so it tests a connection.",
})

// GetKeyInput asks for the calling key.
type GetKeyInput struct{}

// Key is an API key as its owner sees it.
type Key struct {
	Prefix     string            `json:"prefix" doc:"The start of the key, by which logs and the operator name it."`
	Name       string            `json:"name" doc:"The key's name."`
	Partner    string            `json:"partner" doc:"The name of the partner that the key belongs to."`
	Scopes     []domain.Scope    `json:"scopes" doc:"What the key may do."`
	AllClients bool              `json:"all_clients" doc:"Whether the key reaches all clients of the partner, those of the future too."`
	ClientIDs  []domain.ClientID `json:"client_ids" doc:"The clients that the key reaches; empty where it reaches all."`
	Networks   []string          `json:"networks" doc:"The networks that the key may be used from, as CIDR; empty for everywhere."`
	CreatedAt  domain.Time       `json:"created_at" doc:"When the key was created."`
	ExpiresAt  *domain.Time      `json:"expires_at" doc:"When the key stops working. Null for never."`
	Release    string            `json:"release" doc:"The release of the interface that is served here, such as 2.4."`
}
