package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserCore is the part of a user that all of v2's forms of users have.
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
	Phishing          UserPhishing      `json:"phishing" since:"2.4" doc:"The simulated mails that the user was sent, and those clicked: submitted credentials and opened attachments count as clicks, what mail scanners do does not."`
	CreatedAt         domain.Time       `json:"created_at" doc:"When the user was created."`
	UpdatedAt         domain.Time       `json:"updated_at" doc:"When a field of the user last changed, the score included."`
}

// User is a user as lists and CreateUser show it.
type User struct {
	UserCore
	Risk UserScore `json:"risk" doc:"The user's risk score."`
}

// UserDetail is a single user, as GetUser, UpdateUser and events show it.
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

// Group is the group that a user belongs to.
type Group struct {
	ID   domain.GroupID `json:"id" doc:"Opaque id of the group."`
	Name string         `json:"name" doc:"The group's name."`
}

// UserTraining sums up a user's courses.
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

// UserPhishing counts a user's simulated mails, in total and in the last 365 days.
type UserPhishing struct {
	Sent          int     `json:"sent" doc:"Number of simulated mails that the user was sent."`
	Clicked       int     `json:"clicked" doc:"Number of those that the user clicked."`
	ClickRate     float64 `json:"click_rate" doc:"Percentage of them that the user clicked, 0 to 100. 0 of none."`
	Sent365d      int     `json:"sent_365d" doc:"Number of simulated mails sent on one of the last 365 days (UTC), today among them. Days that pass change it without moving updated_at."`
	Clicked365d   int     `json:"clicked_365d" doc:"Number of those that the user clicked."`
	ClickRate365d float64 `json:"click_rate_365d" doc:"Percentage of them that the user clicked, 0 to 100. 0 of none."`
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

// The operations on users.
var (
	ListUsers = op.DeclareList[ListUsersInput, User](op.Meta{
		ID: "users.list", Method: "GET", Path: "/clients/:client_id/users", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the users of a client with their scores",
		Description: "Returns the users of a client, active and inactive, each with the risk score. Prefer it to " +
			"reading the risk of users one by one.",
		Columns: []string{"id", "email", "first_name", "last_name", "status", "role", "risk.score", "risk.grade", "training.overdue_count"},
	})
	FindUsers = op.DeclareList[FindUsersInput, User](op.Meta{
		ID: "users.find", Starred: true, Method: "GET", Path: "/users", Scope: domain.Read, Since: op.V2_4, Status: 200,
		Summary: "Find users by their email address",
		Description: "Returns the users with this address, in any case, in all clients that the key reaches, active and inactive, " +
			"in the order of the clients' creation.",
		Columns: []string{"id", "client_id", "email", "first_name", "last_name", "status", "role", "risk.score", "risk.grade", "training.overdue_count"},
	})
	GetUser = op.Declare[GetUserInput, UserDetail](op.Meta{
		ID: "users.get", Starred: true, Method: "GET", Path: "/users/:user_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Read a user",
		Description: "Returns one user with the score and what it is made of, the collections, and a summary of the " +
			"exposures.",
	})
	CreateUser = op.Declare[CreateUserInput, User](op.Meta{
		ID: "users.create", Method: "POST", Path: "/clients/:client_id/users", Scope: domain.Write, Since: op.V2_2, Status: 201, ReachesOut: true,
		Summary: "Create a user",
		Description: "Creates an active user in the client's Manual group and assigns the courses of the program and " +
			"of the frameworks at once. A user with the same email who is found by a later directory sync is " +
			"merged with this one.", Fails: []domain.Code{domain.Conflict},
	})
	UpdateUser = op.Declare[UpdateUserInput, UserDetail](op.Meta{
		ID: "users.update", Method: "PATCH", Path: "/users/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Update a user",
		Description: "Changes the fields that are sent and leaves the others; users are not deleted, but made inactive: they take " +
			"no part in training and phishing then. Each field that is set here overrides the directory: later syncs leave it as it is.",
	})
)

// ListUsersInput asks for a page of a client's users.
type ListUsersInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Status       domain.UserStatusFilter `query:"status" validate:"enum" default:"all" doc:"Only users in this state."`
		Q            string                  `query:"q" validate:"max=500" doc:"Only users whose name or email contains this text, in any case."`
		Role         domain.Role             `query:"role" validate:"omitempty,enum" doc:"Only users with this risk role."`
		CollectionID string                  `query:"collection_id" validate:"max=500" doc:"Only members of this collection."`
		Overdue      *bool                   `query:"overdue" doc:"Only users with an overdue course (true), or only those without one (false)."`
		UpdatedSince *domain.Time            `query:"updated_since" doc:"Only users that changed at or after this time."`
		Sort         domain.UserSort         `query:"sort" validate:"enum" default:"created_at" doc:"Order of the list; a leading minus sign reverses it. By risk_score the riskiest come first, for low scores are the risky ones."`
	}
}

