package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func exposureOf(e domain.Exposure) api.Exposure {
	return api.Exposure{
		UserID: e.User, BreachName: e.Breach, Title: e.Title, Domain: e.Domain, BreachOn: e.BreachOn,
		Severity: e.Severity, DataClasses: e.DataClasses,
		FirstSeenAt: domain.At(e.FirstSeenAt), NotifiedAt: domain.MaybeAt(e.NotifiedAt), ResolvedAt: domain.MaybeAt(e.ResolvedAt),
		UpdatedAt: domain.At(e.UpdatedAt),
	}
}

func darkWebUserOf(c domain.ExposureCount) api.DarkWebUser {
	return api.DarkWebUser{
		UserID: c.User, Email: c.Email, FirstName: c.FirstName, LastName: c.LastName,
		ResolvedExposures: c.Resolved, UnresolvedExposures: c.Unresolved, UpdatedAt: domain.At(c.UpdatedAt),
	}
}

func (a *API) getDarkWeb(ctx context.Context, in *api.GetDarkWebInput) (*api.DarkWeb, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	out := &api.DarkWeb{Enabled: t.DarkWebMonitoring, Client: t.ID}
	if !out.Enabled {
		return out, nil
	}

	sum, err := t.DarkWeb(ctx)
	out.Summary = &api.DarkWebSummary{
		UnresolvedExposures: sum.Unresolved, ResolvedExposures: sum.Resolved, AffectedUsers: sum.Affected,
		BySeverity: sum.By, LastFoundAt: domain.MaybeAt(sum.LastFoundAt),
	}
	return out, err
}

func (a *API) listExposures(
	ctx context.Context, in *api.ListExposuresInput, w domain.Window,
) (domain.Slice[domain.Exposure], error) {
	within, err := newPeriod("" /* prefix */, in.Query.Since, in.Query.Until)
	if err != nil {
		return domain.Slice[domain.Exposure]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Exposure]{}, err
	}
	return t.Exposures(ctx, domain.ExposureFilter{
		Period: within, UpdatedSince: toTime(in.Query.UpdatedSince), Sort: domain.Sort(in.Query.Sort),
	}, w)
}

func (a *API) listDarkWebUsers(
	ctx context.Context, in *api.ListDarkWebUsersInput, w domain.Window,
) (domain.Slice[domain.ExposureCount], error) {
	within, err := newPeriod("" /* prefix */, in.Query.Since, in.Query.Until)
	if err != nil {
		return domain.Slice[domain.ExposureCount]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.ExposureCount]{}, err
	}
	return t.ExposureCounts(ctx, within, toTime(in.Query.UpdatedSince), w)
}

func (a *API) resolveExposure(ctx context.Context, in *api.ResolveExposureInput) (*api.Exposure, error) {
	var out api.Exposure
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		u, err := c.LockUser(ctx, in.Path.UserID)
		if err != nil {
			return err
		}
		e, err := u.ResolveExposure(ctx, c, in.Path.BreachName)
		out = exposureOf(e)
		return err
	})
	return &out, err
}
