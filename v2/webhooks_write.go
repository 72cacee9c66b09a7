package v2

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// prepareCreateWebhook checks the clients, the encryption key and the endpoint. The endpoint is last, as the check
// resolves its host.
func (a *API) prepareCreateWebhook(ctx context.Context, in *api.CreateWebhookInput) error {
	caller := domain.CallerFrom(ctx)
	if err := a.checkWebhookClients(ctx, caller.Key, newWebhookClients(caller, in)); err != nil {
		return err
	}
	if err := a.requireKey(); err != nil {
		return err
	}
	return a.checkEndpoint(ctx, in.Body.URL)
}

// newWebhookClients returns the clients that a new subscription is limited to. Without any, a caller who is limited to one
// client limits it to that one: the key itself may have access to more.
func newWebhookClients(caller *domain.Caller, in *api.CreateWebhookInput) []domain.ClientID {
	if len(in.Body.ClientIDs) == 0 && !caller.Only.IsZero() {
		return []domain.ClientID{caller.Only}
	}
	return in.Body.ClientIDs
}

// checkWebhookClients returns InvalidRequest for clients to which the caller or the subscription's key has no access.
// An empty list means all clients of the subscription's key: it is invalid if the caller has no access to some of them.
func (a *API) checkWebhookClients(ctx context.Context, key domain.KeyID, ids []domain.ClientID) error {
	if len(ids) == 0 {
		covered, err := outbox.CoversKey(ctx, a.db, key)
		if err == nil && !covered {
			err = domain.ErrInvalid("client_ids", "must name at least one client, because the API key that the webhook was "+
				"created with has access to more clients than this key")
		}
		return err
	}
	found, err := outbox.WebhookClients(ctx, a.db, key, ids)
	if err != nil {
		return err
	}
	return rejectUnknown("client_ids", ids, found, "is not a client that this key has access to")
}

func (a *API) createWebhook(ctx context.Context, in *api.CreateWebhookInput) (*api.WebhookWithSecret, error) {
	caller := domain.CallerFrom(ctx)
	w := domain.Webhook{
		ID: db.NewID[domain.WebhookKind](), Partner: caller.Partner, Key: caller.Key, URL: in.Body.URL,
		Events: dedupe(in.Body.Events), Clients: dedupe(newWebhookClients(caller, in)), Description: in.Body.Description,
		Status: domain.WebhookActive, HasAuthorization: in.Body.Authorization != nil,
	}
	secret, sealed, err := a.newSecret(w.ID)
	if err != nil {
		return nil, err
	}
	authorization, err := a.sealAuthorization(w.ID, in.Body.Authorization)
	if err != nil {
		return nil, err
	}
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := a.checkWebhookClients(ctx, w.Key, newWebhookClients(caller, in)); err != nil { // again: prepare had no transaction
			return err
		}
		w.CreatedAt, w.UpdatedAt = c.At, c.At
		return outbox.InsertWebhook(ctx, c, w, sealed, authorization)
	})
	if err != nil {
		return nil, err
	}
	return &api.WebhookWithSecret{Webhook: webhookOf(w), Secret: secret}, nil
}

// prepareUpdateWebhook checks the given clients, the encryption key if it is needed, and the given endpoint. The endpoint
// is last, as the check resolves its host.
func (a *API) prepareUpdateWebhook(ctx context.Context, in *api.UpdateWebhookInput) error {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return err
	}
	if err := a.checkWebhookUpdate(ctx, h, in); err != nil {
		return err
	}
	if in.Body.Authorization.Value != nil {
		if err := a.requireKey(); err != nil {
			return err
		}
	}
	if !in.Body.URL.Given {
		return nil
	}
	return a.checkEndpoint(ctx, in.Body.URL.Value)
}

func (a *API) updateWebhook(ctx context.Context, in *api.UpdateWebhookInput) (out *api.Webhook, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		before := h.Webhook
		if err := a.checkWebhookUpdate(ctx, h, in); err != nil { // again: prepare had no transaction
			return err
		}
		updated, changed := applyWebhookUpdate(h.Webhook, in)
		authorization, err := a.sealAuthorization(h.ID, in.Body.Authorization.Value)
		if err == nil && (changed || h.Key != before.Key) {
			err = outbox.UpdateWebhook(ctx, c, before, &updated, authorization)
		}
		out = new(webhookOf(updated))
		return err
	})
	return out, err
}

