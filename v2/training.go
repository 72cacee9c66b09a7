package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func courseOf(c domain.Course) api.Course {
	return api.Course{ID: c.ID, Title: c.Title, RenewalMonths: c.RenewalMonths, Languages: c.Languages}
}

func (a *API) listTraining(
	ctx context.Context, in *api.ListTrainingInput, w domain.Window,
) (domain.Slice[domain.Assignment], error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return domain.Slice[domain.Assignment]{}, err
	}
	return u.Training(ctx, toTime(in.Query.UpdatedSince), w)
}

// assignmentOf converts an assignment, as of today: becoming overdue counts as a change.
func (a *API) assignmentOf(t domain.Assignment) api.Assignment {
	today := domain.DateOf(a.db.Now())
	return api.Assignment{
		AssignmentFields: api.AssignmentFields{
			CourseID: t.Course, Title: t.Title, Order: t.Place, AssignedAt: domain.At(t.AssignedAt), DueOn: t.DueOn,
			CompletedAt: domain.MaybeAt(t.CompletedAt), Status: t.Status(today),
		},
		UpdatedAt: domain.At(t.UpdatedAt(today)),
	}
}

// assignmentFilter converts the query to a filter; InvalidRequest if completed_since is not before completed_until.
func assignmentFilter(in *api.ListClientTrainingInput) (domain.AssignmentFilter, error) {
	q := in.Query
	within, err := newPeriod("completed_", q.CompletedSince, q.CompletedUntil)
	f := domain.AssignmentFilter{
		User: filterID[domain.UserKind](q.UserID), Course: filterID[domain.CourseKind](q.CourseID),
		UserStatus: q.UserStatus, UpdatedSince: toTime(q.UpdatedSince), Completed: within, Sort: domain.Sort(q.Sort),
	}
	if q.Status != nil {
		f.Statuses = *q.Status
	}
	return f, err
}

func (a *API) listClientTraining(
	ctx context.Context, in *api.ListClientTrainingInput, w domain.Window,
) (domain.Slice[domain.ClientAssignment], error) {
	filter, err := assignmentFilter(in)
	if err != nil {
		return domain.Slice[domain.ClientAssignment]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.ClientAssignment]{}, err
	}
	return t.Assignments(ctx, filter, w)
}

// clientAssignmentOf converts an assignment of a client's user, as of today.
func (a *API) clientAssignmentOf(t domain.ClientAssignment) api.ClientAssignment {
	own := a.assignmentOf(t.Assignment)
	return api.ClientAssignment{UserID: t.User, AssignmentFields: own.AssignmentFields, UpdatedAt: own.UpdatedAt}
}

func (a *API) listCourses(ctx context.Context, _ *api.ListCoursesInput, w domain.Window) (domain.Slice[domain.Course], error) {
	return a.db.Courses(ctx, w)
}

// audienceOf converts an audience; InvalidRequest if it has a member of another type, or lacks the member that its type
// requires. field is its path in the body.
func audienceOf(a *api.Audience, field string) (domain.Audience, error) {
	out := domain.Audience{Type: a.Type, Collection: a.CollectionID.Value, Users: a.UserIDs}
	var faults []domain.FieldError
	for _, part := range []struct {
		name  string
		kind  domain.AudienceType // the only type with the member
		set   bool
		empty bool
	}{
		{"collection_id", domain.OfCollection, a.CollectionID.Given, !a.CollectionID.Given},
		{"user_ids", domain.NamedUsers, a.UserIDs != nil, len(a.UserIDs) == 0},
	} {
		switch {
		case a.Type == part.kind && part.empty:
			faults = append(faults, domain.FieldError{Field: field + "." + part.name, Message: "is required if type is " + string(part.kind)})
		case a.Type != part.kind && part.set:
			faults = append(faults, domain.FieldError{Field: field + "." + part.name, Message: "is allowed only if type is " + string(part.kind)})
		}
	}
	return out, domain.ErrInvalidFields(faults)
}

