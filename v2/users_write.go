package v2

import (
	"context"
	"slices"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// CreateUser asks for a new user of a client.
type CreateUser struct {
	Path clientPath
	Body struct {
		Email             string                `json:"email" validate:"filled,email,max=254" doc:"Kept in lower case."`
		FirstName         string                `json:"first_name,omitzero" validate:"max=200"`
		LastName          string                `json:"last_name,omitzero" validate:"max=200"`
		Department        *string               `json:"department,omitzero" validate:"omitnil,max=500"`
		JobTitle          *string               `json:"job_title,omitzero" validate:"omitnil,max=500"`
		ManagerEmail      *string               `json:"manager_email,omitzero" validate:"omitnil,email,max=254"`
		Role              domain.Role           `json:"role,omitzero" validate:"omitempty,enum" doc:"Left out, it is classified from job title, department and email."`
		PreferredLanguage domain.Language       `json:"preferred_language,omitzero" validate:"omitempty,enum" default:"en"`
		CollectionIDs     []domain.CollectionID `json:"collection_ids,omitzero" validate:"max=500"`
		SendWelcomeEmail  bool                  `json:"send_welcome_email,omitzero" default:"false"`
	}
}

func (a *API) createUser(ctx context.Context, req *CreateUser) (*User, error) {
	u, err := inTx(ctx, a.db, func(ctx context.Context) (domain.User, error) {
		if _, err := a.db.Client(ctx, req.Path.ClientID); err != nil {
			return domain.User{}, err
		}
		u := newUser(req, a.db.Now())
		if err := a.insertUser(ctx, u, req); err != nil {
			return u, err
		}
		return a.db.User(ctx, u.ID)
	})
	if err != nil {
		return nil, err
	}
	out := userOf(u)
	return &out, nil
}

// newUser is the user that is asked for: active, in the role sent or else
// classified. A role that was sent counts as set by hand.
func newUser(req *CreateUser, now time.Time) domain.User {
	b := req.Body
	u := domain.User{
		ID: db.NewID[domain.UserKind](), Client: req.Path.ClientID, Email: strings.ToLower(b.Email), FirstName: b.FirstName, LastName: b.LastName,
		Department: b.Department, JobTitle: b.JobTitle, ManagerEmail: lower(b.ManagerEmail), Status: domain.Active, Role: b.Role,
		Language: b.PreferredLanguage, Source: domain.FromAPI, CreatedAt: now, UpdatedAt: now,
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

// insertUser writes the user and all that comes with one: collections,
// training, score, the client's counters, the event and the welcome mail. What
// the request names is looked for before it can clash (decisions 2.4); the
// client's row, which other creators need too, is locked last.
func (a *API) insertUser(ctx context.Context, u domain.User, req *CreateUser) error {
	collections := req.Body.CollectionIDs
	if len(collections) > 0 {
		found, err := a.db.LockNamed(ctx, u.Client, collections)
		if err != nil {
			return err
		}
		if err := unknownItems("collection_ids", collections, found, "is not a collection of this client"); err != nil {
			return err
		}
	}
	if err := a.db.InsertUser(ctx, u); err != nil {
		return err
	}
	if len(collections) > 0 {
		if err := a.db.JoinCollections(ctx, u, collections); err != nil {
			return err
		}
	}
	if err := a.db.Enrol(ctx, u); err != nil {
		return err
	}
	if err := a.db.Rescore(ctx, u.Client, []domain.UserID{u.ID}); err != nil {
		return err
	}
	if req.Body.SendWelcomeEmail {
		mail, err := a.db.RequestWelcome(ctx, u)
		if err != nil {
			return err
		}
		if err := a.sendMail(ctx, u.Client, mail); err != nil {
			return err
		}
	}
	if err := a.db.InsertEvent(ctx, domain.UserCreated, u.Client, &u.ID, u.CreatedAt); err != nil {
		return err
	}
	return a.db.CountUser(ctx, u, 1, 0)
}

// UpdateUser asks for changes to a user. What is set here is an override: the
// next directory sync leaves it alone.
type UpdateUser struct {
	Path userPath
	Body struct {
		Status            op.Optional[domain.UserStatus] `json:"status,omitzero" validate:"omitnil,enum"`
		FirstName         op.Optional[string]            `json:"first_name,omitzero" validate:"omitnil,max=200"`
		LastName          op.Optional[string]            `json:"last_name,omitzero" validate:"omitnil,max=200"`
		Department        op.Optional[*string]           `json:"department,omitzero" validate:"omitnil,max=500"`
		JobTitle          op.Optional[*string]           `json:"job_title,omitzero" validate:"omitnil,max=500"`
		ManagerEmail      op.Optional[*string]           `json:"manager_email,omitzero" validate:"omitnil,email,max=254"`
		Role              op.Optional[domain.Role]       `json:"role,omitzero" validate:"omitnil,enum"`
		PreferredLanguage op.Optional[domain.Language]   `json:"preferred_language,omitzero" validate:"omitnil,enum"`
	}
}

func (a *API) updateUser(ctx context.Context, req *UpdateUser) (*UserDetail, error) {
	u, err := inTx(ctx, a.db, func(ctx context.Context) (domain.UserDetail, error) {
		before, err := a.db.LockUser(ctx, req.Path.UserID)
		if err != nil {
			return domain.UserDetail{}, err
		}
		if err := a.storeUser(ctx, before, changedUser(before, req)); err != nil {
			return domain.UserDetail{}, err
		}
		return a.db.UserDetail(ctx, before.ID)
	})
	if err != nil {
		return nil, err
	}
	return userDetailOf(u), nil
}

// changedUser is the user with what is asked for, and what follows from it: a
// role that nobody set is classified again when title or department change.
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

	op.Apply(b.Status, &u.Status)
	op.Apply(b.FirstName, &u.FirstName)
	op.Apply(b.LastName, &u.LastName)
	moved := op.ApplyNullable(b.Department, &u.Department)
	moved = op.ApplyNullable(b.JobTitle, &u.JobTitle) || moved
	op.ApplyNullable(op.Optional[*string]{Given: b.ManagerEmail.Given, Value: lower(b.ManagerEmail.Value)}, &u.ManagerEmail)
	op.Apply(b.Role, &u.Role)
	op.Apply(b.PreferredLanguage, &u.Language)
	if moved && !slices.Contains(u.Overrides, "role") {
		u.Role = classified(u)
	}
	return u
}

// storeUser writes a changed user, and what the change moves: the score with
// the role, the client's counters with the status, and the event. Nothing that
// is shown changed, nothing is told.
func (a *API) storeUser(ctx context.Context, before, after domain.User) error {
	shown := !sameShown(before, after)
	if shown {
		after.UpdatedAt = a.db.Now()
	}
	if err := a.db.UpdateUser(ctx, after); err != nil || !shown {
		return err
	}
	if before.Role != after.Role {
		if err := a.db.Rescore(ctx, after.Client, []domain.UserID{after.ID}); err != nil {
			return err
		}
	}
	event := domain.UserUpdated
	if before.Status != after.Status {
		step := 1
		if after.Status == domain.Inactive {
			step, event = -1, domain.UserDeactivated
		}
		if after.Status == domain.Active {
			if err := a.db.Return(ctx, after); err != nil {
				return err
			}
		}
		if err := a.db.CountUser(ctx, after, step, -step); err != nil {
			return err
		}
	}
	return a.db.InsertEvent(ctx, event, after.Client, &after.ID, after.UpdatedAt)
}

// sameShown reports whether two states of a user's own fields look the same to
// callers.
func sameShown(a, b domain.User) bool {
	return a.Status == b.Status && a.FirstName == b.FirstName && a.LastName == b.LastName &&
		a.Role == b.Role && a.Language == b.Language && op.Same(a.Department, b.Department) &&
		op.Same(a.JobTitle, b.JobTitle) && op.Same(a.ManagerEmail, b.ManagerEmail)
}
