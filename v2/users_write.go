package v2

import (
	"context"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

func (a *API) createUser(ctx context.Context, req *api.CreateUserInput) (out *api.User, err error) {
	err = a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil { // first of the locks; InsertUser enrolls the user
			return err
		}
		if err := lockCollections(ctx, c, t, req.Body.CollectionIDs); err != nil {
			return err
		}

		u := newUser(req, c.At)
		if err := t.InsertUser(ctx, c, u, req.Body.CollectionIDs); err != nil {
			return err
		}
		if req.Body.SendWelcomeEmail {
			c.RequestMail(u.Key(), c.At, db.MailRequest{Type: domain.WelcomeMail})
		}
		if err := c.Flush(ctx); err != nil { // the result shows the effects
			return err
		}
		created, err := a.db.User(ctx, u.ID)
		if err == nil {
			out = new(userOf(created.User))
		}
		return err
	})
	return out, err
}

// lockCollections locks the collections of a new user. An unknown collection is InvalidRequest. It runs before the user
// is inserted, as 400 comes before the 409 for a user who exists already (decisions 2.4).
func lockCollections(ctx context.Context, c *db.Change, t *db.Tenant, ids []domain.CollectionID) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := t.LockCollections(ctx, c, ids...)
	if err != nil {
		return err
	}
	return rejectUnknown("collection_ids", ids, found, "is not a collection of this client")
}

// newUser returns the user to insert. The validation has put the emails into lower case (decisions 2.8). The user is
// active. The language is English unless the body has one. The role is that of the body, which then is an override, or
// else the result of classifyRole.
func newUser(req *api.CreateUserInput, now time.Time) domain.User {
	b := req.Body
	u := domain.User{
		ID: db.NewID[domain.UserKind](), Client: req.Path.ClientID, Email: b.Email,
		FirstName: b.FirstName, LastName: b.LastName, Department: b.Department, JobTitle: b.JobTitle,
		ManagerEmail: b.ManagerEmail, Status: domain.Active, Role: b.Role, Language: b.PreferredLanguage,
		Source: domain.FromAPI, CreatedAt: now, UpdatedAt: now,
	}
	if u.Language == "" {
		u.Language = domain.English
	}
	if u.Role == "" {
		u.Role = classifyRole(u)
	} else {
		u.Overrides = []string{"role"}
	}
	u.Score = u.Role.Baseline()
	return u
}

// classifyRole returns the role that the user's job title, department and email indicate.
func classifyRole(u domain.User) domain.Role {
	return domain.ClassifyRole(domain.OrZero(u.JobTitle), domain.OrZero(u.Department), u.Email)
}

func (a *API) updateUser(ctx context.Context, req *api.UpdateUserInput) (out *api.UserDetail, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := c.LockAudiencesSharedOf(ctx, req.Path.UserID); err != nil { // first: the update may enroll the user
			return err
		}
		u, err := c.LockUser(ctx, req.Path.UserID)
		if err != nil {
			return err
		}
		if err := u.Update(ctx, c, applyUserUpdate(u.User, req)); err != nil {
			return err
		}
		if err := c.Flush(ctx); err != nil { // the result shows the effects
			return err
		}
		out, err = a.getUser(ctx, &api.GetUserInput{Path: req.Path})
		return err
	})
	return out, err
}

// applyUserUpdate returns the user with the requested changes, and adds the given fields to Overrides. If the title or
// the department changes, the role is classified again, unless it is in Overrides.
func applyUserUpdate(u domain.User, req *api.UpdateUserInput) domain.User {
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
	reclassify := domain.ApplyNullable(b.Department, &u.Department)
	reclassify = domain.ApplyNullable(b.JobTitle, &u.JobTitle) || reclassify
	domain.ApplyNullable(b.ManagerEmail, &u.ManagerEmail)
	domain.Apply(b.Role, &u.Role)
	domain.Apply(b.PreferredLanguage, &u.Language)
	if reclassify && !slices.Contains(u.Overrides, "role") {
		u.Role = classifyRole(u)
	}
	return u
}

// removeOverride removes an override of a user. Without that of the role, the role is classified again. The next sync
// sets the other fields from the user's account, although the account did not change.
func (a *API) removeOverride(ctx context.Context, req *api.RemoveOverrideInput) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := c.LockAudiencesSharedOf(ctx, req.Path.UserID); err != nil { // first: another role may enroll the user
			return err
		}
		u, err := c.LockUser(ctx, req.Path.UserID)
		if err != nil {
			return err
		}
		field := slices.Index(u.Overrides, string(req.Path.Field))
		if field < 0 {
			return domain.ErrNotFound("override")
		}
		after := u.User
		after.Overrides = slices.Delete(slices.Clone(u.Overrides), field, field+1)
		if req.Path.Field == "role" {
			after.Role = classifyRole(after)
		}
		if err := u.Update(ctx, c, after); err != nil {
			return err
		}
		return c.SyncAgain(ctx, u.Key())
	})
	return &op.NoContent{}, err
}