// assignTraining assigns the course to the active users of the audience, except those who have it open or completed it
// within its renewal window. So a repeated request changes nothing: a user who has the course open keeps the due date
// and gets no email. Without a due date in the body, it is domain.DueDays from today.
func (a *API) assignTraining(ctx context.Context, req *api.AssignTrainingInput) (*api.TrainingAssigned, error) {
	audience, err := audienceOf(req.Body.Audience, "audience")
	if err != nil {
		return nil, err
	}
	n := domain.CourseFor{
		DueOn: domain.DateOf(a.db.Now()).AddDays(domain.DueDays), Notify: !req.Body.Notify.Given || req.Body.Notify.Value,
	}
	if req.Body.DueOn.Given {
		n.DueOn = req.Body.DueOn.Value
	}

	var assigned domain.Assigned
	err = a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if n.Course, err = a.db.Course(ctx, req.Body.CourseID); err != nil {
			return asInvalidField(err, "course_id", "is not a course in the catalog")
		}
		assigned, err = a.assign(ctx, c, t, n, audience)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &api.TrainingAssigned{
		CourseID: n.Course.ID, AssignedCount: assigned.Count, AlreadyOpenCount: assigned.Open,
		Skipped: make([]api.SkippedUser, len(assigned.Skipped)),
	}
	if n.Notify {
		out.NotifiedCount = assigned.Count
	}
	for i, s := range assigned.Skipped {
		out.Skipped[i] = api.SkippedUser{UserID: s.User, Reason: s.Reason}
	}
	return out, nil
}

// assign assigns a course to an audience at once or, if that has more than domain.AssignAtOnce users, in the
// background. It returns InvalidRequest for an audience that is too large, before it locks anything, and for unknown
// users.
func (a *API) assign(
	ctx context.Context, c *db.Change, t *db.Tenant, n domain.CourseFor, audience domain.Audience,
) (assigned domain.Assigned, err error) {
	size, err := audienceSize(ctx, t, audience)
	switch {
	case err != nil:
		return assigned, err
	case size > domain.MaxAudience:
		return assigned, domain.ErrInvalid("audience",
			fmt.Sprintf("has more than %d users; assign the course to several collections instead", domain.MaxAudience))
	case size > domain.AssignAtOnce:
		return t.AssignLater(ctx, c, n, audience)
	}

	if n.Users, err = t.LockAudience(ctx, c, audience); err != nil {
		return assigned, err
	}
	if audience.Type == domain.NamedUsers {
		err := rejectUnknown("audience.user_ids", audience.Users, n.Users, "is not a user of this client")
		if err != nil {
			return assigned, err
		}
	}
	return t.Assign(ctx, c, n)
}

// audienceSize returns the number of users of an audience, including inactive ones and, in a list of named users,
// unknown ones. It returns InvalidRequest for an unknown collection.
func audienceSize(ctx context.Context, t *db.Tenant, audience domain.Audience) (int, error) {
	switch audience.Type {
	case domain.NamedUsers:
		return len(audience.Users), nil
	case domain.OfCollection:
		k, err := t.Collection(ctx, audience.Collection)
		return k.Members, asInvalidField(err, "audience.collection_id", "is not a collection of this client")
	}
	return t.ActiveUsers + t.InactiveUsers, nil
}

func (a *API) remindTraining(ctx context.Context, in *api.RemindTrainingInput) (*api.TrainingReminded, error) {
	out := api.TrainingReminded{Skipped: []api.UnremindedUser{}}
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		reminded, err := t.RemindOverdue(ctx, c, in.Body.UserIDs) // nil means all users
		if err != nil {
			return err
		}

		var found []domain.UserID
		for _, r := range reminded {
			found = append(found, r.User)
			if r.Mail != nil {
				out.RecipientCount++
			} else {
				out.Skipped = append(out.Skipped, api.UnremindedUser{UserID: r.User, Reason: r.Skip})
			}
		}
		return rejectUnknown("user_ids", in.Body.UserIDs, found, "is not a user of this client") // rolls all back
	})
	return &out, err
}

// asInvalidField converts a NotFound error, of an object that the body names, to InvalidRequest for the field. It
// returns any other error, and nil, as it is.
func asInvalidField(err error, field, message string) error {
	if domain.IsCode(err, domain.NotFound) {
		return domain.ErrInvalid(field, message)
	}
	return err
}
