package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

func (a *API) bindPhishingSends() {
	op.Bind(&a.Set, api.SendPhishing, a.sendPhishing)
	op.Bind(&a.Set, api.CancelSend, a.cancelSend)
	op.Bind(&a.Set, api.CancelSends, a.cancelSends)
}

func (a *API) sendPhishing(ctx context.Context, req *api.SendPhishingInput) (out *api.PhishingSent, err error) {
	err = a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		out, err = a.schedule(ctx, c, t, req)
		return err
	})
	return out, err
}

// schedule schedules all mails of the body, or none: at SendAt or, if that is past or absent, at once. It locks the
// users, so that a concurrent request reads the templates that this one chose.
func (a *API) schedule(ctx context.Context, c *db.Change, t *db.Tenant, req *api.SendPhishingInput) (*api.PhishingSent, error) {
	users := distinct(req.Body.UserIDs)
	targets, err := t.LockTargets(ctx, c, users)
	if err != nil {
		return nil, err
	}
	if err := checkTargets(req.Body.UserIDs, targets); err != nil {
		return nil, err
	}
	results, err := a.chooseTemplates(ctx, t, req, users, targets)
	if err != nil {
		return nil, err
	}

	sendAt := c.At
	if requested := req.Body.SendAt.Value; requested.Time.After(sendAt) {
		sendAt = requested.Time
	}
	out := &api.PhishingSent{}
	for i := range results {
		r := &results[i]
		r.ID, r.SendAt = db.NewID[domain.ResultKind](), sendAt
		send := api.PhishingSend{UserID: r.User, TemplateID: r.Template, SendAt: domain.At(sendAt)}
		if !req.Body.DryRun {
			send.ResultID = &r.ID
		}
		out.Sends = append(out.Sends, send)
	}
	return out, t.ScheduleResults(ctx, c, results)
}

// distinct returns the ids without repeated ones, in their order.
func distinct[K domain.Kind](ids []domain.ID[K]) []domain.ID[K] {
	seen := make(map[domain.ID[K]]bool, len(ids))
	var list []domain.ID[K]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// checkTargets returns InvalidRequest with a fault for each of ids that is no target or an inactive user, by its index;
// nil if there is none.
func checkTargets(ids []domain.UserID, targets map[domain.UserID]domain.Target) error {
	var faults []domain.FieldError
	for i, id := range ids {
		switch t, found := targets[id]; {
		case !found:
			faults = append(faults, domain.FieldError{Field: fmt.Sprintf("user_ids[%d]", i), Message: "is not a user of this client"})
		case !t.Active:
			faults = append(faults, domain.FieldError{Field: fmt.Sprintf("user_ids[%d]", i), Message: "is an inactive user"})
		}
	}
	if faults == nil {
		return nil
	}
	return domain.ErrInvalidFields(faults)
}

// chooseTemplates returns a result for each user with its template: that of the body, or else one that
// domain.ChooseTemplate chooses. InvalidRequest means that the template is unknown, or that a user has none to choose.
func (a *API) chooseTemplates(
	ctx context.Context, t *db.Tenant, req *api.SendPhishingInput, users []domain.UserID, targets map[domain.UserID]domain.Target,
) ([]domain.Result, error) {
	results := make([]domain.Result, len(users))
	if req.Body.TemplateID.Given {
		id := req.Body.TemplateID.Value
		exists, err := a.db.TemplateExists(ctx, id)
		if err == nil && !exists {
			err = domain.ErrInvalid("template_id", "is not a phishing template")
		}
		for i, user := range users {
			results[i] = domain.Result{User: user, Template: id}
		}
		return results, err
	}
	options, err := t.TemplateOptions(ctx)
	if err != nil {
		return nil, err
	}
	for i, user := range users {
		template, ok := domain.ChooseTemplate(options, targets[user])
		if !ok {
			return nil, domain.ErrInvalid("template_id", "is required, for there is no template in the language "+
				string(targets[user].Language)+" of the categories that the client has enabled")
		}
		results[i] = domain.Result{User: user, Template: template}
	}
	return results, nil
}
