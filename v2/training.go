package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Assignment is where a user stands with a course, as v2 shows it.
type Assignment struct {
	CourseID    domain.CourseID         `json:"course_id" doc:"Opaque id of the course."`
	Title       string                  `json:"title" doc:"The course's title."`
	Order       int                     `json:"order" doc:"The course's place in the user's list, from 1: the client's program first."`
	AssignedAt  domain.Time             `json:"assigned_at" doc:"When the course was given to the user."`
	DueOn       domain.Date             `json:"due_on" doc:"The day (UTC) by whose end the course is to be completed."`
	CompletedAt *domain.Time            `json:"completed_at" doc:"When the user completed the course. Null for not yet, and where the course is due again."`
	Status      domain.AssignmentStatus `json:"status" doc:"Whether the course is open, completed or overdue today (UTC)."`
}

// Course is a course of the catalogue as v2 shows it.
type Course struct {
	ID            domain.CourseID   `json:"id" doc:"Opaque id of the course."`
	Title         string            `json:"title" doc:"The course's title."`
	RenewalMonths int               `json:"renewal_months" doc:"How many months having completed the course counts; 0 for good."`
	Languages     []domain.Language `json:"languages" doc:"The languages that the course is available in."`
}

func courseOf(c domain.Course) Course {
	return Course{ID: c.ID, Title: c.Title, RenewalMonths: c.RenewalMonths, Languages: c.Languages}
}

func (a *API) declareTraining() {
	a.ListTraining = op.AddList(&a.Set, op.Meta{
		ID: "users.training", Tag: "training", Starred: true, Method: "GET", Path: "/users/:user_id/training", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the courses that a user was given",
		Description: "Returns each course that the user was given, once, in the order of the user's list, with its " +
			"due date and whether it is completed.",
		Columns: []string{"course_id", "title", "status", "assigned_at", "due_on", "completed_at"},
	}, a.listTraining, a.assignmentOf)
	a.ListCourses = op.AddList(&a.Set, op.Meta{
		ID: "courses.list", Tag: "training", Starred: true, Method: "GET", Path: "/courses", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the catalogue of courses",
		Description: "Returns the courses that `course_id` stands for, by their creation. All clients share them.",
		Columns:     []string{"id", "title", "renewal_months"},
	}, a.listCourses, courseOf)
	a.AssignTraining = op.Add(&a.Set, op.Meta{
		ID: "training.assign", Method: "POST", Path: "/clients/:client_id/training/assignments", Scope: domain.Write, Since: op.V2_2, Status: 200, ReachesOut: true,
		Summary: "Give a course to users of a client",
		Description: "Gives a course to the active users of an audience. Users who completed it within its renewal window " +
			"are skipped and listed; those who have it open keep it, so asking again changes nothing.",
	}, a.assignTraining)
	a.RemindTraining = op.Add(&a.Set, op.Meta{
		ID: "training.remind", Starred: true, Method: "POST", Path: "/clients/:client_id/training/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Remind users of their overdue courses",
		Description: "Sends one mail that names all overdue courses to each of the users who is active and has some. " +
			"A user is reminded once a day (UTC), and a client as a whole once a day; more often is 429.",
	}, a.remindTraining)
}

// ListTraining asks for a page of a user's courses, in their order.
type ListTraining struct {
	Path  userPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only courses that were assigned, completed or became overdue, or whose place in the list changed, at or after this time."`
	}
}

func (a *API) listTraining(
	ctx context.Context, in *ListTraining, w domain.Window,
) (domain.Slice[domain.Assignment], error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return domain.Slice[domain.Assignment]{}, err
	}
	return u.Training(ctx, bound(in.Query.UpdatedSince), w)
}

// assignmentOf shows an assignment with its status as of today.
func (a *API) assignmentOf(t domain.Assignment) Assignment {
	return Assignment{
		CourseID: t.Course, Title: t.Title, Order: t.Place, AssignedAt: domain.At(t.AssignedAt), DueOn: t.DueOn,
		CompletedAt: domain.MaybeAt(t.CompletedAt), Status: t.Status(domain.DateOf(a.db.Now())),
	}
}