// checkWebhookUpdate checks an update of a subscription against its key. If the key has ended, the update must set the
// status to active: the subscription then is the caller's key's, with the access that it had, and h has that key and its
// clients (decisions 8.4). An empty client_ids does not widen it, because the update may repeat what the caller has
// read.
func (a *API) checkWebhookUpdate(ctx context.Context, h *outbox.Webhook, in *api.UpdateWebhookInput) error {
	end, err := h.KeyEnd(ctx)
	if err != nil {
		return err
	}
	clients := &in.Body.ClientIDs
	if end != "" {
		status := in.Body.Status
		if !status.Given || domain.WebhookStatus(status.Value) != domain.WebhookActive || h.Key == domain.CallerFrom(ctx).Key {
			return outbox.ErrKeyEnded(h.ID, end)
		}
		clients.Given = clients.Given && len(clients.Value) > 0
		tooMany, err := h.TakeOver(ctx)
		if err != nil {
			return err
		}
		if tooMany && !clients.Given {
			return domain.ErrConflict(h.ID.Noun(), "the webhook cannot keep the clients of its former key, because client_ids must contain 1 to 500 "+
				"clients; send the request again with 1 to 500 clients in client_ids",
				domain.FieldError{Field: "client_ids", Message: "must contain 1 to 500 clients"})
		}
	}
	if clients.Given {
		return a.checkWebhookClients(ctx, h.Key, clients.Value)
	}
	return nil
}

// applyWebhookUpdate returns the subscription with the requested changes, and whether they change it. Another server gets
// no authorization that was meant for the previous one: whoever may change the URL could otherwise read it there.
func applyWebhookUpdate(w domain.Webhook, in *api.UpdateWebhookInput) (domain.Webhook, bool) {
	b, url := in.Body, w.URL
	changed := domain.Apply(b.URL, &w.URL)
	switch {
	case b.Authorization.Given:
		changed = changed || w.HasAuthorization || b.Authorization.Value != nil
		w.HasAuthorization = b.Authorization.Value != nil
	case w.HasAuthorization:
		w.HasAuthorization = domain.SameWebhookServer(url, w.URL)
	}
	changed = applyList(b.Events, &w.Events) || changed
	changed = applyList(b.ClientIDs, &w.Clients) || changed
	changed = domain.ApplyNullable(b.Description, &w.Description) || changed
	status := domain.Optional[domain.WebhookStatus]{Given: b.Status.Given, Value: domain.WebhookStatus(b.Status.Value)}
	return w, domain.Apply(status, &w.Status) || changed
}

// applyList sets target to the values of a list, each once, if the list is given and they differ. It reports whether it
// did.
func applyList[T comparable](p domain.Optional[[]T], target *[]T) bool {
	values := dedupe(p.Value)
	if !p.Given || slices.Equal(values, *target) {
		return false
	}
	*target = values
	return true
}

// checkKeyEnd returns Conflict if the subscription's key has ended.
func checkKeyEnd(ctx context.Context, h *outbox.Webhook) error {
	end, err := h.KeyEnd(ctx)
	if err == nil && end != "" {
		err = outbox.ErrKeyEnded(h.ID, end)
	}
	return err
}

func (a *API) deleteWebhook(ctx context.Context, in *api.DeleteWebhookInput) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		return outbox.DeleteWebhook(ctx, c, h.ID)
	})
	return &op.NoContent{}, err
}

func (a *API) replaceWebhookSecret(ctx context.Context, in *api.ReplaceWebhookSecretInput) (out *api.WebhookWithSecret, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.LockWebhook(ctx, c, in.Path.WebhookID)
		if err != nil {
			return err
		}
		if err := checkKeyEnd(ctx, h); err != nil {
			return err
		}
		secret, sealed, err := a.newSecret(h.ID)
		if err != nil {
			return err
		}
		out = &api.WebhookWithSecret{Webhook: webhookOf(h.Webhook), Secret: secret}
		return outbox.ReplaceWebhookSecret(ctx, c, h.ID, sealed)
	})
	return out, err
}
