package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// AuditEntry is an entry of the audit log as v2 shows it.
type AuditEntry struct {
	ID        domain.AuditID   `json:"id" doc:"Opaque ID of the entry."`
	At        domain.Time      `json:"at" doc:"When the change happened."`
	Actor     AuditActor       `json:"actor" doc:"Who made the change."`
	Operation string           `json:"operation" doc:"ID of the operation, such as users.update, or an operator's command, such as keys create."`
	ClientID  *domain.ClientID `json:"client_id" doc:"The client that the change is about, which can be archived. Null for a change of no single client."`
	Object    *AuditObject     `json:"object" doc:"The object that was created, changed or deleted. Null if it is not a single object."`
	Fields    []string         `json:"fields" doc:"Names of the fields that the request or the command set. Values are never recorded."`
	RequestID *string          `json:"request_id" doc:"The X-Request-Id of the request. Null for a command."`
	IPAddress *string          `json:"ip_address" doc:"IP address that sent the request. Null for a command, and for another API key with access to clients that your key has no access to."`
}

// AuditActor is who made a change.
type AuditActor struct {
	Type      domain.ActorType `json:"type" doc:"key: a request with an API key; operator: a command of the service's operator."`
	KeyPrefix *string          `json:"key_prefix" doc:"Prefix of the API key, as the request sent it. Null for an operator."`
	KeyName   *string          `json:"key_name" doc:"Name of the API key. Null for an operator, and for another key with access to clients that your key has no access to."`
}

// AuditObject is the object of a change.
type AuditObject struct {
	Type string  `json:"type" doc:"Type of the object, such as user, client, collection, webhook or key. More types can be added."`
	ID   *string `json:"id" doc:"Opaque ID of the object; of an API key, its prefix; of an exposure, the name of the breach. Null if the API has no ID for such objects."`
}

// ListAuditLog lists the entries of the audit log.
var ListAuditLog = op.DeclareList[ListAuditLogInput, AuditEntry](op.Meta{
	ID: "audit_log.list", Tag: "audit", Starred: true, Method: "GET", Path: "/audit-log", Scope: domain.Read, Since: op.V2_5, Status: 200,
	Summary: "List audit log entries",
	Description: "Returns who changed what, newest first: an entry for each successful write of the partner's API keys, and for each " +
		"operator's command about the partner. A key limited to some clients sees its own entries and those of its clients.",
	Columns: []string{"at", "actor.type", "actor.key_prefix", "operation", "client_id", "object.type", "object.id"},
})

// ListAuditLogInput asks for a page of the audit log.
type ListAuditLogInput struct {
	Query struct {
		op.Paging
		ClientID  string           `query:"client_id" validate:"max=500" doc:"Only changes of this client, which can be archived. An unknown or inaccessible client has no entries."`
		Key       string           `query:"key" validate:"max=500" doc:"Only changes by the API key with this prefix, whichever of its secrets was used. An unknown key has no entries."`
		Operation string           `query:"operation" validate:"max=500" doc:"Only entries with exactly this operation."`
		Since     *domain.Time     `query:"since" doc:"Only entries at or after this time. The list then ends at page.as_of, so that you can continue from the greatest at that you have seen."`
		Until     *domain.Time     `query:"until" doc:"Only entries before this time."`
		Sort      domain.AuditSort `query:"sort" validate:"enum" default:"-at" doc:"Order of the list: -at is newest first, at is oldest first."`
	}
}
