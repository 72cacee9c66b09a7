package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserCore is what v2 shows of a user everywhere.
type UserCore struct {
	ID                domain.UserID     `json:"id" doc:"Opaque id of the user."`
	ClientID          domain.ClientID   `json:"client_id" doc:"The client that the user belongs to."`
	Email             string            `json:"email" format:"email" doc:"The user's address, in lower case, unique within the client."`
	FirstName         string            `json:"first_name" doc:"First name; may be empty."`
	LastName          string            `json:"last_name" doc:"Last name; may be empty."`
	Department        *string           `json:"department" doc:"Department. Null where it is not known."`
	JobTitle          *string           `json:"job_title" doc:"Job title. Null where it is not known."`
	ManagerEmail      *string           `json:"manager_email" format:"email" doc:"Address of the user's manager. Null where it is not known."`
	Status            domain.UserStatus `json:"status" doc:"Whether the user takes part: inactive users get no courses and no mails."`
	Role              domain.Role       `json:"role" doc:"The risk role, which weights the user's signals."`
	PreferredLanguage domain.Language   `json:"preferred_language" doc:"Language of courses and mails."`
	Source            domain.UserSource `json:"source" doc:"Where the record came from: a directory, by hand, or this interface."`
	Group             *Group            `json:"group" doc:"The directory group or manual group that the user is in. Null for none."`
	Training          UserTraining      `json:"training" doc:"Where the user stands with the courses."`
	CreatedAt         domain.Time       `json:"created_at" doc:"When the user was created."`
	UpdatedAt         domain.Time       `json:"updated_at" doc:"When a field of the user last changed, the score included."`

	// What v1 shows of a user and v2 does not: percentages of the simulated
	// mails that the user clicked, ever and within 365 days.
	ClickRateTotal float64 `json:"-"`
	ClickRateYear  float64 `json:"-"`
}

// User is a user in a list, and one just created.
type User struct {
	UserCore
	Risk UserScore `json:"risk" doc:"The user's risk score."`
}

// UserDetail is a user read alone.
type UserDetail struct {
	UserCore
	Risk        UserRisk        `json:"risk" doc:"The user's risk score and what it is made of."`
	Collections []CollectionRef `json:"collections" doc:"The collections that the user is a member of."`
	DarkWeb     *UserDarkWeb    `json:"dark_web" doc:"The user's exposures. Null where the client has no Dark Web Monitoring."`
}

// UserScore is a user's score and grade.
type UserScore struct {
	Score int          `json:"score" doc:"Risk score, 0 to 1000; higher is safer."`
	Grade domain.Grade `json:"grade" doc:"Grade of the score: A from 800, B from 700, C from 600, D from 400, F below."`
}

// Group is where a user is kept.
type Group struct {
	ID   domain.GroupID `json:"id" doc:"Opaque id of the group."`
	Name string         `json:"name" doc:"The group's name."`
}

// UserTraining is where a user stands with the courses.
type UserTraining struct {
	OnTrack      bool        `json:"on_track" doc:"Whether no course is overdue."`
	OverdueCount int         `json:"overdue_count" doc:"Number of overdue courses."`
	NextCourse   *NextCourse `json:"next_course" doc:"The incomplete course that is due first, overdue ones included. Null where nothing is left to do."`
}

// NextCourse is the incomplete course that is due first.
type NextCourse struct {
	CourseID domain.CourseID `json:"course_id" doc:"Opaque id of the course."`
	Title    string          `json:"title" doc:"The course's title."`
	DueOn    domain.Date     `json:"due_on" doc:"The day (UTC) by whose end the course is to be completed."`
}

// CollectionRef names a collection.
type CollectionRef struct {
	ID   domain.CollectionID `json:"id" doc:"Opaque id of the collection."`
	Name string              `json:"name" doc:"The collection's name."`
}

// UserDarkWeb sums up a user's exposures.
type UserDarkWeb struct {
	UnresolvedExposures int              `json:"unresolved_exposures" doc:"Number of exposures that are not resolved."`
	ResolvedExposures   int              `json:"resolved_exposures" doc:"Number of exposures that are resolved."`
	HighestSeverity     *domain.Severity `json:"highest_severity" doc:"Highest severity of the unresolved exposures. Null without any."`
}

func userOf(u domain.User) User {
	return User{UserCore: userCoreOf(u), Risk: UserScore{Score: u.Score, Grade: domain.GradeOf(u.Score)}}
}

func userCoreOf(u domain.User) UserCore {
	core := UserCore{
		ID: u.ID, ClientID: u.Client, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		Department: u.Department, JobTitle: u.JobTitle, ManagerEmail: u.ManagerEmail, Status: u.Status, Role: u.Role,
		PreferredLanguage: u.Language, Source: u.Source,
		Training:  UserTraining{OnTrack: u.Training.OnTrack(), OverdueCount: u.Training.Overdue},
		CreatedAt: domain.At(u.CreatedAt), UpdatedAt: domain.At(u.UpdatedAt),

		ClickRateTotal: domain.Percent(u.Phishing.Clicked, u.Phishing.Sent),
		ClickRateYear:  domain.Percent(u.Phishing.ClickedYear, u.Phishing.SentYear),
	}
	if u.Group != nil {
		core.Group = &Group{ID: u.Group.ID, Name: u.Group.Name}
	}
	if next := u.Training.Next; next != nil {
		core.Training.NextCourse = &NextCourse{CourseID: next.Course, Title: next.Title, DueOn: next.DueOn}
	}
	return core
}

