package v1compat

import (
	"net/http"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// User is a user as v1 shows it.
type User struct {
	ID                        UUID[domain.UserKind] `json:"id"`
	Email                     string                `json:"email"`
	FirstName                 string                `json:"first_name"`
	LastName                  string                `json:"last_name"`
	Department                string                `json:"department"`
	Status                    domain.UserStatus     `json:"status"`
	PreferredLanguage         domain.Language       `json:"preferred_language"`
	Role                      domain.Role           `json:"role"`
	CreatedDate               Time                  `json:"created_date"`
	PhishingClickRateTotal    float64               `json:"phishing_click_rate_total"`
	PhishingClickRateLastYear float64               `json:"phishing_click_rate_last_year"`
	TrainingOnTrack           bool                  `json:"training_on_track"`
	NextCourse                string                `json:"next_course" doc:"Empty where nothing is left to do."`
	CoursesBehind             int                   `json:"courses_behind"`
	RiskScore                 int                   `json:"risk_score"`
}

// CreatedUser is what creating a user answers.
type CreatedUser struct {
	ID        UUID[domain.UserKind] `json:"id"`
	Email     string                `json:"email"`
	FirstName string                `json:"first_name"`
	LastName  string                `json:"last_name"`
	Status    domain.UserStatus     `json:"status"`
	Role      domain.Role           `json:"role"`
}

// Done is what a change answers.
type Done struct {
	Status string `json:"status"`
}

type listUsers struct {
	Path  clientPath
	Query struct {
		upTo50
		Status domain.UserStatusFilter `query:"status" validate:"enum" default:"active"`
	}
}

type createUser struct {
	Path clientPath
	Body struct {
		Email             string                            `json:"email" validate:"filled,max=254,email"`
		FirstName         string                            `json:"first_name,omitzero" validate:"max=200,name"`
		LastName          string                            `json:"last_name,omitzero" validate:"max=200,name"`
		Department        string                            `json:"department,omitzero" validate:"max=500"`
		JobTitle          string                            `json:"job_title,omitzero" validate:"max=500"`
		ManagerEmail      string                            `json:"manager_email,omitzero" validate:"omitempty,max=254,email"`
		Role              choice[domain.Role]               `json:"role,omitzero"`
		PreferredLanguage choice[domain.Language]           `json:"preferred_language,omitzero"`
		CollectionID      *idmap.Ref[domain.CollectionKind] `json:"collection_id,omitzero"`
	}
}

type updateUser struct {
	Path userPath
	Body struct {
		Status            choice[domain.UserStatus] `json:"status,omitzero"`
		PreferredLanguage choice[domain.Language]   `json:"preferred_language,omitzero"`
		Role              choice[domain.Role]       `json:"role,omitzero"`
	}
}

func (f *Facade) userRoutes(api *v2.API) {
	list(f, Meta{
		ID: "users", Method: "GET", Path: "/clients/:client_id/users", Status: http.StatusOK, Summary: "Get Users",
	}, api.ListUsers, fromListUsers, toUser)
	call(f, Meta{
		ID: "create-user", Method: "POST", Path: "/clients/:client_id/users", Status: http.StatusCreated,
		Summary: "Create User",
		Fails:   []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
		Fields:  map[string]string{"collection_ids": "collection_id"},
	}, api.CreateUser, fromCreateUser, toCreatedUser)
	call(f, Meta{
		ID: "update-user", Method: "POST", Path: "/users/:user_id", Status: http.StatusOK, Summary: "Update User",
		Fails: []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
	}, api.UpdateUser, fromUpdateUser, toUpdated)
}

func fromListUsers(in *listUsers) (*v2.ListUsers, *op.Paging) {
	out := &v2.ListUsers{}
	out.Path.ClientID = in.Path.ClientID.ID
	out.Query.Status = in.Query.Status
	out.Query.Sort = "created_at"
	return out, &out.Query.Paging
}

func toUser(u v2.User) User {
	out := User{
		ID: uuidOf(u.ID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Department: orEmpty(u.Department),
		Status: u.Status, PreferredLanguage: u.PreferredLanguage, Role: u.Role, CreatedDate: at(u.CreatedAt),
		PhishingClickRateTotal: u.ClickRateTotal, PhishingClickRateLastYear: u.ClickRateYear,
		TrainingOnTrack: u.Training.OnTrack, CoursesBehind: u.Training.OverdueCount, RiskScore: u.Risk.Score,
	}
	if next := u.Training.NextCourse; next != nil {
		out.NextCourse = next.Title
	}
	return out
}

func fromCreateUser(in *createUser) *v2.CreateUser {
	b := in.Body
	out := &v2.CreateUser{}
	out.Path.ClientID = in.Path.ClientID.ID
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
	return out
}

func toCreatedUser(u *v2.User) *CreatedUser {
	return &CreatedUser{
		ID: uuidOf(u.ID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Status: u.Status, Role: u.Role,
	}
}

func fromUpdateUser(in *updateUser) *v2.UpdateUser {
	out := &v2.UpdateUser{}
	out.Path.UserID = in.Path.UserID.ID
	out.Body.Status = given(domain.UserStatus(in.Body.Status))
	out.Body.PreferredLanguage = given(domain.Language(in.Body.PreferredLanguage))
	out.Body.Role = given(domain.Role(in.Body.Role))
	return out
}

func toUpdated(*v2.UserDetail) *Done { return &Done{Status: "updated"} }
