package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func (a *API) listUsage(ctx context.Context, in *api.ListUsageInput, w domain.Window) (domain.Slice[domain.Usage], error) {
	q := in.Query
	return a.db.Usage(ctx, domain.UsageFilter{
		Start: q.StartOn, End: q.EndOn, Interval: q.Interval, Client: filterID[domain.ClientKind](q.ClientID),
	}, w)
}

func usageOf(u domain.Usage) api.Usage {
	return api.Usage{
		ClientID: u.Client, ClientName: u.ClientName, ExternalID: u.ExternalID, PeriodStartOn: u.StartOn,
		ActiveUsersMax: u.ActiveUsersMax, ActiveUsersLast: u.ActiveUsersLast,
	}
}
