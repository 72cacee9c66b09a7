package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// ListUsage lists what a partner bills.
var ListUsage = op.DeclareList[ListUsageInput, Usage](op.Meta{
	ID: "usage.list", Starred: true, Method: "GET", Path: "/usage", Scope: domain.Read, Since: op.V2_5, Status: 200,
	Summary: "List usage",
	Description: "Returns the highest and the last number of active users of each client and month, or day, to bill clients by. " +
		"Archived clients are included, in order of the clients' creation, then period.",
	Columns: []string{"client_id", "client_name", "external_id", "period_start_on", "active_users_max", "active_users_last"},
})

// ListUsageInput asks for a page of usage.
type ListUsageInput struct {
	Query struct {
		op.Paging
		StartOn  *domain.Date         `query:"start_on" doc:"First day (UTC). Default: the first day of the month of end_on."`
		EndOn    *domain.Date         `query:"end_on" doc:"Last day (UTC), inclusive; at most 399 days after start_on. Days after today are omitted. Default: today, so that without start_on the list is of the current month."`
		Interval domain.UsageInterval `query:"interval" validate:"enum" default:"month" doc:"Whether an item is a client's calendar month, or a day. The first and the last month can be cut by start_on and end_on."`
		ClientID string               `query:"client_id" validate:"max=500" doc:"Only this client. A client that is unknown or inaccessible matches nothing."`
	}
}

// Usage is the number of a client's active users in a period.
type Usage struct {
	ClientID        domain.ClientID `json:"client_id" doc:"Opaque ID of the client, which can be archived."`
	ClientName      string          `json:"client_name" doc:"The client's current name. An archived client keeps its last name, which another client can now have."`
	ExternalID      *string         `json:"external_id" doc:"The partner's own identifier of the client. Null if none is set."`
	PeriodStartOn   domain.Date     `json:"period_start_on" doc:"First day (UTC) of the month or day within start_on and end_on. Periods without a counted day are omitted."`
	ActiveUsersMax  int             `json:"active_users_max" doc:"Highest number of active users in the period; of today, so far. The number is 0 while the client is archived."`
	ActiveUsersLast int             `json:"active_users_last" doc:"Number of active users at the end of the period's last day; of today, now."`
}
