package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func clientOf(c domain.Client) api.Client {
	return api.Client{
		ID: c.ID, Name: c.Name, Industry: c.Industry, ExternalID: c.ExternalID,
		CreatedAt: domain.At(c.CreatedAt), UpdatedAt: domain.At(c.UpdatedAt),
		Users: api.ClientUsers{Active: c.ActiveUsers, Inactive: c.InactiveUsers},
		Risk: api.ClientScore{
			AverageScore: c.Summary.AverageScore, Grade: domain.GradeOf(c.Summary.AverageScore),
			HighRiskUsers: c.Summary.HighRiskUsers,
		},
		Training: api.ClientTraining{OnTrackRate: c.Summary.OnTrackRate, OverdueUsers: c.Summary.OverdueUsers},
		Phishing: api.ClientPhishing{
			ClickRate90d: c.Summary.ClickRate90d, ReportRate90d: c.Summary.ReportRate90d,
			ClickRate365d: c.Summary.ClickRate365d, ClickRateTotal: c.Summary.ClickRateTotal,
		},
		Frameworks: c.Frameworks,
		Features:   api.ClientFeatures{DarkWebMonitoring: c.DarkWebMonitoring, DirectorySync: c.DirectorySync},
	}
}

func (a *API) listClients(ctx context.Context, in *api.ListClientsInput, w domain.Window) (domain.Slice[domain.Client], error) {
	q := in.Query
	filter := domain.ClientFilter{
		Query: q.Q, ExternalID: q.ExternalID, Sort: domain.Sort(q.Sort), UpdatedSince: toTime(q.UpdatedSince),
	}
	if q.IDs != nil {
		filter.IDs = q.IDs.IDs
	}
	return a.db.Clients(ctx, filter, w)
}

func (a *API) getClient(ctx context.Context, in *api.GetClientInput) (*api.Client, error) {
	t, err := a.db.FreshTenant(ctx, in.Path.ClientID) // refreshes an old summary first
	if err != nil {
		return nil, err
	}
	return new(clientOf(t.Client)), nil
}

func (a *API) createClient(ctx context.Context, in *api.CreateClientInput) (*api.Client, error) {
	c := domain.Client{
		ID: db.NewID[domain.ClientKind](), Partner: domain.CallerFrom(ctx).Partner,
		Name: in.Body.Name, Industry: in.Body.Industry, ExternalID: in.Body.ExternalID,
		DarkWebMonitoring: true, Frameworks: []string{},
	}
	err := a.db.Change(ctx, func(ctx context.Context, change *db.Change) error {
		c.Summary, c.CreatedAt, c.UpdatedAt = domain.EmptySummary(change.At), change.At, change.At
		change.ClientEvent(domain.ClientCreated, c.ID)
		return change.InsertClient(ctx, c)
	})
	return new(clientOf(c)), err
}

func (a *API) updateClient(ctx context.Context, req *api.UpdateClientInput) (*api.Client, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := c.LockTenant(ctx, req.Path.ClientID)
		if err != nil {
			return err
		}
		changed := domain.Apply(req.Body.Name, &t.Client.Name)
		changed = domain.ApplyNullable(req.Body.Industry, &t.Client.Industry) || changed
		changed = domain.ApplyNullable(req.Body.ExternalID, &t.Client.ExternalID) || changed
		if !changed {
			return nil
		}
		return t.Update(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return a.getClient(ctx, &api.GetClientInput{Path: req.Path})
}
