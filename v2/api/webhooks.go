package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Webhook is a subscription as v2 shows it.
type Webhook struct {
	ID             domain.WebhookID       `json:"id" doc:"Opaque id of the webhook."`
	URL            string                 `json:"url" format:"uri" doc:"The https address that events are delivered to."`
	Events         []domain.EventType     `json:"events" doc:"The kinds of events that are delivered."`
	ClientIDs      []domain.ClientID      `json:"client_ids" doc:"The clients that the subscription is limited to; empty for all that its API key reaches."`
	Description    *string                `json:"description" doc:"What the webhook is for. Null where none was given."`
	Status         domain.WebhookStatus   `json:"status" doc:"A paused subscription was paused by a caller, a disabled one by the service: for 24 hours no delivery succeeded and some failed, the endpoint answered 410, or its API key was revoked or has expired."`
	CreatedAt      domain.Time            `json:"created_at" doc:"When the webhook was created."`
	LastDeliveryAt *domain.Time           `json:"last_delivery_at" doc:"When a delivery last succeeded. Null for never."`
	FailingSince   *domain.Time           `json:"failing_since" since:"2.4" doc:"When the first of the deliveries failed that have failed one after another. Null where the last one succeeded, and after a new address or being made active."`
	DisabledReason *domain.DisabledReason `json:"disabled_reason" since:"2.5" doc:"Why the service disabled the webhook: deliveries failed for 24 hours and none succeeded (failures), the endpoint answered 410 (gone), or the API key of the webhook was revoked (key_revoked) or has expired (key_expired). Null if it is not disabled. Webhooks that version 1.0 disabled have null too."`
}

// WebhookWithSecret is a subscription with the secret that its events are signed with, which is shown once.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" doc:"What events are signed with. It is not shown again."`
}

// WebhookPath is the path of an operation on one subscription.
type WebhookPath struct {
	WebhookID domain.WebhookID `path:"webhook_id" doc:"Opaque id of the webhook."`
}

// The operations on webhooks.
var (
	ListWebhooks = op.DeclareList[ListWebhooksInput, Webhook](op.Meta{
		ID: "webhooks.list", Method: "GET", Path: "/webhooks", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary: "List the webhooks",
		Description: "Returns the webhooks whose clients the key can reach, by their creation. Secrets are not " +
			"shown.",
		Columns: []string{"id", "url", "status", "events"},
	})
	GetWebhook = op.Declare[GetWebhookInput, Webhook](op.Meta{
		ID: "webhooks.get", Method: "GET", Path: "/webhooks/:webhook_id", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary:     "Read a webhook",
		Description: "Returns one webhook, without its secret.",
	})
	CreateWebhook = op.Declare[CreateWebhookInput, WebhookWithSecret](op.Meta{
		ID: "webhooks.create", Method: "POST", Path: "/webhooks", Scope: domain.Write, Since: op.V2_3, Status: 201, ReachesOut: true,
		Summary: "Create a webhook, and show its secret once",
		Description: "Creates an active webhook with the access of the key, narrowed by `client_ids`; a partner may have " +
			"20. The answer shows the secret that deliveries are signed with, once.", Secret: true,
	})
	UpdateWebhook = op.Declare[UpdateWebhookInput, Webhook](op.Meta{
		ID: "webhooks.update", Starred: true, Method: "PATCH", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Update a webhook: pause it, or activate it again",
		Description: "Changes the fields that are sent: `paused` stops deliveries, `active` starts them again and " +
			"revives a disabled webhook; what happened in between is not delivered. If the API key of the webhook was " +
			"revoked or has expired, only `active` is accepted: the webhook continues with the calling key and the clients " +
			"that it had.",
		Fails: []domain.Code{domain.Conflict},
	})
	DeleteWebhook = op.Declare[DeleteWebhookInput, op.NoContent](op.Meta{
		ID: "webhooks.delete", Method: "DELETE", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 204,
		Summary:     "Delete a webhook",
		Description: "Deletes the webhook. Deliveries that wait are dropped.",
	})
	ReplaceWebhookSecret = op.Declare[ReplaceWebhookSecretInput, WebhookWithSecret](op.Meta{
		ID: "webhooks.secret", Starred: true, Method: "POST", Path: "/webhooks/:webhook_id/secret", Scope: domain.Write, Since: op.V2_3, Status: 200,
		Summary: "Give a webhook a new secret; the old one signs too for 24 hours",
		Description: "Makes a new secret and shows it once. For 24 hours the old one signs, too, so that receivers " +
			"can change over.", Secret: true,
	})
	TestWebhook = op.Declare[TestWebhookInput, WebhookTest](op.Meta{
		ID: "webhooks.test", Method: "POST", Path: "/webhooks/:webhook_id/test", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Deliver a ping to a webhook's endpoint, and report what it answered",
		Description: "Delivers a signed `ping` event once, whatever the status of the webhook, and reports what the " +
			"endpoint answered. It changes no status.",
	})
)

