package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserCore is the part of a user that all of v2's forms of users have.
type UserCore struct {
	ID                domain.UserID     `json:"id" doc:"Opaque ID of the user."`
	ClientID          domain.ClientID   `json:"client_id" doc:"The client that the user belongs to."`
	Email             string            `json:"email" format:"email" doc:"The user's email address in lowercase, unique within the client."`
	FirstName         string            `json:"first_name" doc:"First name. Can be empty."`
	LastName          string            `json:"last_name" doc:"Last name. Can be empty."`
	Department        *string           `json:"department" doc:"Department. Null if not known."`
	JobTitle          *string           `json:"job_title" doc:"Job title. Null if not known."`
	ManagerEmail      *string           `json:"manager_email" format:"email" doc:"Email address of the user's manager. Null if not known."`
	Status            domain.UserStatus `json:"status" doc:"Status of the user. Inactive users receive no courses and no emails."`
	Role              domain.Role       `json:"role" doc:"The risk role, which determines the weights of the user's signals."`
	PreferredLanguage domain.Language   `json:"preferred_language" doc:"Language of courses and emails."`
	Source            domain.UserSource `json:"source" doc:"Where the record came from: a directory (microsoft, google), manual entry or the API."`
	Group             *Group            `json:"group" doc:"The user's directory group or manual group. Null if none."`
	Training          UserTraining      `json:"training" doc:"The user's training progress."`
	Phishing          UserPhishing      `json:"phishing" since:"2.4" doc:"Counts of the simulated emails sent to the user and clicked by the user. Submitted credentials and opened attachments count as clicks; email scanner activity does not."`
	CreatedAt         domain.Time       `json:"created_at" doc:"When the user was created."`
	UpdatedAt         domain.Time       `json:"updated_at" doc:"When the user or the user's score last changed."`
}

// User is a user as lists and CreateUser show it.
type User struct {
	UserCore
	Risk UserScore `json:"risk" doc:"The user's risk score."`
}

// UserDetail is a single user, as GetUser, UpdateUser and events show it.
type UserDetail struct {
	UserCore
	Risk        UserRisk        `json:"risk" doc:"The user's risk score, with its baseline and factors."`
	Collections []CollectionRef `json:"collections" doc:"The collections that the user is a member of."`
	DarkWeb     *UserDarkWeb    `json:"dark_web" doc:"The user's exposures. Null if Dark Web Monitoring is not enabled for the client."`
	// Overrides is never null.
	Overrides []domain.Override `json:"overrides" since:"2.5" doc:"Names of the fields that directory syncs leave unchanged because a caller or an import has set them."`
}

// UserScore is a user's score and grade.
type UserScore struct {
	Score int          `json:"score" doc:"Risk score, from 0 to 1000. Higher scores are safer."`
	Grade domain.Grade `json:"grade" doc:"Grade of the score: A (800 to 1000), B (700 to 799), C (600 to 699), D (400 to 599) or F (below 400)."`
}

// Group is the group that a user belongs to.
type Group struct {
	ID   domain.GroupID `json:"id" doc:"Opaque ID of the group."`
	Name string         `json:"name" doc:"The group's name."`
}

// UserTraining sums up a user's courses.
type UserTraining struct {
	OnTrack      bool        `json:"on_track" doc:"Whether the user has no overdue courses."`
	OverdueCount int         `json:"overdue_count" doc:"Number of overdue courses."`
	NextCourse   *NextCourse `json:"next_course" doc:"The incomplete course that is due first, even if it is overdue. Null if no course is left to complete."`
}

// NextCourse is the incomplete course that is due first.
type NextCourse struct {
	CourseID domain.CourseID `json:"course_id" doc:"Opaque ID of the course."`
	Title    string          `json:"title" doc:"The course's title."`
	DueOn    domain.Date     `json:"due_on" doc:"Last day (UTC) for completing the course."`
}

// UserPhishing counts a user's simulated emails, in total and in the last 365 days.
type UserPhishing struct {
	Sent          int     `json:"sent" doc:"Number of simulated emails sent to the user."`
	Clicked       int     `json:"clicked" doc:"Number of simulated emails that the user clicked."`
	ClickRate     float64 `json:"click_rate" doc:"Percentage of simulated emails that the user clicked, from 0 to 100. 0 if none were sent."`
	Sent365d      int     `json:"sent_365d" doc:"Number of simulated emails sent to the user in the last 365 days (UTC), including today. The number can change from day to day while updated_at stays the same."`
	Clicked365d   int     `json:"clicked_365d" doc:"Number of simulated emails sent in the last 365 days that the user clicked."`
	ClickRate365d float64 `json:"click_rate_365d" doc:"Percentage of simulated emails sent in the last 365 days that the user clicked, from 0 to 100. 0 if none were sent."`
}

