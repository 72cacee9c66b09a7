package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func userOf(u domain.User) api.User {
	return api.User{UserCore: userCoreOf(u), Risk: api.UserScore{Score: u.Score, Grade: domain.GradeOf(u.Score)}}
}

func userCoreOf(u domain.User) api.UserCore {
	core := api.UserCore{
		ID: u.ID, ClientID: u.Client, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		Department: u.Department, JobTitle: u.JobTitle, ManagerEmail: u.ManagerEmail, Status: u.Status, Role: u.Role,
		PreferredLanguage: u.Language, Source: u.Source,
		Training:  api.UserTraining{OnTrack: u.Training.OnTrack(), OverdueCount: u.Training.Overdue},
		CreatedAt: domain.At(u.CreatedAt), UpdatedAt: domain.At(u.UpdatedAt),
		Phishing: api.UserPhishing{
			Sent: u.Phishing.Sent, Clicked: u.Phishing.Clicked, ClickRate: domain.Percent(u.Phishing.Clicked, u.Phishing.Sent),
			Sent365d: u.Phishing.SentYear, Clicked365d: u.Phishing.ClickedYear,
			ClickRate365d: domain.Percent(u.Phishing.ClickedYear, u.Phishing.SentYear),
		},
	}
	if u.Group != nil {
		core.Group = &api.Group{ID: u.Group.ID, Name: u.Group.Name}
	}
	if next := u.Training.Next; next != nil {
		core.Training.NextCourse = &api.NextCourse{CourseID: next.Course, Title: next.Title, DueOn: next.DueOn}
	}
	return core
}

func userDetailOf(u domain.UserDetail) *api.UserDetail {
	out := &api.UserDetail{UserCore: userCoreOf(u.User), Risk: userRiskOf(u.Risk), Collections: make([]api.CollectionRef, len(u.Collections)), Overrides: domain.OrderedOverrides(u.Overrides)}
	for i, c := range u.Collections {
		out.Collections[i] = api.CollectionRef(c)
	}
	if u.DarkWeb != nil {
		out.DarkWeb = &api.UserDarkWeb{UnresolvedExposures: u.DarkWeb.Unresolved, ResolvedExposures: u.DarkWeb.Resolved, HighestSeverity: u.DarkWeb.Highest}
	}
	return out
}

func (a *API) findUsers(ctx context.Context, in *api.FindUsersInput, w domain.Window) (domain.Slice[domain.User], error) {
	return a.db.UsersByEmail(ctx, in.Query.Email, w)
}

func (a *API) listUsers(ctx context.Context, in *api.ListUsersInput, w domain.Window) (domain.Slice[domain.User], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}

	q := in.Query
	filter := domain.UserFilter{
		Query: q.Q, Role: q.Role, Overdue: q.Overdue, UpdatedSince: toTime(q.UpdatedSince), Sort: domain.Sort(q.Sort),
		Collection: filterID[domain.CollectionKind](q.CollectionID), Group: filterID[domain.GroupKind](q.GroupID),
		Department: q.Department, NoDepartment: q.NoDepartment, ManagerEmail: q.ManagerEmail, Grade: q.Grade,
	}
	if q.Status != domain.AllStatuses {
		filter.Status = domain.UserStatus(q.Status)
	}
	return t.Users(ctx, filter, w)
}

func (a *API) getUser(ctx context.Context, in *api.GetUserInput) (*api.UserDetail, error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return nil, err
	}
	detail, err := u.Detail(ctx)
	return userDetailOf(detail), err
}