// ListCourses asks for a page of the catalogue, by creation.
type ListCourses struct {
	Query struct{ op.Paging }
}

func (a *API) listCourses(ctx context.Context, _ *ListCourses, w domain.Window) (domain.Slice[domain.Course], error) {
	return a.db.Courses(ctx, w)
}

// Audience is some of a client's users, in exactly one of its shapes.
type Audience struct {
	Type         domain.AudienceType                  `json:"type" validate:"required,enum" doc:"Which users: all of the client's, the members of a collection, or those named."`
	CollectionID domain.Optional[domain.CollectionID] `json:"collection_id,omitzero" doc:"The collection. Required when type is collection, and else left out."`
	UserIDs      []domain.UserID                      `json:"user_ids,omitzero" validate:"max=10000" doc:"The users. Required when type is users, and else left out."`
}

// shape is the audience in the domain's terms, or what is wrong with it. field
// is where it stands in the body.
func (a *Audience) shape(field string) (domain.Audience, error) {
	out := domain.Audience{Type: a.Type, Collection: a.CollectionID.Value, Users: a.UserIDs}
	var faults []domain.FieldError
	for _, part := range []struct {
		name  string
		of    domain.AudienceType
		given bool
		empty bool
	}{
		{"collection_id", domain.OfCollection, a.CollectionID.Given, !a.CollectionID.Given},
		{"user_ids", domain.NamedUsers, a.UserIDs != nil, len(a.UserIDs) == 0},
	} {
		switch {
		case a.Type == part.of && part.empty:
			faults = append(faults, domain.FieldError{Field: field + "." + part.name, Message: "is required when type is " + string(part.of)})
		case a.Type != part.of && part.given:
			faults = append(faults, domain.FieldError{Field: field + "." + part.name, Message: "is taken only when type is " + string(part.of)})
		}
	}
	if faults != nil {
		return out, domain.ErrInvalidFields(faults)
	}
	return out, nil
}

// AssignTraining asks for a course to be given to users of a client.
type AssignTraining struct {
	Path clientPath
	Body struct {
		CourseID domain.CourseID              `json:"course_id" validate:"required" doc:"A course of the catalogue."`
		Audience *Audience                    `json:"audience" validate:"required" doc:"Whom to give the course to."`
		DueOn    domain.Optional[domain.Date] `json:"due_on,omitzero" doc:"The day (UTC) by whose end the course is to be completed. Left out, 30 days from today."`
		Notify   domain.Optional[bool]        `json:"notify,omitzero" default:"true" doc:"Whether to send each user who is given the course a mail now."`
	}
}

// TrainingAssigned is what became of an AssignTraining.
type TrainingAssigned struct {
	CourseID         domain.CourseID `json:"course_id" doc:"Opaque id of the course."`
	AssignedCount    int             `json:"assigned_count" doc:"Number of users who are given the course; beyond an audience of 10,000 users, shortly after the answer."`
	NotifiedCount    int             `json:"notified_count" doc:"Number of users who are sent a mail about it: those who are given the course, or none where notify is false."`
	AlreadyOpenCount int             `json:"already_open_count" doc:"Number of users who have the course open already. They keep it, with its due date, get no mail, and are not listed in skipped."`
	Skipped          []SkippedUser   `json:"skipped" doc:"Users of the audience who are not given the course."`
}

// SkippedUser is a user of the audience who was not given the course.
type SkippedUser struct {
	UserID domain.UserID     `json:"user_id" doc:"Opaque id of the user."`
	Reason domain.SkipReason `json:"reason" doc:"Why: the course was completed within its renewal window, or the user is inactive."`
}

// assignTraining gives the course to those of the audience who are active and
// have it neither open nor completed within its renewal window. Asking again
// therefore changes nothing: a user who has the course open keeps the due date
// of the first mail, and gets no second one.
func (a *API) assignTraining(ctx context.Context, req *AssignTraining) (*TrainingAssigned, error) {
	audience, err := req.Body.Audience.shape("audience")
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
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, req.Path.ClientID)
		if err != nil {
			return err
		}
		if n.Course, err = a.db.Course(ctx, req.Body.CourseID); err != nil {
			return unknownField(err, "course_id", "is not a course of the catalogue")
		}
		assigned, err = a.assign(ctx, c, t, n, audience)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &TrainingAssigned{
		CourseID: n.Course.ID, AssignedCount: assigned.Count, AlreadyOpenCount: assigned.Open,
		Skipped: make([]SkippedUser, len(assigned.Skipped)),
	}
	if n.Notify {
		out.NotifiedCount = assigned.Count
	}
	for i, s := range assigned.Skipped {
		out.Skipped[i] = SkippedUser{UserID: s.User, Reason: s.Reason}
	}
	return out, nil
}

