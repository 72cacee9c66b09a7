package v2

import (
	"context"
	"slices"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// CreateUser asks for a new user of a client.
type CreateUser struct {
	Path clientPath
	Body struct {
		Email             string                `json:"email" validate:"filled,max=254,email" doc:"The user's address, unique within the client. Kept in lower case."`
		FirstName         string                `json:"first_name,omitzero" validate:"max=200,name" doc:"First name."`
		LastName          string                `json:"last_name,omitzero" validate:"max=200,name" doc:"Last name."`
		Department        *string               `json:"department,omitzero" validate:"omitnil,max=500" doc:"Department."`
		JobTitle          *string               `json:"job_title,omitzero" validate:"omitnil,max=500" doc:"Job title."`
		ManagerEmail      *string               `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Address of the user's manager."`
		Role              domain.Role           `json:"role,omitzero" validate:"omitempty,enum" doc:"The risk role. Left out, it is classified from job title, department and email."`
		PreferredLanguage domain.Language       `json:"preferred_language,omitzero" validate:"omitempty,enum" default:"en" doc:"Language of courses and mails."`
		CollectionIDs     []domain.CollectionID `json:"collection_ids,omitzero" validate:"max=500" doc:"Collections of the client that the user becomes a member of."`
		SendWelcomeEmail  bool                  `json:"send_welcome_email,omitzero" default:"false" doc:"Whether to send the user a welcome mail."`
	}
}

func (a *API) createUser(ctx context.Context, req *CreateUser) (out *User, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, req.Path.ClientID)
		if err != nil {
			return err
		}
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		if err := lockNamed(ctx, c, t, req.Body.CollectionIDs); err != nil {
			return err
		}

		u := newUser(req, c.At)
		if err := t.InsertUser(ctx, c, u, req.Body.CollectionIDs); err != nil {
			return err
		}
		if err := welcome(ctx, c, t, u.ID, req.Body.SendWelcomeEmail); err != nil {
			return err
		}
		c.Finally(func(ctx context.Context) error {
			created, err := a.db.User(ctx, u.ID)
			if err == nil {
				out = new(userOf(created.User))
			}
			return err
		})
		return nil
	})
	return out, err
}

// lockNamed locks the collections that a new user is to be in, of which there
// may be none. What the request names is looked for before the user can clash
// (decisions 2.4).
func lockNamed(ctx context.Context, c *db.Change, t *db.Tenant, ids []domain.CollectionID) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := t.LockCollections(ctx, c, ids...)
	if err != nil {
		return err
	}
	return unknownItems("collection_ids", ids, found, "is not a collection of this client")
}

// welcome sends a new user the welcome mail, if that is wanted.
func welcome(ctx context.Context, c *db.Change, t *db.Tenant, user domain.UserID, wanted bool) error {
	if !wanted {
		return nil
	}
	mail, err := t.RequestWelcome(ctx, c, user)
	if err != nil {
		return err
	}
	c.Finally(func(ctx context.Context) error { return c.SendMails(ctx, t.ID, mail) })
	return nil
}

// newUser is the user that is asked for: active, in the role sent or else
// classified. A role that was sent counts as set by hand.
func newUser(req *CreateUser, now time.Time) domain.User {
	b := req.Body
	u := domain.User{
		ID: db.NewID[domain.UserKind](), Client: req.Path.ClientID, Email: strings.ToLower(b.Email),
		FirstName: b.FirstName, LastName: b.LastName, Department: b.Department, JobTitle: b.JobTitle,
		ManagerEmail: lower(b.ManagerEmail), Status: domain.Active, Role: b.Role, Language: b.PreferredLanguage,
		Source: domain.FromAPI, CreatedAt: now, UpdatedAt: now,
	}
	if u.Language == "" {
		u.Language = domain.English
	}
	if u.Role == "" {
		u.Role = classified(u)
	} else {
		u.Overrides = []string{"role"}
	}
	u.Score = u.Role.Baseline()
	return u
}

func classified(u domain.User) domain.Role {
	return domain.ClassifyRole(deref(u.JobTitle), deref(u.Department), u.Email)
}

// lower is an email as it is stored (decisions 2.8); nil for nil.
func lower(email *string) *string {
	if email == nil {
		return nil
	}
	text := strings.ToLower(*email)
	return &text
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// UpdateUser asks for changes to a user. What is set here is an override: the
// next directory sync leaves it alone.
type UpdateUser struct {
	Path userPath
	Body struct {
		Status            domain.Optional[domain.UserStatus] `json:"status,omitzero" validate:"omitnil,enum" doc:"Whether the user takes part."`
		FirstName         domain.Optional[string]            `json:"first_name,omitzero" validate:"omitnil,max=200,name" doc:"First name."`
		LastName          domain.Optional[string]            `json:"last_name,omitzero" validate:"omitnil,max=200,name" doc:"Last name."`
		Department        domain.Optional[*string]           `json:"department,omitzero" validate:"omitnil,max=500" doc:"Department. Null clears it."`
		JobTitle          domain.Optional[*string]           `json:"job_title,omitzero" validate:"omitnil,max=500" doc:"Job title. Null clears it."`
		ManagerEmail      domain.Optional[*string]           `json:"manager_email,omitzero" validate:"omitnil,max=254,email" doc:"Address of the user's manager. Null clears it."`
		Role              domain.Optional[domain.Role]       `json:"role,omitzero" validate:"omitnil,enum" doc:"The risk role. Set here, it is no longer classified."`
		PreferredLanguage domain.Optional[domain.Language]   `json:"preferred_language,omitzero" validate:"omitnil,enum" doc:"Language of courses and mails."`
	}
}

func (a *API) updateUser(ctx context.Context, req *UpdateUser) (out *UserDetail, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := c.ShareAudiencesOf(ctx, req.Path.UserID); err != nil {
			return err
		}
		u, err := c.LockUser(ctx, req.Path.UserID)
		if err != nil {
			return err
		}
		c.Finally(func(ctx context.Context) error {
			out, err = a.userDetail(ctx, u.ID)
			return err
		})
		return u.Update(ctx, c, changedUser(u.User, req))
	})
	return out, err
}

// changedUser is the user with what is asked for, and what follows from it: a
// role that was not set by hand is classified again when title or department change.
func changedUser(u domain.User, req *UpdateUser) domain.User {
	b := req.Body
	u.Overrides = slices.Clone(u.Overrides)
	override := func(given bool, field string) {
		if given && !slices.Contains(u.Overrides, field) {
			u.Overrides = append(u.Overrides, field)
		}
	}
	override(b.Status.Given, "status")
	override(b.FirstName.Given, "first_name")
	override(b.LastName.Given, "last_name")
	override(b.Department.Given, "department")
	override(b.JobTitle.Given, "job_title")
	override(b.ManagerEmail.Given, "manager_email")
	override(b.Role.Given, "role")
	override(b.PreferredLanguage.Given, "preferred_language")

	domain.Apply(b.Status, &u.Status)
	domain.Apply(b.FirstName, &u.FirstName)
	domain.Apply(b.LastName, &u.LastName)
	moved := domain.ApplyNullable(b.Department, &u.Department)
	moved = domain.ApplyNullable(b.JobTitle, &u.JobTitle) || moved
	domain.ApplyNullable(domain.Optional[*string]{Given: b.ManagerEmail.Given, Value: lower(b.ManagerEmail.Value)}, &u.ManagerEmail)
	domain.Apply(b.Role, &u.Role)
	domain.Apply(b.PreferredLanguage, &u.Language)
	if moved && !slices.Contains(u.Overrides, "role") {
		u.Role = classified(u)
	}
	return u
}
