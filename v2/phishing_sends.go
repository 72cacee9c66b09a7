package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func (a *API) sendPhishing(ctx context.Context, req *api.SendPhishingInput) (out *api.PhishingSent, err error) {
	err = a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		out, err = a.schedule(ctx, c, t, req)
		return err
	})
	return out, err
}

// schedule schedules all emails of the body, or none: at SendAt or, if that is past or absent, at once. It locks the
// users: a concurrent request for one of them then waits, and sees the template chosen here as used.
func (a *API) schedule(ctx context.Context, c *db.Change, t *db.Tenant, req *api.SendPhishingInput) (*api.PhishingSent, error) {
	users := dedupe(req.Body.UserIDs)
	targets, err := t.LockTargets(ctx, c, users)
	if err != nil {
		return nil, err
	}
	if err := checkEach("user_ids", req.Body.UserIDs, func(id domain.UserID) string {
		switch target, found := targets[id]; {
		case !found:
			return "is not a user of this client"
		case !target.Active:
			return "is an inactive user"
		}
		return ""
	}); err != nil {
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
		r.Label, r.LabelKey = req.Body.Label.Value, domain.SortKey(req.Body.Label.Value)
		send := api.PhishingSend{UserID: r.User, TemplateID: r.Template, SendAt: domain.At(sendAt)}
		if !req.Body.DryRun { // op.Set.DryRun rolls the results of a dry run back
			send.ResultID = &r.ID
		}
		out.Sends = append(out.Sends, send)
	}
	return out, t.ScheduleResults(ctx, c, results)
}

// dedupe returns the values in their order, each once. Arrays of bodies keep their repeated values until then, because
// errors name values by their places in the array as it was sent (decisions 2.5).
func dedupe[T comparable](values []T) []T {
	seen := make(map[T]bool, len(values))
	list := values[:0:0] // nil for nil
	for _, value := range values {
		if !seen[value] {
			seen[value] = true
			list = append(list, value)
		}
	}
	return list
}

// chooseTemplates returns a result for each user, with only its user and template: the template of the body or, without
// one, a template by domain.ChooseTemplate. It returns InvalidRequest for an unknown template, and if there is none for
// a user.
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
			return nil, domain.ErrInvalid("template_id", "is required, because there is no template in the language "+
				string(targets[user].Language)+" in the categories that the client has enabled")
		}
		results[i] = domain.Result{User: user, Template: template}
	}
	return results, nil
}
