package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func departmentOf(d domain.Department) api.Department {
	return api.Department{
		Department: d.Name, Users: d.Users, ActiveUsers: d.Active, AverageScore: domain.AverageScore(d.Scores, d.Active),
		OverdueUsers: d.Overdue, ClickRate90d: domain.Percent(d.Clicked, d.Sent),
	}
}

func (a *API) listDepartments(
	ctx context.Context, in *api.ListDepartmentsInput, w domain.Window,
) (domain.Slice[domain.Department], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Department]{}, err
	}
	return t.Departments(ctx, w)
}
