package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

func frameworkOf(f domain.CatalogueFramework) api.Framework {
	out := api.Framework{
		ID: f.ID, Name: f.Name, Category: f.Category,
		Measures: make([]api.FrameworkMeasure, len(f.Measures)), Courses: make([]api.FrameworkCourse, len(f.Courses)),
	}
	for i, key := range f.Measures {
		m := key.Spec()
		out.Measures[i] = api.FrameworkMeasure{Key: m.Key, Name: m.Name, Module: m.Module, Target: m.Target}
	}
	for i, c := range f.Courses {
		out.Courses[i] = api.FrameworkCourse{CourseID: c.Course, Title: c.Title}
		if c.Role != "" {
			out.Courses[i].Role = &c.Role
		}
	}
	return out
}

func frameworkAssignmentOf(a domain.FrameworkAssignment) api.FrameworkAssignment {
	out := api.FrameworkAssignment{
		ID:        a.ID,
		Framework: api.FrameworkRef{ID: a.Framework.ID, Name: a.Framework.Name, Category: a.Framework.Category},
		Audience:  api.FrameworkAudience{Type: a.Audience},
		Modules:   api.FrameworkModules(a.Modules), CreatedAt: domain.At(a.CreatedAt), UpdatedAt: domain.At(a.UpdatedAt),
		Evaluation: api.FrameworkEvaluation{
			Met: a.Evaluation.Met, Total: a.Evaluation.Total, Percentage: a.Evaluation.Percentage(),
			Requirements: make([]api.FrameworkRequirement, len(a.Evaluation.Requirements)),
			EvaluatedAt:  domain.At(a.Evaluation.At),
		},
	}
	for i, r := range a.Evaluation.Requirements {
		m := r.Key.Spec()
		out.Evaluation.Requirements[i] = api.FrameworkRequirement{
			Key: r.Key, Name: m.Name, Met: r.Met, Value: r.Value, Target: &m.Target, Detail: r.Detail,
		}
	}

	switch a.Audience {
	case domain.FrameworkForGroup:
		out.Audience.ID = new(domain.GroupID(a.AudienceID).String())
	case domain.FrameworkForCollection:
		out.Audience.ID = new(domain.CollectionID(a.AudienceID).String())
	}
	if a.AudienceName != "" {
		out.Audience.Name = &a.AudienceName
	}
	return out
}

func (a *API) listFrameworks(
	ctx context.Context, _ *api.ListFrameworksInput, w domain.Window,
) (domain.Slice[domain.CatalogueFramework], error) {
	return a.db.Frameworks(ctx, w)
}

// listClientFrameworks lists a client's framework assignments. For the first page it evaluates all that are stale.
func (a *API) listClientFrameworks(
	ctx context.Context, in *api.ListClientFrameworksInput, w domain.Window,
) (none domain.Slice[domain.FrameworkAssignment], err error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return none, err
	}
	if w.After == nil {
		if err := t.EvaluateStale(ctx); err != nil {
			return none, err
		}
	}
	return t.Frameworks(ctx, toTime(in.Query.UpdatedSince), w)
}

// getFramework evaluates the client's stale assignments, and then reads the requested one.
func (a *API) getFramework(ctx context.Context, in *api.GetFrameworkInput) (*api.FrameworkAssignment, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	if err := t.EvaluateStale(ctx); err != nil {
		return nil, err
	}
	found, err := t.Framework(ctx, in.Path.AssignmentID)
	return new(frameworkAssignmentOf(found)), err
}

// modulesOf returns the modules of the body. A module that it leaves out is on, except Policies.
func modulesOf(m api.AssignModules) domain.FrameworkModules {
	out := domain.FrameworkModules{Training: true, Phishing: true, Reporting: true}
	domain.Apply(m.Training, &out.Training)
	domain.Apply(m.Phishing, &out.Phishing)
	domain.Apply(m.Policies, &out.Policies)
	domain.Apply(m.Reporting, &out.Reporting)
	return out
}

