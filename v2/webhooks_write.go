package v2

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// CreateWebhook asks for a new subscription, with the access of the caller's key.
type CreateWebhook struct {
	Body struct {
		URL         string             `json:"url" validate:"filled,max=2000,endpoint" doc:"An https address on the internet: without user name and fragment, on the port 443 or one from 1024 on."`
		Events      []domain.EventType `json:"events" validate:"required,min=1,max=13,unique,dive,enum" doc:"The kinds of events to deliver, each once."`
		ClientIDs   []domain.ClientID  `json:"client_ids,omitzero" validate:"max=500,unique" doc:"The clients that the subscription is limited to. Left out or empty, all that the key reaches."`
		Description *string            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for."`
	}
}

// prepareCreateWebhook checks what is asked for, last whether the endpoint may be
// delivered to, for which its host is looked up.
func (a *API) prepareCreateWebhook(ctx context.Context, in *CreateWebhook) error {
	if err := a.checkWebhookClients(ctx, domain.CallerFrom(ctx).Key, in.Body.ClientIDs); err != nil {
		return err
	}
	if err := a.needKey(); err != nil {
		return err
	}
	return a.checkEndpoint(ctx, in.Body.URL)
}

// checkWebhookClients reports InvalidRequest for clients that the caller or the
// subscription's key does not reach, or for none where the key reaches more than the
// caller.
func (a *API) checkWebhookClients(ctx context.Context, key domain.KeyID, ids []domain.ClientID) error {
	if len(ids) == 0 {
		covered, err := outbox.CoversKey(ctx, a.db, key)
		if err == nil && !covered {
			err = domain.ErrInvalid("client_ids", "must name at least one client: the API key that the webhook was "+
				"created with reaches more clients than this one")
		}
		return err
	}
	found, err := outbox.WebhookClients(ctx, a.db, key, ids)
	if err != nil {
		return err
	}
	return unknownItems("client_ids", ids, found, "is not a client that this key has access to")
}

func (a *API) createWebhook(ctx context.Context, in *CreateWebhook) (*WebhookWithSecret, error) {
	caller := domain.CallerFrom(ctx)
	w := domain.Webhook{
		ID: db.NewID[domain.WebhookKind](), Partner: caller.Partner, Key: caller.Key, URL: in.Body.URL,
		Events: in.Body.Events, Clients: emptyIfNil(in.Body.ClientIDs), Description: in.Body.Description,
		Status: domain.WebhookActive,
	}
	secret, sealed, err := a.newSecret(w.ID)
	if err != nil {
		return nil, err
	}
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := a.checkWebhookClients(ctx, w.Key, w.Clients); err != nil {
			return err
		}
		w.CreatedAt, w.UpdatedAt = c.At, c.At
		return outbox.InsertWebhook(ctx, c, w, sealed)
	})
	if err != nil {
		return nil, err
	}
	return &WebhookWithSecret{webhookOf(w), secret}, nil
}

// emptyIfNil is a list that is shown as [] where it is nil.
func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// WebhookSwitch is a status that a caller may set.
type WebhookSwitch string

// Values lists the statuses that a caller may set.
func (WebhookSwitch) Values() []string {
	return []string{string(domain.WebhookActive), string(domain.WebhookPaused)}
}

// UpdateWebhook asks for changes to a subscription.
type UpdateWebhook struct {
	Path webhookPath
	Body struct {
		URL         domain.Optional[string]             `json:"url,omitzero" validate:"omitnil,filled,max=2000,endpoint" doc:"The https address to deliver to, with the rules of creation."`
		Events      domain.Optional[[]domain.EventType] `json:"events,omitzero" validate:"omitnil,min=1,max=13,unique,dive,enum" doc:"The new list of events, which replaces the old one. Each kind once."`
		ClientIDs   domain.Optional[[]domain.ClientID]  `json:"client_ids,omitzero" validate:"omitnil,max=500,unique" doc:"The new list of clients, which replaces the old one. Empty for all that the webhook's API key reaches."`
		Description domain.Optional[*string]            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for. Null clears it."`
		Status      domain.Optional[WebhookSwitch]      `json:"status,omitzero" validate:"omitnil,enum" doc:"Pausing drops the deliveries that wait. What happens until the webhook is active again is not delivered later. active also revives a disabled webhook."`
	}
}

// prepareUpdateWebhook checks what is asked for, last whether a new endpoint may be
// delivered to.
func (a *API) prepareUpdateWebhook(ctx context.Context, in *UpdateWebhook) error {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return err
	}
	if in.Body.ClientIDs.Given {
		if err := a.checkWebhookClients(ctx, h.Key, in.Body.ClientIDs.Value); err != nil {
			return err
		}
	}
	if !in.Body.URL.Given {
		return nil
	}
	return a.checkEndpoint(ctx, in.Body.URL.Value)
}

func (a *API) updateWebhook(ctx context.Context, in *UpdateWebhook) (out *Webhook, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		if in.Body.ClientIDs.Given {
			if err := a.checkWebhookClients(ctx, h.Key, in.Body.ClientIDs.Value); err != nil {
				return err
			}
		}
		after, changed := changedWebhook(h.Webhook, in)
		out = new(webhookOf(after))
		if !changed {
			return nil
		}
		return outbox.UpdateWebhook(ctx, c, h.Webhook, after)
	})
	return out, err
}

// changedWebhook is the subscription with what is asked for, and whether that
// changes it.
func changedWebhook(w domain.Webhook, in *UpdateWebhook) (domain.Webhook, bool) {
	b := in.Body
	changed := domain.Apply(b.URL, &w.URL)
	changed = applyList(b.Events, &w.Events) || changed
	changed = applyList(b.ClientIDs, &w.Clients) || changed
	changed = domain.ApplyNullable(b.Description, &w.Description) || changed
	status := domain.Optional[domain.WebhookStatus]{Given: b.Status.Given, Value: domain.WebhookStatus(b.Status.Value)}
	return w, domain.Apply(status, &w.Status) || changed
}

// applyList is domain.Apply for a list.
func applyList[T comparable](p domain.Optional[[]T], target *[]T) bool {
	if !p.Given || slices.Equal(p.Value, *target) {
		return false
	}
	*target = emptyIfNil(p.Value)
	return true
}

// DeleteWebhook asks for the end of a subscription.
type DeleteWebhook struct {
	Path webhookPath
}

func (a *API) deleteWebhook(ctx context.Context, in *DeleteWebhook) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		return outbox.DeleteWebhook(ctx, c, h.ID)
	})
	return &op.NoContent{}, err
}

// ReplaceWebhookSecret asks for a new secret of a subscription.
type ReplaceWebhookSecret struct {
	Path webhookPath
}

func (a *API) replaceWebhookSecret(ctx context.Context, in *ReplaceWebhookSecret) (out *WebhookWithSecret, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		secret, sealed, err := a.newSecret(h.ID)
		if err != nil {
			return err
		}
		out = &WebhookWithSecret{webhookOf(h.Webhook), secret}
		return outbox.ReplaceWebhookSecret(ctx, c, h.ID, sealed)
	})
	return out, err
}
