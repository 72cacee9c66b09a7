package v2

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/v2/op"
)

// PhishingSent is what became of a SendPhishing.
type PhishingSent struct {
	Sends []PhishingSend `json:"sends" doc:"One for each user, in the order of the request."`
}

// PhishingSend is a simulated mail that will be sent.
type PhishingSend struct {
	UserID     domain.UserID     `json:"user_id"`
	ResultID   domain.ResultID   `json:"result_id" doc:"Follow it in the client's phishing results."`
	TemplateID domain.TemplateID `json:"template_id"`
	SendAt     op.Time           `json:"send_at"`
}

func (a *API) declarePhishingSends() {
	a.SendPhishing = op.Add(&a.Set, op.Meta{
		ID: "phishing.send", Method: "POST", Path: "/clients/:client_id/phishing/sends", Scope: domain.Write, Since: op.V2_2, Status: 202,
		Summary: "Send simulated phishing mails to users of a client",
	}, a.sendPhishing)
}

// SendPhishing asks for a simulated mail to each of some users.
type SendPhishing struct {
	Path clientPath
	Body struct {
		UserIDs    []domain.UserID                `json:"user_ids" validate:"required,min=1,max=100" doc:"Active users of the client. A user who is named twice is sent one mail."`
		TemplateID op.Optional[domain.TemplateID] `json:"template_id,omitzero" doc:"Left out, each user is sent one that they have not seen, in their language and of the client's categories."`
		SendAt     op.Optional[op.Time]           `json:"send_at,omitzero" doc:"Left out or past, at once."`
	}
	// ClientOfUser takes the client of the one user who is named, whichever it
	// is, and leaves no choice of the template to the service. It is an input of
	// other surfaces in this process and stands in for the path.
	ClientOfUser bool
}

// sendPhishing schedules all of the mails or none. The users are locked, so that
// of two requests at once the second sees which templates the first chose.
func (a *API) sendPhishing(ctx context.Context, req *SendPhishing) (*PhishingSent, error) {
	sendAt := a.db.Now()
	var due time.Time // zero for at once: a job with a time waits until the queue looks for such
	if asked := req.Body.SendAt.Value; asked.After(sendAt) {
		sendAt, due = asked.Time, asked.Time
	}
	if req.ClientOfUser && !req.Body.TemplateID.Given {
		return nil, domain.ErrInvalid("template_id", "is required")
	}
	users := distinct(req.Body.UserIDs)
	return inTx(ctx, a.db, func(ctx context.Context) (*PhishingSent, error) {
		client, err := a.clientOfSends(ctx, req)
		if err != nil {
			return nil, err
		}
		targets, err := a.db.LockTargets(ctx, client, users)
		if err != nil {
			return nil, err
		}
		if err := refuseTargets(req.Body.UserIDs, targets); err != nil {
			return nil, err
		}
		results, err := a.chooseTemplates(ctx, client, req, users, targets)
		if err != nil {
			return nil, err
		}
		work := make([]job.Later, len(results))
		out := &PhishingSent{Sends: make([]PhishingSend, len(results))}
		for i := range results {
			r := &results[i]
			r.ID, r.SendAt = db.NewID[domain.ResultKind](), sendAt
			work[i] = job.Later{Work: job.SendSimulation{Client: client, Result: r.ID}, At: due}
			out.Sends[i] = PhishingSend{UserID: r.User, ResultID: r.ID, TemplateID: r.Template, SendAt: op.At(sendAt)}
		}
		if err := a.db.ScheduleResults(ctx, client, results); err != nil {
			return nil, err
		}
		return out, a.queue.Enqueue(ctx, work...)
	})
}

// clientOfSends is the client whose users are sent mails, within reach.
func (a *API) clientOfSends(ctx context.Context, req *SendPhishing) (domain.ClientID, error) {
	if req.ClientOfUser {
		u, err := a.db.User(ctx, req.Body.UserIDs[0])
		if err != nil {
			return domain.ClientID{}, err
		}
		return u.Client, nil
	}
	c, err := a.db.Client(ctx, req.Path.ClientID)
	return c.ID, err
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
func (a *API) chooseTemplates(ctx context.Context, client domain.ClientID, req *SendPhishing, users []domain.UserID, targets map[domain.UserID]domain.Target) ([]domain.Result, error) {
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
	options, err := a.db.TemplateOptions(ctx, client)
	if err != nil {
		return nil, err
	}
	for i, user := range users {
		template, ok := domain.ChooseTemplate(options, targets[user])
		if !ok {
			return nil, domain.ErrInvalid("template_id", "is required, for there is no template in the language "+string(targets[user].Language)+" of the categories that the client has enabled")
		}
		results[i] = domain.Result{User: user, Template: template}
	}
	return results, nil
}
