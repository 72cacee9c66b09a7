package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserCore is what v2 shows of a user everywhere.
type UserCore struct {
	ID                domain.UserID     `json:"id"`
	ClientID          domain.ClientID   `json:"client_id"`
	Email             string            `json:"email" format:"email"`
	FirstName         string            `json:"first_name"`
	LastName          string            `json:"last_name"`
	Department        *string           `json:"department"`
	JobTitle          *string           `json:"job_title"`
	ManagerEmail      *string           `json:"manager_email" format:"email"`
	Status            domain.UserStatus `json:"status"`
	Role              domain.Role       `json:"role" doc:"Weights the user's risk signals."`
	PreferredLanguage domain.Language   `json:"preferred_language"`
	Source            domain.UserSource `json:"source" doc:"Where the record came from."`
	Group             *Group            `json:"group"`
	Training          UserTraining      `json:"training"`
	CreatedAt         op.Time           `json:"created_at"`
	UpdatedAt         op.Time           `json:"updated_at"`

	// What v1 shows of a user and v2 does not: percentages of the simulated
	// mails that the user clicked, ever and within 365 days.
	ClickRateTotal float64 `json:"-"`
	ClickRateYear  float64 `json:"-"`
}

// User is a user in a list, and one just created.
type User struct {
	UserCore
	Risk UserScore `json:"risk"`
}

// UserDetail is a user read alone.
type UserDetail struct {
	UserCore
	Risk        UserRisk        `json:"risk"`
	Collections []CollectionRef `json:"collections"`
	DarkWeb     *UserDarkWeb    `json:"dark_web" doc:"Null where the client has no Dark Web Monitoring."`
}

// UserScore is a user's score and grade.
type UserScore struct {
	Score int          `json:"score"`
	Grade domain.Grade `json:"grade"`
}

// Group is where a user is kept.
type Group struct {
	ID   domain.GroupID `json:"id"`
	Name string         `json:"name"`
}

// UserTraining is where a user stands with the courses.
type UserTraining struct {
	OnTrack      bool        `json:"on_track"`
	OverdueCount int         `json:"overdue_count"`
	NextCourse   *NextCourse `json:"next_course"`
}

// NextCourse is the incomplete course that is due first.
type NextCourse struct {
	CourseID domain.CourseID `json:"course_id"`
	Title    string          `json:"title"`
	DueOn    domain.Date     `json:"due_on"`
}

// CollectionRef names a collection.
type CollectionRef struct {
	ID   domain.CollectionID `json:"id"`
	Name string              `json:"name"`
}

// UserDarkWeb sums up a user's exposures.
type UserDarkWeb struct {
	UnresolvedExposures int              `json:"unresolved_exposures"`
	ResolvedExposures   int              `json:"resolved_exposures"`
	HighestSeverity     *domain.Severity `json:"highest_severity" doc:"Of the unresolved exposures; null without any."`
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
		CreatedAt: op.At(u.CreatedAt), UpdatedAt: op.At(u.UpdatedAt),

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
	}, a.listUsers, userOf)
	a.GetUser = op.Add(&a.Set, op.Meta{
		ID: "users.get", Method: "GET", Path: "/users/:user_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Read a user",
	}, a.getUser)
	a.CreateUser = op.Add(&a.Set, op.Meta{
		ID: "users.create", Method: "POST", Path: "/clients/:client_id/users", Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Create a user", Fails: []domain.Code{domain.Conflict},
	}, a.createUser)
	a.UpdateUser = op.Add(&a.Set, op.Meta{
		ID: "users.update", Method: "PATCH", Path: "/users/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Update a user",
	}, a.updateUser)
}

// ListUsers asks for a page of a client's users.
type ListUsers struct {
	Path  clientPath
	Query struct {
		op.Paging
		Status       domain.UserStatusFilter `query:"status" validate:"enum" default:"all"`
		Q            string                  `query:"q" validate:"max=500" doc:"What the name or the email contains, in any case."`
		Role         domain.Role             `query:"role" validate:"omitempty,enum"`
		CollectionID string                  `query:"collection_id" validate:"max=500" doc:"Only members of this collection."`
		UpdatedSince *op.Time                `query:"updated_since" doc:"Only users that changed at or after this time."`
		Sort         domain.UserSort         `query:"sort" validate:"enum" default:"created_at"`
	}
}

func (a *API) listUsers(ctx context.Context, in *ListUsers, w domain.Window) (domain.Slice[domain.User], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.User]{}, err
	}

	q := in.Query
	filter := domain.UserFilter{
		Query: q.Q, Role: q.Role, UpdatedSince: bound(q.UpdatedSince), Sort: domain.Sort(q.Sort),
	}
	if q.Status != domain.AllStatuses {
		filter.Status = domain.UserStatus(q.Status)
	}
	if q.CollectionID != "" {
		// A text that is no id is the id of no collection: nobody is in it.
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