// CollectionRef names a collection.
type CollectionRef struct {
	ID   domain.CollectionID `json:"id" doc:"Opaque ID of the collection."`
	Name string              `json:"name" doc:"The collection's name."`
}

// UserDarkWeb sums up a user's exposures.
type UserDarkWeb struct {
	UnresolvedExposures int              `json:"unresolved_exposures" doc:"Number of unresolved exposures."`
	ResolvedExposures   int              `json:"resolved_exposures" doc:"Number of resolved exposures."`
	HighestSeverity     *domain.Severity `json:"highest_severity" doc:"Highest severity of the unresolved exposures. Null if there are none."`
}

// The operations on users.
var (
	ListUsers = op.DeclareList[ListUsersInput, User](op.Meta{
		ID: "users.list", Method: "GET", Path: "/clients/:client_id/users", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List users",
		Description: "Returns the client's active and inactive users, each with a risk score. Use this list instead of getting risk " +
			"scores one by one.",
		Columns: []string{"id", "email", "first_name", "last_name", "status", "role", "risk.score", "risk.grade", "training.overdue_count"},
	})
	FindUsers = op.DeclareList[FindUsersInput, User](op.Meta{
		ID: "users.find", Starred: true, Method: "GET", Path: "/users", Scope: domain.Read, Since: op.V2_4, Status: 200,
		Summary: "Find users by email",
		Description: "Returns active and inactive users with the given email address, ignoring case, across all clients that the API key " +
			"can access. Users are listed in the order in which their clients were created.",
		Columns: []string{"id", "client_id", "email", "first_name", "last_name", "status", "role", "risk.score", "risk.grade", "training.overdue_count"},
	})
	GetUser = op.Declare[GetUserInput, UserDetail](op.Meta{
		ID: "users.get", Starred: true, Method: "GET", Path: "/users/:user_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Get a user",
		Description: "Returns the user with their risk score, factors, collections and exposure summary.",
	})
	CreateUser = op.Declare[CreateUserInput, User](op.Meta{
		ID: "users.create", Method: "POST", Path: "/clients/:client_id/users", Scope: domain.Write, Since: op.V2_2, Status: 201, ReachesOut: true,
		Summary: "Create a user",
		Description: "Creates an active user in the client's Manual group, assigns the courses of the client's program and frameworks, " +
			"and sends a welcome email only if `send_welcome_email` is true. If a later directory sync finds an account with " +
			"the same email address, it merges the account with this user.", Fails: []domain.Code{domain.Conflict},
	})
	UpdateUser = op.Declare[UpdateUserInput, UserDetail](op.Meta{
		ID: "users.update", Method: "PATCH", Path: "/users/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Update a user",
		Description: "Changes only the fields that you send and marks them as overrides, which later directory syncs do not change. Users " +
			"cannot be deleted; to exclude a user from training and phishing, set `status` to `inactive`.",
	})
	RemoveOverride = op.Declare[RemoveOverrideInput, op.NoContent](op.Meta{
		ID: "overrides.remove", Tag: "users", Starred: true, Method: "DELETE", Path: "/users/:user_id/overrides/:field", Scope: domain.Write, Since: op.V2_5, Status: 204,
		Summary: "Remove an override",
		Description: "Lets directory syncs set the field again, starting with the next sync, even if the directory has not " +
			"changed. If the field is `role`, the service derives the role again immediately.",
	})
)