// assign gives a course to an audience: at once, or later where it is large. An
// audience that is too large is refused before anything is locked.
func (a *API) assign(
	ctx context.Context, c *db.Change, t *db.Tenant, n domain.CourseFor, audience domain.Audience,
) (assigned domain.Assigned, err error) {
	size, err := sizeOf(ctx, t, audience)
	switch {
	case err != nil:
		return assigned, err
	case size > domain.MaxAudience:
		return assigned, domain.ErrInvalid("audience",
			fmt.Sprintf("has more than %d users; assign the course to collections in turn", domain.MaxAudience))
	case size > domain.AssignAtOnce:
		return t.AssignLater(ctx, c, n, audience)
	}

	if n.Users, err = t.LockAudience(ctx, c, audience); err != nil {
		return assigned, err
	}
	if audience.Type == domain.NamedUsers {
		err := unknownItems("audience.user_ids", audience.Users, n.Users, "is not a user of this client")
		if err != nil {
			return assigned, err
		}
	}
	if assigned, err = t.Assign(ctx, c, n); err == nil {
		c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, t.ID, assigned.Mails...) })
	}
	return assigned, err
}

// sizeOf is how many users an audience has, inactive ones included.
func sizeOf(ctx context.Context, t *db.Tenant, audience domain.Audience) (int, error) {
	switch audience.Type {
	case domain.NamedUsers:
		return len(audience.Users), nil
	case domain.OfCollection:
		k, err := t.Collection(ctx, audience.Collection)
		return k.Members, unknownField(err, "audience.collection_id", "is not a collection of this client")
	}
	return t.ActiveUsers + t.InactiveUsers, nil
}

// RemindTraining asks for reminders of overdue courses.
type RemindTraining struct {
	Path clientPath
	Body struct {
		UserIDs []domain.UserID `json:"user_ids,omitzero" validate:"omitempty,min=1,max=500" doc:"Whom to remind. Left out, every active user of the client with overdue courses."`
	} `optional:"true"`
}

// TrainingReminded is what became of a RemindTraining.
type TrainingReminded struct {
	RecipientCount int              `json:"recipient_count" doc:"Number of users who are sent a reminder."`
	Skipped        []UnremindedUser `json:"skipped" doc:"Users who are not sent one."`
}

// UnremindedUser is a user who is not sent a reminder.
type UnremindedUser struct {
	UserID domain.UserID       `json:"user_id" doc:"Opaque id of the user."`
	Reason domain.ReminderSkip `json:"reason" doc:"Why: nothing is overdue, the user is inactive, or was reminded on this day (UTC)."`
}

func (a *API) remindTraining(ctx context.Context, in *RemindTraining) (*TrainingReminded, error) {
	out := TrainingReminded{Skipped: []UnremindedUser{}}
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		reminded, err := t.RemindOverdue(ctx, c, in.Body.UserIDs)
		if err != nil {
			return err
		}

		var found []domain.UserID
		var mails []domain.MessageID
		for _, r := range reminded {
			if found = append(found, r.User); r.Mail != nil {
				mails = append(mails, *r.Mail)
			} else {
				out.Skipped = append(out.Skipped, UnremindedUser{UserID: r.User, Reason: r.Skip})
			}
		}
		out.RecipientCount = len(mails)
		c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, t.ID, mails...) })
		return unknownItems("user_ids", in.Body.UserIDs, found, "is not a user of this client")
	})
	return &out, err
}

// unknownField turns the NotFound of an object that the body names into what is
// wrong with the body.
func unknownField(err error, field, message string) error {
	if domain.IsCode(err, domain.NotFound) {
		return domain.ErrInvalid(field, message)
	}
	return err
}
