package v1compat

import (
	"net/http"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
)

// User is v1's form of a user.
type User struct {
	ID                        UUID[domain.UserKind] `json:"id" doc:"UUID of the user."`
	Email                     string                `json:"email" doc:"The user's email address, unique within the client."`
	FirstName                 string                `json:"first_name" doc:"First name. Can be empty."`
	LastName                  string                `json:"last_name" doc:"Last name. Can be empty."`
	Department                string                `json:"department" doc:"Department. Empty if not known."`
	Status                    domain.UserStatus     `json:"status" doc:"Status of the user. Inactive users receive no courses and no emails."`
	PreferredLanguage         domain.Language       `json:"preferred_language" doc:"Language of courses and emails."`
	Role                      domain.Role           `json:"role" doc:"The risk role, which is standard for users who are not classified."`
	CreatedDate               Time                  `json:"created_date" doc:"When the user was created."`
	PhishingClickRateTotal    float64               `json:"phishing_click_rate_total" doc:"Percentage of simulated emails that the user clicked, from 0 to 100."`
	PhishingClickRateLastYear float64               `json:"phishing_click_rate_last_year" doc:"Percentage of simulated emails sent in the last 365 days that the user clicked, from 0 to 100."`
	TrainingOnTrack           bool                  `json:"training_on_track" doc:"Whether the user has no overdue courses."`
	NextCourse                string                `json:"next_course" doc:"Title of the incomplete course that is due first. Empty if no course is left to complete."`
	CoursesBehind             int                   `json:"courses_behind" doc:"Number of overdue courses."`
	RiskScore                 int                   `json:"risk_score" doc:"Risk score, from 0 to 1000. Higher scores are safer."`
}

// CreatedUser is the response to creating a user.
type CreatedUser struct {
	ID        UUID[domain.UserKind] `json:"id" doc:"UUID of the user."`
	Email     string                `json:"email" doc:"The user's email address, in lowercase."`
	FirstName string                `json:"first_name" doc:"First name. Can be empty."`
	LastName  string                `json:"last_name" doc:"Last name. Can be empty."`
	Status    domain.UserStatus     `json:"status" doc:"Always active."`
	Role      domain.Role           `json:"role" doc:"The risk role that you sent or, if omitted, the role that the service derived."`
}

// Done is the response to a change.
type Done struct {
	Status string `json:"status" doc:"What happened: updated, added or removed."`
}

type listUsers struct {
	Path  clientPath
	Query struct {
		upTo50
		Status domain.UserStatusFilter `query:"status" validate:"enum" default:"active" doc:"Only users with this status."`
	}
}

type createUser struct {
	Path clientPath
	Body struct {
		Email             string                            `json:"email" validate:"filled,max=254,email" doc:"The user's email address, unique within the client. The address is stored in lowercase."`
		FirstName         string                            `json:"first_name,omitzero" validate:"max=200,name" doc:"First name."`
		LastName          string                            `json:"last_name,omitzero" validate:"max=200,name" doc:"Last name."`
		Department        string                            `json:"department,omitzero" validate:"max=500,trim" doc:"Department."`
		JobTitle          string                            `json:"job_title,omitzero" validate:"max=500,trim" doc:"Job title."`
		ManagerEmail      string                            `json:"manager_email,omitzero" validate:"omitempty,max=254,email" doc:"Email address of the user's manager."`
		Role              choice[domain.Role]               `json:"role,omitzero" doc:"The risk role. If you set a role, later directory syncs do not change it. If omitted, the service derives the role from job title, department and email address."`
		PreferredLanguage choice[domain.Language]           `json:"preferred_language,omitzero" doc:"Language of courses and emails. Default: en."`
		CollectionID      *idmap.Ref[domain.CollectionKind] `json:"collection_id,omitzero" doc:"Numeric ID of the client's collection to add the user to."`
	}
}

type updateUser struct {
	Path userPath
	Body struct {
		Status            choice[domain.UserStatus] `json:"status,omitzero" doc:"The new status. Inactive users receive no courses and no emails."`
		PreferredLanguage choice[domain.Language]   `json:"preferred_language,omitzero" doc:"Language of courses and emails."`
		Role              choice[domain.Role]       `json:"role,omitzero" doc:"The risk role."`
	}
}

// addUserRoutes adds the routes of users.
func (f *Facade) addUserRoutes() {
	addList(f, Meta{
		ID: "users", Method: "GET", Path: "/clients/:client_id/users", Status: http.StatusOK, Summary: "Get Users",
		Description: "Returns the client's users in order of creation. By default, only active users are returned; to change this, set `status`.",
	}, api.ListUsers, fillListUsers, toUser, nil)
	addCall(f, Meta{
		ID: "create-user", Method: "POST", Path: "/clients/:client_id/users", Status: http.StatusCreated,
		Summary: "Create User",
		Description: "Creates an active user in the client's Manual group and immediately assigns the courses of the client's " +
			"program and frameworks. No welcome email is sent.",
		Fails:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
		Fields: map[string]string{"collection_ids": "collection_id"},
	}, api.CreateUser, fillCreateUser, toCreatedUser, nil)
	addCall(f, Meta{
		ID: "update-user", Method: "POST", Path: "/users/:user_id", Status: http.StatusOK, Summary: "Update User",
		Description: "Changes only the fields that you send. Send at least one field.",
		Fails:       []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
	}, api.UpdateUser, fillUpdateUser, toUpdated, nil)
}

func fillListUsers(in *listUsers, out *api.ListUsersInput) {
	out.Query.Status = in.Query.Status
	out.Query.Sort = "created_at"
}

func toUser(u api.User) User {
	out := User{
		ID: uuidOf(u.ID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Department: domain.OrZero(u.Department),
		Status: u.Status, PreferredLanguage: u.PreferredLanguage, Role: u.Role, CreatedDate: at(u.CreatedAt),
		PhishingClickRateTotal: u.Phishing.ClickRate, PhishingClickRateLastYear: u.Phishing.ClickRate365d,
		TrainingOnTrack: u.Training.OnTrack, CoursesBehind: u.Training.OverdueCount, RiskScore: u.Risk.Score,
	}
	if next := u.Training.NextCourse; next != nil {
		out.NextCourse = next.Title
	}
	return out
}

func fillCreateUser(in *createUser, out *api.CreateUserInput) {
	b := in.Body
	out.Body.Email = b.Email
	out.Body.FirstName = b.FirstName
	out.Body.LastName = b.LastName
	out.Body.Department = text(b.Department)
	out.Body.JobTitle = text(b.JobTitle)
	out.Body.ManagerEmail = text(b.ManagerEmail)
	out.Body.Role = domain.Role(b.Role)
	out.Body.PreferredLanguage = domain.Language(b.PreferredLanguage)
	if b.CollectionID != nil {
		out.Body.CollectionIDs = []domain.CollectionID{b.CollectionID.ID}
	}
}

func toCreatedUser(u *api.User) *CreatedUser {
	return &CreatedUser{
		ID: uuidOf(u.ID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Status: u.Status, Role: u.Role,
	}
}

func fillUpdateUser(in *updateUser, out *api.UpdateUserInput) {
	out.Body.Status = optionalOf(domain.UserStatus(in.Body.Status))
	out.Body.PreferredLanguage = optionalOf(domain.Language(in.Body.PreferredLanguage))
	out.Body.Role = optionalOf(domain.Role(in.Body.Role))
}

func toUpdated(*api.UserDetail) *Done { return &Done{Status: "updated"} }
