package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// ListUsage lists what a partner bills.
var ListUsage = op.DeclareList[ListUsageInput, Usage](op.Meta{
	ID: "usage.list", Starred: true, Method: "GET", Path: "/usage", Scope: domain.Read, Since: op.V2_5, Status: 200,
	Summary: "List usage",
	Description: "Returns each client's highest and last number of active users per month or day, for billing. The list includes " +
		"archived clients and is sorted by the client's creation time, then by period.",
	Columns: []string{"client_id", "client_name", "external_id", "period_start_on", "active_users_max", "active_users_last"},
})

// ListUsageInput asks for a page of usage.
type ListUsageInput struct {
	Query struct {
		op.Paging
		StartOn  *domain.Date         `query:"start_on" doc:"First day (UTC). Default: the first day of the month that contains end_on."`
		EndOn    *domain.Date         `query:"end_on" doc:"Last day (UTC), inclusive; at most 399 days after start_on. Days after today are omitted. Default: today."`
		Interval domain.UsageInterval `query:"interval" validate:"enum" default:"month" doc:"Whether each item covers a calendar month or a day. start_on and end_on can shorten the first and last months."`
		ClientID string               `query:"client_id" validate:"max=500" doc:"Only this client. An unknown or inaccessible client matches nothing."`
	}
}

// Usage is the number of a client's active users in a period.
type Usage struct {
	ClientID        domain.ClientID `json:"client_id" doc:"Opaque ID of the client, which may be archived."`
	ClientName      string          `json:"client_name" doc:"The client's current name. An archived client keeps its name, even if another client now has the same name."`
	ExternalID      *string         `json:"external_id" doc:"The partner's own identifier for the client. Null if none is set."`
	PeriodStartOn   domain.Date     `json:"period_start_on" doc:"First day (UTC) of the period, not before start_on. Periods for which the service has no numbers are omitted."`
	ActiveUsersMax  int             `json:"active_users_max" doc:"Highest number of active users in the period (so far, if the period includes today). While a client is archived, it has 0 active users."`
	ActiveUsersLast int             `json:"active_users_last" doc:"Number of active users at the end of the period's last day, or the current number if that day is today."`
}
