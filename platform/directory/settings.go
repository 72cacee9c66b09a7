package directory

import (
	"context"
	"encoding/json"
)

// MicrosoftSettings say which Microsoft Entra ID a client has: what of a
// connection is no secret. The credentials beside them are the client secret of
// the app.
type MicrosoftSettings struct {
	// Tenant is the id or a domain of the tenant.
	Tenant string `json:"tenant"`
	// AppID is the id of the registered app (its client id).
	AppID string `json:"app_id"`
	// Group is the object id of the group whose transitive members are synced;
	// empty for every account.
	Group string `json:"group,omitempty"`
}

// GoogleSettings say which Google Workspace a client has. The credentials beside
// them are the JSON key of a service account.
type GoogleSettings struct {
	// Admin is the address of the administrator whom the service account acts for.
	Admin string `json:"admin"`
	// Domain is the one domain that is synced; empty for all of the customer's.
	Domain string `json:"domain,omitempty"`
}

// Connect makes the Source of a connection from its provider (domain.Directory),
// its settings, and its credentials in clear. It does not talk to the directory
// yet.
type Connect func(ctx context.Context, provider string, settings json.RawMessage, credentials []byte) (Source, error)