// FindUsersInput asks for a page of the users with an address.
type FindUsersInput struct {
	Query struct {
		op.Paging
		Email string `query:"email" validate:"required,max=254,email" doc:"The users' address, in any case."`
	}
}

// GetUserInput asks for one user.
type GetUserInput struct{ Path UserPath }

// CreateUserInput asks for a new user of a client.
type CreateUserInput struct {
	Path ClientPath
	Body struct {
		Email             string                `json:"email" validate:"filled,max=254,email" doc:"The user's address, unique within the client. Kept in lower case."`
		FirstName         string                `json:"first_name,omitzero" validate:"max=200,name" doc:"First name."`
		LastName          string                `json:"last_name,omitzero" validate:"max=200,name" doc:"Last name."`
		Department        *string               `json:"department,omitzero" validate:"omitnil,max=500,trim" doc:"Department. White space around it is removed."`
		JobTitle          *string               `json:"job_title,omitzero" validate:"omitnil,max=500,trim" doc:"Job title. White space around it is removed."`
		ManagerEmail      *string               `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Address of the user's manager."`
		Role              domain.Role           `json:"role,omitzero" validate:"omitempty,enum" doc:"The risk role. Left out, it is classified from job title, department and email."`
		PreferredLanguage domain.Language       `json:"preferred_language,omitzero" validate:"omitempty,enum" default:"en" doc:"Language of courses and mails."`
		CollectionIDs     []domain.CollectionID `json:"collection_ids,omitzero" validate:"max=500" doc:"Collections of the client that the user becomes a member of."`
		SendWelcomeEmail  bool                  `json:"send_welcome_email,omitzero" default:"false" doc:"Whether to send the user a welcome mail."`
	}
}

// UpdateUserInput asks for changes to a user. The given fields become overrides: directory syncs do not change them.
type UpdateUserInput struct {
	Path UserPath
	Body struct {
		Status            domain.Optional[domain.UserStatus] `json:"status,omitzero" validate:"omitnil,enum" doc:"Whether the user takes part."`
		FirstName         domain.Optional[string]            `json:"first_name,omitzero" validate:"omitnil,max=200,name" doc:"First name."`
		LastName          domain.Optional[string]            `json:"last_name,omitzero" validate:"omitnil,max=200,name" doc:"Last name."`
		Department        domain.Optional[*string]           `json:"department,omitzero" validate:"omitnil,max=500,trim" doc:"Department. White space around it is removed. Null clears it."`
		JobTitle          domain.Optional[*string]           `json:"job_title,omitzero" validate:"omitnil,max=500,trim" doc:"Job title. White space around it is removed. Null clears it."`
		ManagerEmail      domain.Optional[*string]           `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Address of the user's manager. Null clears it."`
		Role              domain.Optional[domain.Role]       `json:"role,omitzero" validate:"omitnil,enum" doc:"The risk role. Set here, it is no longer classified."`
		PreferredLanguage domain.Optional[domain.Language]   `json:"preferred_language,omitzero" validate:"omitnil,enum" doc:"Language of courses and mails."`
	}
}