// ListUsersInput asks for a page of a client's users.
type ListUsersInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Status       domain.UserStatusFilter `query:"status" validate:"enum" default:"all" doc:"Only users with this status."`
		Q            string                  `query:"q" validate:"max=500" doc:"Only users whose name or email address contains this string, ignoring case."`
		Role         domain.Role             `query:"role" validate:"omitempty,enum" doc:"Only users with this risk role."`
		CollectionID string                  `query:"collection_id" validate:"max=500" doc:"Only members of this collection."`
		Department   string                  `query:"department" since:"2.5" validate:"max=500" doc:"Only users in this department, ignoring case and repeated whitespace."`
		NoDepartment bool                    `query:"no_department" since:"2.5" default:"false" doc:"Only users without a department."`
		ManagerEmail string                  `query:"manager_email" since:"2.5" validate:"omitempty,max=254,email" doc:"Only users whose manager has this email address, ignoring case."`
		Grade        domain.Grade            `query:"grade" since:"2.5" validate:"omitempty,enum" doc:"Only users with this grade."`
		GroupID      string                  `query:"group_id" since:"2.5" validate:"max=500" doc:"Only users in this group, which can be a directory group or the manual group."`
		Overdue      *bool                   `query:"overdue" doc:"If true, only users with an overdue course. If false, only users without one."`
		UpdatedSince *domain.Time            `query:"updated_since" doc:"Only users who changed at or after this time."`
		Sort         domain.UserSort         `query:"sort" validate:"enum" default:"created_at" doc:"Sort order of the list. A leading minus sign reverses the order. risk_score lists the riskiest users first, because lower scores mean higher risk."`
	}
}

// FindUsersInput asks for a page of the users with an email address.
type FindUsersInput struct {
	Query struct {
		op.Paging
		Email string `query:"email" validate:"required,max=254,email" doc:"Email address of the users to find, ignoring case."`
	}
}

// GetUserInput asks for one user.
type GetUserInput struct{ Path UserPath }

// CreateUserInput asks for a new user of a client.
type CreateUserInput struct {
	Path ClientPath
	Body struct {
		Email             string                `json:"email" validate:"filled,max=254,email" doc:"The user's email address, unique within the client. The address is stored in lowercase."`
		FirstName         string                `json:"first_name,omitzero" validate:"max=200,name" doc:"First name."`
		LastName          string                `json:"last_name,omitzero" validate:"max=200,name" doc:"Last name."`
		Department        *string               `json:"department,omitzero" validate:"omitnil,max=500,trim" doc:"Department. Leading and trailing whitespace is removed."`
		JobTitle          *string               `json:"job_title,omitzero" validate:"omitnil,max=500,trim" doc:"Job title. Leading and trailing whitespace is removed."`
		ManagerEmail      *string               `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Email address of the user's manager."`
		Role              domain.Role           `json:"role,omitzero" validate:"omitempty,enum" doc:"The risk role. If omitted, the service derives the role from job title, department and email address."`
		PreferredLanguage domain.Language       `json:"preferred_language,omitzero" validate:"omitempty,enum" default:"en" doc:"Language of courses and emails."`
		CollectionIDs     []domain.CollectionID `json:"collection_ids,omitzero" validate:"max=500" doc:"The client's collections to add the user to."`
		SendWelcomeEmail  bool                  `json:"send_welcome_email,omitzero" default:"false" doc:"Whether to send the user a welcome email."`
	}
}

// UpdateUserInput asks for changes to a user. The given fields become overrides: directory syncs do not change them.
type UpdateUserInput struct {
	Path UserPath
	Body struct {
		Status            domain.Optional[domain.UserStatus] `json:"status,omitzero" validate:"omitnil,enum" doc:"The new status. Inactive users receive no courses and no emails."`
		FirstName         domain.Optional[string]            `json:"first_name,omitzero" validate:"omitnil,max=200,name" doc:"First name."`
		LastName          domain.Optional[string]            `json:"last_name,omitzero" validate:"omitnil,max=200,name" doc:"Last name."`
		Department        domain.Optional[*string]           `json:"department,omitzero" validate:"omitnil,max=500,trim" doc:"Department. Leading and trailing whitespace is removed. Null clears it."`
		JobTitle          domain.Optional[*string]           `json:"job_title,omitzero" validate:"omitnil,max=500,trim" doc:"Job title. Leading and trailing whitespace is removed. Null clears it."`
		ManagerEmail      domain.Optional[*string]           `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Email address of the user's manager. Null clears it."`
		Role              domain.Optional[domain.Role]       `json:"role,omitzero" validate:"omitnil,enum" doc:"The risk role. Once you set the role, the service no longer derives it."`
		PreferredLanguage domain.Optional[domain.Language]   `json:"preferred_language,omitzero" validate:"omitnil,enum" doc:"Language of courses and emails."`
	}
}

// RemoveOverrideInput asks to let directory syncs set a field of a user again.
type RemoveOverrideInput struct {
	Path struct {
		UserPath
		Field op.FieldName `path:"field" validate:"max=500" doc:"Name of the field, as listed in overrides, such as role, status or department. If overrides does not contain the field, the operation returns 404."`
	}
}
