package v2

import (
	"context"
	"fmt"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Endpoints is how subscriptions reach the outside world.
type Endpoints interface {
	// Check reports InvalidRequest naming url for an address that is not delivered
	// to: its form, its port, or what its host resolves to. It takes at most a few
	// seconds.
	Check(ctx context.Context, url string) error
	// Send makes one signed try of a body and reports what came back. It returns no
	// error: a try that got no answer has StatusCode 0. secrets are the texts as they
	// were shown, the newest first.
	Send(ctx context.Context, url, eventID string, secrets []string, body []byte) domain.DeliveryTry
}

// Sealer keeps secrets: it encrypts a value for a context, and decrypts what it
// encrypted for the same one.
type Sealer interface {
	Seal(plain, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// WithWebhooks lets subscriptions be made, changed and tested. keys is nil where
// there is no key to keep their secrets with, and endpoints where the process
// reaches none: what needs them is then refused.
func WithWebhooks(endpoints Endpoints, keys Sealer) Option {
	return func(a *API) { a.endpoints, a.sealer = endpoints, keys }
}

// Webhook is a subscription as v2 shows it.
type Webhook struct {
	ID             domain.WebhookID     `json:"id" doc:"Opaque id of the webhook."`
	URL            string               `json:"url" format:"uri" doc:"The https address that events are delivered to."`
	Events         []domain.EventType   `json:"events" doc:"The kinds of events that are delivered."`
	ClientIDs      []domain.ClientID    `json:"client_ids" doc:"The clients that the subscription is limited to; empty for all that its API key reaches."`
	Description    *string              `json:"description" doc:"What the webhook is for. Null where none was given."`
	Status         domain.WebhookStatus `json:"status" doc:"A paused subscription was paused by a caller, a disabled one by the service: for 24 hours no delivery succeeded and some failed, or the endpoint answered 410."`
	CreatedAt      domain.Time          `json:"created_at" doc:"When the webhook was created."`
	LastDeliveryAt *domain.Time         `json:"last_delivery_at" doc:"When a delivery last succeeded. Null for never."`
}

// WebhookWithSecret is a subscription with the secret that its events are signed
// with, which is shown once.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" doc:"What events are signed with. It is not shown again."`
}

func webhookOf(w domain.Webhook) Webhook {
	return Webhook{
		ID: w.ID, URL: w.URL, Events: w.Events, ClientIDs: w.Clients, Description: w.Description, Status: w.Status,
		CreatedAt: domain.At(w.CreatedAt), LastDeliveryAt: domain.MaybeAt(w.LastDeliveryAt),
	}
}

// webhookPath is the path of an operation on one subscription.
type webhookPath struct {
	WebhookID domain.WebhookID `path:"webhook_id" doc:"Opaque id of the webhook."`
}

func (a *API) declareWebhooks() {
	a.ListWebhooks = op.AddList(&a.Set, op.Meta{
		ID: "webhooks.list", Method: "GET", Path: "/webhooks", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary: "List the webhooks",
		Description: "Returns the webhooks whose clients the key can reach, by their creation. Secrets are not " +
			"shown.",
		Columns: []string{"id", "url", "status", "events"},
	}, a.listWebhooks, webhookOf)

	a.GetWebhook = op.Add(&a.Set, op.Meta{
		ID: "webhooks.get", Method: "GET", Path: "/webhooks/:webhook_id", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary:     "Read a webhook",
		Description: "Returns one webhook, without its secret.",
	}, a.getWebhook)

	a.CreateWebhook = op.Add(&a.Set, op.Meta{
		ID: "webhooks.create", Method: "POST", Path: "/webhooks", Scope: domain.Write, Since: op.V2_3, Status: 201, ReachesOut: true,
		Summary: "Create a webhook, and show its secret once",
		Description: "Creates an active webhook with the access of the key, narrowed by `client_ids`; a partner may have " +
			"20. The answer shows the secret that deliveries are signed with, once.", Secret: true,
	}, a.createWebhook).Preparing(a.prepareCreateWebhook)

	a.UpdateWebhook = op.Add(&a.Set, op.Meta{
		ID: "webhooks.update", Starred: true, Method: "PATCH", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Update a webhook: pause it, or activate it again",
		Description: "Changes the fields that are sent and leaves the others. `paused` stops deliveries, `active` " +
			"starts them again and revives a disabled webhook; what happened in between is not delivered.",
	}, a.updateWebhook).Preparing(a.prepareUpdateWebhook)

	a.DeleteWebhook = op.Add(&a.Set, op.Meta{
		ID: "webhooks.delete", Method: "DELETE", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 204,
		Summary:     "Delete a webhook",
		Description: "Deletes the webhook. Deliveries that wait are dropped.",
	}, a.deleteWebhook)

	a.ReplaceWebhookSecret = op.Add(&a.Set, op.Meta{
		ID: "webhooks.secret", Starred: true, Method: "POST", Path: "/webhooks/:webhook_id/secret", Scope: domain.Write, Since: op.V2_3, Status: 200,
		Summary: "Give a webhook a new secret; the old one signs too for 24 hours",
		Description: "Makes a new secret and shows it once. For 24 hours the old one signs, too, so that receivers " +
			"can change over.", Secret: true,
	}, a.replaceWebhookSecret)

	a.TestWebhook = op.Add(&a.Set, op.Meta{
		ID: "webhooks.test", Method: "POST", Path: "/webhooks/:webhook_id/test", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Deliver a ping to a webhook's endpoint, and report what it answered",
		Description: "Delivers a signed `ping` event once, whatever the status of the webhook, and reports what the " +
			"endpoint answered. It changes no status.",
	}, a.testWebhook).Preparing(a.ping)
}

// ListWebhooks asks for a page of subscriptions, the oldest first.
type ListWebhooks struct {
	Query struct {
		op.Paging
	}
}

func (a *API) listWebhooks(ctx context.Context, _ *ListWebhooks, w domain.Window) (domain.Slice[domain.Webhook], error) {
	return outbox.Webhooks(ctx, a.db, w)
}

// GetWebhook asks for one subscription.
type GetWebhook struct {
	Path webhookPath
}

func (a *API) getWebhook(ctx context.Context, in *GetWebhook) (*Webhook, error) {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return nil, err
	}
	return new(webhookOf(h.Webhook)), nil
}

// newSecret makes a secret for a subscription, and seals it. Conflict where there is
// no key to do so with.
func (a *API) newSecret(id domain.WebhookID) (secret string, sealed []byte, err error) {
	if err := a.needKey(); err != nil {
		return "", nil, err
	}
	secret = domain.NewWebhookSecret()
	if sealed, err = a.sealer.Seal([]byte(secret), domain.WebhookSecretContext(id)); err != nil {
		return "", nil, fmt.Errorf("encrypt a webhook's secret: %w", err)
	}
	return secret, sealed, nil
}

// needKey reports Conflict where there is no key to keep secrets with.
func (a *API) needKey() error {
	if a.sealer != nil {
		return nil
	}
	return domain.ErrConflict("", "the service has no encryption key to keep the secrets of webhooks with: whoever "+
		"runs it makes one with partnerapi encryption-key, and gives it to serve and work by --encryption-key")
}

// secrets are what the subscription's events are signed with, the newest first.
// Conflict where they can't be decrypted.
func (a *API) secrets(ctx context.Context, h *outbox.Webhook) ([]string, error) {
	if err := a.needKey(); err != nil {
		return nil, err
	}
	sealed, err := h.SealedSecrets(ctx)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(sealed))
	for i := range sealed {
		plain, err := a.sealer.Open(sealed[i], domain.WebhookSecretContext(h.ID))
		if err != nil {
			return nil, &domain.Error{
				Code: domain.Conflict, Object: h.ID.Noun(), Cause: err,
				Message: "the secret of this webhook cannot be decrypted with the service's encryption key: give it a new one",
			}
		}
		texts[i] = string(plain)
	}
	return texts, nil
}

// checkEndpoint reports InvalidRequest for an address that is not delivered to.
func (a *API) checkEndpoint(ctx context.Context, url string) error {
	if a.endpoints == nil {
		return domain.ErrConflict("", "this process of the service reaches no endpoints of webhooks")
	}
	return a.endpoints.Check(ctx, url)
}