// ListWebhooksInput asks for a page of subscriptions, the oldest first.
type ListWebhooksInput struct {
	Query struct{ op.Paging }
}

// GetWebhookInput asks for one subscription.
type GetWebhookInput struct{ Path WebhookPath }

// CreateWebhookInput asks for a new subscription, with the access of the caller's key.
type CreateWebhookInput struct {
	Body struct {
		URL         string             `json:"url" validate:"filled,max=2000,endpoint" doc:"An https address on the internet: without user name and fragment, on the port 443 or one from 1024 on."`
		Events      []domain.EventType `json:"events" validate:"required,min=1,max=100,dive,enum" doc:"The kinds of events to deliver. A repeated one counts once."`
		ClientIDs   []domain.ClientID  `json:"client_ids,omitzero" validate:"max=500" doc:"The clients that the subscription is limited to; a repeated one counts once. Left out or empty, all that the key reaches."`
		Description *string            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for."`
	}
}

// WebhookSwitch is a status that a caller may set.
type WebhookSwitch string

// Values lists the statuses that a caller may set.
func (WebhookSwitch) Values() []string {
	return []string{string(domain.WebhookActive), string(domain.WebhookPaused)}
}

// UpdateWebhookInput asks for changes to a subscription.
type UpdateWebhookInput struct {
	Path WebhookPath
	Body struct {
		URL         domain.Optional[string]             `json:"url,omitzero" validate:"omitnil,filled,max=2000,endpoint" doc:"The https address to deliver to, with the rules of creation."`
		Events      domain.Optional[[]domain.EventType] `json:"events,omitzero" validate:"omitnil,min=1,max=100,dive,enum" doc:"The new list of events, which replaces the old one. A repeated one counts once."`
		ClientIDs   domain.Optional[[]domain.ClientID]  `json:"client_ids,omitzero" validate:"omitnil,max=500" doc:"The new list of clients, which replaces the old one; a repeated one counts once. Empty for all that the webhook's API key reaches."`
		Description domain.Optional[*string]            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for. Null clears it."`
		Status      domain.Optional[WebhookSwitch]      `json:"status,omitzero" validate:"omitnil,enum" doc:"Pausing drops the deliveries that wait. What happens until the webhook is active again is not delivered later. active also revives a disabled webhook."`
	}
}

// DeleteWebhookInput asks to delete a subscription.
type DeleteWebhookInput struct{ Path WebhookPath }

// ReplaceWebhookSecretInput asks for a new secret of a subscription.
type ReplaceWebhookSecretInput struct{ Path WebhookPath }

// TestWebhookInput asks for a ping to the endpoint of a subscription.
type TestWebhookInput struct {
	Path WebhookPath

	// Try is the outcome of the ping; the preparation sets it.
	Try domain.DeliveryTry `json:"-"`
}

// WebhookTest is the outcome of a ping.
type WebhookTest struct {
	Delivered  bool `json:"delivered" doc:"Whether the endpoint answered with a 2xx status in time."`
	StatusCode int  `json:"status_code" doc:"Status of the answer; 0 where there was none."`
	DurationMS int  `json:"duration_ms" doc:"How long the endpoint took, in milliseconds."`
}

// PingType is the type of a ping. It is none of domain.EventTypes.
const PingType = "ping"

// PingEvent is the body of a ping.
type PingEvent struct {
	ID        domain.EventID `json:"id" doc:"Names the ping."`
	Type      string         `json:"type" doc:"What it is."`
	CreatedAt domain.Time    `json:"created_at" doc:"When it was sent."`
	ClientID  *noClient      `json:"client_id" doc:"Always null."`
	Data      PingData       `json:"data" doc:"What is tested."`
}

// noClient is the type of a ping's client, which is always nil: a ping is about no client.
type noClient string

// JSONSchema describes a string, as client_id is one in all other events. The example is null, as it is in pings.
func (noClient) JSONSchema() string { return `{"type":"string","examples":[null]}` }

// PingData is the data of a ping.
type PingData struct {
	WebhookID domain.WebhookID `json:"webhook_id" doc:"Opaque id of the webhook."`
}