// assignFramework assigns a framework, and its courses, to an audience; without one in the body, to all users. It
// returns InvalidRequest for an audience that is invalid or too large. A dry run is rolled back by op.Set.DryRun.
func (a *API) assignFramework(ctx context.Context, req *api.AssignFrameworkInput) (out *api.FrameworkAssigned, err error) {
	n := domain.NewFrameworkAssignment{
		ID: db.NewID[domain.FrameworkAssignmentKind](), Modules: modulesOf(req.Body.Modules.Value),
		Audience: domain.Audience{Type: domain.AllUsers},
	}
	n.Framework, _ = domain.FrameworkByID(string(req.Body.FrameworkID)) // validation accepts only existing ids
	if req.Body.Audience.Given {
		if n.Audience, err = audienceOf(&req.Body.Audience.Value, "audience"); err != nil {
			return nil, err
		}
	}

	err = a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		out, err = a.assignFrameworkTo(ctx, c, t, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.DryRun = req.Body.DryRun
	return out, nil
}

// assignFrameworkTo is the part of assignFramework within the Change.
func (a *API) assignFrameworkTo(
	ctx context.Context, c *db.Change, t *db.Tenant, n domain.NewFrameworkAssignment,
) (*api.FrameworkAssigned, error) {
	if err := c.LockAudiences(ctx, t.ID); err != nil {
		return nil, err
	}
	size, err := audienceSize(ctx, t, n.Audience)
	if err == nil && size > domain.MaxAudience {
		err = domain.ErrInvalid("audience",
			fmt.Sprintf("has more than %d users; assign the framework to several collections instead", domain.MaxAudience))
	}
	if err != nil {
		return nil, err
	}
	n.Size = size
	if n.Audience.Type == domain.NamedUsers {
		if n.Audience, err = insertAudience(ctx, c, t, n); err != nil {
			return nil, err
		}
	}

	courses, err := t.AssignFramework(ctx, c, n)
	if err != nil {
		return nil, err
	}
	out := &api.FrameworkAssigned{CoursesToSchedule: make([]api.CourseToSchedule, len(courses))}
	for i, s := range courses {
		out.CoursesToSchedule[i] = api.CourseToSchedule{CourseID: s.Course, Title: s.Title, UserCount: s.Users}
	}
	if err := c.Flush(ctx); err != nil { // the assignment shows the effects
		return nil, err
	}
	assignment, err := t.ReadFramework(ctx, c, n.ID)
	out.Assignment = frameworkAssignmentOf(assignment)
	return out, err
}

// insertAudience inserts a collection of the named users of n.Audience, and returns an audience of this collection
// (decisions 7.7). Its name is that of the framework, with a number if that is taken. Unknown users are InvalidRequest.
func insertAudience(
	ctx context.Context, c *db.Change, t *db.Tenant, n domain.NewFrameworkAssignment,
) (domain.Audience, error) {
	users, err := t.LockUsers(ctx, c, n.Audience.Users)
	if err != nil {
		return n.Audience, err
	}
	if err := rejectUnknown("audience.user_ids", n.Audience.Users, users, "is not a user of this client"); err != nil {
		return n.Audience, err
	}
	k, err := t.InsertCollectionUniquely(ctx, c, domain.Collection{
		ID: db.NewID[domain.CollectionKind](), Client: t.ID, Name: n.Framework.Name, CreatedBy: domain.ByAPI,
		CreatedAt: c.At, UpdatedAt: c.At,
	}, users)
	return domain.Audience{Type: domain.OfCollection, Collection: k.ID}, err
}

func (a *API) removeFramework(ctx context.Context, in *api.RemoveFrameworkInput) (*op.NoContent, error) {
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.RemoveFramework(ctx, c, in.Path.AssignmentID)
	})
	return &op.NoContent{}, err
}
