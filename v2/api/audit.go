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
	ClientID  *domain.ClientID `json:"client_id" doc:"Opaque ID of the affected client, which may be archived. Null if the change affects no client or several clients."`
	Object    *AuditObject     `json:"object" doc:"The created object, or the object named in the request's path or in the command. Null if there is none."`
	Fields    []string         `json:"fields" doc:"Names of the fields that the request or command set. Values are never recorded."`
	RequestID *string          `json:"request_id" doc:"The request's X-Request-Id. Null for commands."`
	IPAddress *string          `json:"ip_address" doc:"IP address that the request came from. Null for commands, and for requests with another API key unless your key can access all of that key's clients."`
}

// AuditActor is who made a change.
type AuditActor struct {
	Type      domain.ActorType `json:"type" doc:"key: a request with an API key; operator: a command run by the service's operator."`
	KeyPrefix *string          `json:"key_prefix" doc:"Prefix of the API key that sent the request. Null for an operator."`
	KeyName   *string          `json:"key_name" doc:"Name of the API key. Null for an operator, and for another API key unless your key can access all of that key's clients."`
}

// AuditObject is the object of a change.
type AuditObject struct {
	Type string  `json:"type" doc:"Type of the object, such as user, client, collection, webhook or key. More types can be added."`
	ID   *string `json:"id" doc:"Opaque ID of the object. A key is identified by its prefix, and a resolved exposure (type breach) by the breach's name. Null if the API has no ID for this type of object."`
}

// ListAuditLog lists the entries of the audit log.
var ListAuditLog = op.DeclareList[ListAuditLogInput, AuditEntry](op.Meta{
	ID: "audit_log.list", Tag: "audit", Starred: true, Method: "GET", Path: "/audit-log", Scope: domain.Read, Since: op.V2_5, Status: 200,
	Summary: "List audit log entries",
	Description: "Returns entries for successful writes by the partner's API keys and for operator commands about the " +
		"partner, newest first. A key with access to specific clients sees only its own entries and entries about those clients.",
	Columns: []string{"at", "actor.type", "actor.key_prefix", "operation", "client_id", "object.type", "object.id"},
})

// ListAuditLogInput asks for a page of the audit log.
type ListAuditLogInput struct {
	Query struct {
		op.Paging
		ClientID  string           `query:"client_id" validate:"max=500" doc:"Only entries about this client, which may be archived. An unknown or inaccessible client matches nothing."`
		Key       string           `query:"key" validate:"max=500" doc:"Only changes made with the API key that has this prefix, whichever of its secrets was used. An unknown key matches nothing."`
		Operation string           `query:"operation" validate:"max=500" doc:"Only entries with exactly this operation."`
		Since     *domain.Time     `query:"since" doc:"Only entries at or after this time. The list then ends at page.as_of, so you can continue from the time of the latest entry that you have read."`
		Until     *domain.Time     `query:"until" doc:"Only entries before this time."`
		Sort      domain.AuditSort `query:"sort" validate:"enum" default:"-at" doc:"Order of the list: newest first (-at) or oldest first (at)."`
	}
}
