package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// PhishingSent is what became of a SendPhishing.
type PhishingSent struct {
	Sends []PhishingSend `json:"sends" doc:"The mails, one for each user, in the order of the request."`
}

// PhishingSend is a simulated mail that will be sent.
type PhishingSend struct {
	UserID     domain.UserID     `json:"user_id" doc:"The user whom the mail is for."`
	ResultID   domain.ResultID   `json:"result_id" doc:"Opaque id of the result. Follow it in the client's phishing results."`
	TemplateID domain.TemplateID `json:"template_id" doc:"The template of the mail."`
	SendAt     domain.Time       `json:"send_at" doc:"When the mail is sent."`
}

func (a *API) declarePhishingSends() {
	a.SendPhishing = op.Add(&a.Set, op.Meta{
		ID: "phishing.send", Method: "POST", Path: "/clients/:client_id/phishing/sends", Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Send simulated phishing mails to users of a client",
		Description: "Schedules a simulated mail to each user, for all of them or for none; an inactive user is refused. " +
			"Each mail has a `result_id` to follow in the client's phishing results.",
	}, a.sendPhishing)
}

// SendPhishing asks for a simulated mail to each of some users.
type SendPhishing struct {
	Path clientPath
	Body struct {
		UserIDs    []domain.UserID                    `json:"user_ids" validate:"required,min=1,max=100" doc:"Active users of the client. A user who is named twice is sent one mail."`
		TemplateID domain.Optional[domain.TemplateID] `json:"template_id,omitzero" doc:"The template for all users. Left out, each user is sent one that they have not seen, in their language and of the client's enabled categories."`
		SendAt     domain.Optional[domain.Time]       `json:"send_at,omitzero" doc:"When to send. Left out or past, at once."`
	}
}

func (a *API) sendPhishing(ctx context.Context, req *SendPhishing) (out *PhishingSent, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, req.Path.ClientID)
		if err != nil {
			return err
		}
		out, err = a.schedule(ctx, c, t, req)
		return err
	})
	return out, err
}

// schedule schedules all of the mails that the body asks for, or none. The users
// are locked, so that of two requests at once the second sees which templates the
// first chose.
func (a *API) schedule(ctx context.Context, c *db.Change, t *db.Tenant, req *SendPhishing) (*PhishingSent, error) {
	users := distinct(req.Body.UserIDs)
	targets, err := t.LockTargets(ctx, c, users)
	if err != nil {
		return nil, err
	}
	if err := refuseTargets(req.Body.UserIDs, targets); err != nil {
		return nil, err
	}
	results, err := a.chooseTemplates(ctx, t, req, users, targets)
	if err != nil {
		return nil, err
	}

	sendAt := c.At
	if asked := req.Body.SendAt.Value; asked.Time.After(sendAt) {
		sendAt = asked.Time
	}
	out := &PhishingSent{}
	for i := range results {
		r := &results[i]
		r.ID, r.SendAt = db.NewID[domain.ResultKind](), sendAt
		out.Sends = append(out.Sends, PhishingSend{
			UserID: r.User, ResultID: r.ID, TemplateID: r.Template, SendAt: domain.At(sendAt),
		})
	}
	return out, t.ScheduleResults(ctx, c, results)
}

func distinct[K domain.Kind](ids []domain.ID[K]) []domain.ID[K] {
	seen := make(map[domain.ID[K]]bool, len(ids))
	var once []domain.ID[K]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			once = append(once, id)
		}
	}
	return once
}

// refuseTargets reports the users who cannot be sent a mail, each by its place.
func refuseTargets(ids []domain.UserID, targets map[domain.UserID]domain.Target) error {
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

// chooseTemplates gives each user the template that was asked for, or one of
// those that the rule gives.
func (a *API) chooseTemplates(
	ctx context.Context, t *db.Tenant, req *SendPhishing, users []domain.UserID, targets map[domain.UserID]domain.Target,
) ([]domain.Result, error) {
	results := make([]domain.Result, len(users))
	if req.Body.TemplateID.Given {
		id := req.Body.TemplateID.Value
		known, err := a.db.TemplateExists(ctx, id)
		if err == nil && !known {
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