func userDetailOf(u domain.UserDetail) *UserDetail {
	out := &UserDetail{UserCore: userCoreOf(u.User), Risk: userRiskOf(u.Risk), Collections: make([]CollectionRef, len(u.Collections))}
	for i, c := range u.Collections {
		out.Collections[i] = CollectionRef(c)
	}
	if u.DarkWeb != nil {
		out.DarkWeb = &UserDarkWeb{UnresolvedExposures: u.DarkWeb.Unresolved, ResolvedExposures: u.DarkWeb.Resolved, HighestSeverity: u.DarkWeb.Highest}
	}
	return out
}

func (a *API) declareUsers() {
	a.ListUsers = op.AddList(&a.Set, op.Meta{
		ID: "users.list", Method: "GET", Path: "/clients/:client_id/users", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the users of a client with their scores",
		Description: "Returns the users of a client, active and inactive, each with the risk score. Prefer it to " +
			"reading the risk of users one by one.",
		Columns: []string{"id", "email", "first_name", "last_name", "status", "role", "risk.score", "risk.grade", "training.overdue_count"},
	}, a.listUsers, userOf)

	a.GetUser = op.Add(&a.Set, op.Meta{
		ID: "users.get", Starred: true, Method: "GET", Path: "/users/:user_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Read a user",
		Description: "Returns one user with the score and what it is made of, the collections, and a summary of the " +
			"exposures.",
	}, a.getUser)

	a.CreateUser = op.Add(&a.Set, op.Meta{
		ID: "users.create", Method: "POST", Path: "/clients/:client_id/users", Scope: domain.Write, Since: op.V2_2, Status: 201, ReachesOut: true,
		Summary: "Create a user",
		Description: "Creates an active user in the client's Manual group and assigns the courses of the program and " +
			"of the frameworks at once. A user with the same email who is found by a later directory sync is " +
			"merged with this one.", Fails: []domain.Code{domain.Conflict},
	}, a.createUser)

	a.UpdateUser = op.Add(&a.Set, op.Meta{
		ID: "users.update", Method: "PATCH", Path: "/users/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Update a user",
		Description: "Changes the fields that are sent and leaves the others; users are not deleted, but made inactive: they take " +
			"no part in training and phishing then. Each field that is set here overrides the directory: later syncs leave it as it is.",
	}, a.updateUser)
}

// ListUsers asks for a page of a client's users.
type ListUsers struct {
	Path  clientPath
	Query struct {
		op.Paging
		Status       domain.UserStatusFilter `query:"status" validate:"enum" default:"all" doc:"Only users in this state."`
		Q            string                  `query:"q" validate:"max=500" doc:"Only users whose name or email contains this text, in any case."`
		Role         domain.Role             `query:"role" validate:"omitempty,enum" doc:"Only users with this risk role."`
		CollectionID string                  `query:"collection_id" validate:"max=500" doc:"Only members of this collection."`
		Overdue      *bool                   `query:"overdue" cursors:"late" doc:"Only users with an overdue course (true), or only those without one (false)."`
		UpdatedSince *domain.Time            `query:"updated_since" doc:"Only users that changed at or after this time."`
		Sort         domain.UserSort         `query:"sort" validate:"enum" default:"created_at" doc:"Order of the list; a leading minus sign reverses it. By risk_score the riskiest come first, for low scores are the risky ones."`
	}
}

func (a *API) listUsers(ctx context.Context, in *ListUsers, w domain.Window) (domain.Slice[domain.User], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}

	q := in.Query
	filter := domain.UserFilter{
		Query: q.Q, Role: q.Role, Overdue: q.Overdue, UpdatedSince: bound(q.UpdatedSince), Sort: domain.Sort(q.Sort),
	}
	if q.Status != domain.AllStatuses {
		filter.Status = domain.UserStatus(q.Status)
	}
	if q.CollectionID != "" {
		// A text that is no id is the id of no collection, which has no members.
		id, _ := domain.ParseID[domain.CollectionKind](q.CollectionID)
		filter.Collection = &id
	}
	return t.Users(ctx, filter, w)
}

// GetUser asks for one user.
type GetUser struct {
	Path userPath
}

func (a *API) getUser(ctx context.Context, in *GetUser) (*UserDetail, error) {
	return a.userDetail(ctx, in.Path.UserID)
}

func (a *API) userDetail(ctx context.Context, id domain.UserID) (*UserDetail, error) {
	u, err := a.db.User(ctx, id)
	if err != nil {
		return nil, err
	}
	detail, err := u.Detail(ctx)
	if err != nil {
		return nil, err
	}
	return userDetailOf(detail), nil
}
