package db

import "partnerapi/domain"

// clashes says what the violation of each unique constraint means to callers.
var clashes = map[string]*domain.Error{
	"partners_name_unique": domain.ErrConflict("partner", "a partner with this name already exists"),
	"clients_name_unique":  domain.ErrConflict("client", "a client with this name already exists"),
	"users_email_unique":   domain.ErrConflict("user", "a user with this email already exists for this client"),
	"collections_name_unique": domain.ErrConflict("collection",
		"a collection with this name already exists for this client"),
	"framework_assignments_unique": domain.ErrConflict("framework assignment",
		"this framework is assigned to this audience already"),
	"admins_client_email_unique": domain.ErrConflict("admin", "this email is already an admin of this client"),
	"sync_runs_open":             domain.ErrConflict("sync run", "a sync of this client is queued or running already"),
}
