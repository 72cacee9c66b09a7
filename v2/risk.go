package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func userRiskOf(r domain.UserRisk) api.UserRisk {
	return api.UserRisk{
		Score: r.Score, Grade: r.Grade, Baseline: r.Baseline, Role: r.Role, Tallies: r.Tallies,
		Factors: r.Deltas.Factors(), ComputedAt: domain.At(r.ComputedAt),
	}
}

func (a *API) getUserRisk(ctx context.Context, in *api.GetUserRiskInput) (*api.UserRisk, error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return nil, err
	}
	risk, err := u.Risk(ctx)
	out := userRiskOf(risk)
	out.Client = u.Client
	return &out, err
}

func (a *API) getClientRisk(ctx context.Context, in *api.GetClientRiskInput) (*api.ClientRisk, error) {
	t, err := a.db.FreshTenant(ctx, in.Path.ClientID) // refreshes an old summary first
	if err != nil {
		return nil, err
	}
	r, err := t.Risk(ctx)
	return &api.ClientRisk{
		AverageScore: r.AverageScore, Grade: r.Grade, HighRiskUsers: r.HighRiskUsers,
		Distribution: r.Distribution, ByRole: r.ByRole, TopFactors: r.TopFactors, History: r.History,
		ComputedAt: domain.At(r.ComputedAt), Client: t.ID,
	}, err
}
