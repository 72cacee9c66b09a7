package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Webhook is a subscription as v2 shows it.
type Webhook struct {
	ID             domain.WebhookID       `json:"id" doc:"Opaque ID of the webhook."`
	URL            string                 `json:"url" format:"uri" doc:"The HTTPS URL that events are delivered to."`
	Events         []domain.EventType     `json:"events" doc:"The event types that are delivered."`
	ClientIDs      []domain.ClientID      `json:"client_ids" doc:"The clients that the webhook is limited to; empty for all clients that its API key can access."`
	Description    *string                `json:"description" doc:"What the webhook is for. Null if no description is set."`
	Status         domain.WebhookStatus   `json:"status" doc:"Status of the webhook. paused: a caller paused it. disabled: the service disabled it because deliveries failed for 24 hours, the endpoint returned 410, or the webhook's API key was revoked or has expired."`
	CreatedAt      domain.Time            `json:"created_at" doc:"When the webhook was created."`
	LastDeliveryAt *domain.Time           `json:"last_delivery_at" doc:"When a delivery last succeeded. Null if never."`
	FailingSince   *domain.Time           `json:"failing_since" since:"2.4" doc:"When the current series of failures began. Null if no attempt has failed since the last success, URL change or activation."`
	DisabledReason *domain.DisabledReason `json:"disabled_reason" since:"2.5" doc:"Why the service disabled the webhook: all deliveries failed for 24 hours (failures), the endpoint returned 410 (gone), or the webhook's API key was revoked (key_revoked) or has expired (key_expired). Null if the webhook is not disabled or was disabled by version 1.0 of the service."`

	HasAuthorization bool `json:"has_authorization" since:"2.5" doc:"Whether deliveries include an Authorization header. Responses never contain the header's value."`
}

// WebhookWithSecret is a subscription with the secret that its events are signed with, which is shown once.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" doc:"The secret for verifying the signatures of deliveries. It is not shown again."`
}

// WebhookPath is the path of an operation on one subscription.
type WebhookPath struct {
	WebhookID domain.WebhookID `path:"webhook_id" doc:"Opaque ID of the webhook."`
}

// The operations on webhooks.
var (
	ListWebhooks = op.DeclareList[ListWebhooksInput, Webhook](op.Meta{
		ID: "webhooks.list", Method: "GET", Path: "/webhooks", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary:     "List webhooks",
		Description: "Returns the webhooks whose clients the API key can access, in order of creation, without their secrets.",
		Columns:     []string{"id", "url", "status", "events"},
	})
	GetWebhook = op.Declare[GetWebhookInput, Webhook](op.Meta{
		ID: "webhooks.get", Method: "GET", Path: "/webhooks/:webhook_id", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary:     "Get a webhook",
		Description: "Returns the webhook without its secret.",
	})
	CreateWebhook = op.Declare[CreateWebhookInput, WebhookWithSecret](op.Meta{
		ID: "webhooks.create", Method: "POST", Path: "/webhooks", Scope: domain.Write, Since: op.V2_3, Status: 201, ReachesOut: true,
		Summary: "Create a webhook",
		Description: "Creates an active webhook with the API key's access, limited by `client_ids`; a partner can have up to 20 webhooks. Only " +
			"this response contains the secret for verifying the signatures of deliveries.", Secret: true,
	})
	UpdateWebhook = op.Declare[UpdateWebhookInput, Webhook](op.Meta{
		ID: "webhooks.update", Starred: true, Method: "PATCH", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Update a webhook",
		Description: "Changes only the fields that you send; set `status` to `paused` to stop deliveries, or to `active` to resume them, " +
			"even for a disabled webhook. If the webhook's API key was revoked or has expired, you must set `status` to " +
			"`active`; the webhook then continues with the calling key and the same clients.",
		Fails: []domain.Code{domain.Conflict},
	})
	DeleteWebhook = op.Declare[DeleteWebhookInput, op.NoContent](op.Meta{
		ID: "webhooks.delete", Method: "DELETE", Path: "/webhooks/:webhook_id", Scope: domain.Write, Since: op.V2_3, Status: 204,
		Summary:     "Delete a webhook",
		Description: "Deletes the webhook and drops its waiting deliveries.",
	})
	ReplaceWebhookSecret = op.Declare[ReplaceWebhookSecretInput, WebhookWithSecret](op.Meta{
		ID: "webhooks.secret", Starred: true, Method: "POST", Path: "/webhooks/:webhook_id/secret", Scope: domain.Write, Since: op.V2_3, Status: 200,
		Summary: "Rotate a webhook secret",
		Description: "Generates a new secret and returns it once; for 24 hours, events are signed with both the old and new secrets. " +
			"Update your receivers within this time.", Secret: true,
	})
	TestWebhook = op.Declare[TestWebhookInput, WebhookTest](op.Meta{
		ID: "webhooks.test", Method: "POST", Path: "/webhooks/:webhook_id/test", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Send a test event",
		Description: "Sends one signed `ping` event to the endpoint, regardless of the webhook's status, and returns the result. The test does " +
			"not change the status.",
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
		URL         string             `json:"url" validate:"filled,max=2000,endpoint" doc:"A public HTTPS URL without a user name or fragment, on port 443 or any port from 1024 to 65535."`
		Events      []domain.EventType `json:"events" validate:"required,min=1,max=100,dive,enum" doc:"The event types to deliver. A repeated type counts once."`
		ClientIDs   []domain.ClientID  `json:"client_ids,omitzero" validate:"max=500" doc:"The clients that the webhook is limited to; a repeated ID counts once. If omitted or empty, the webhook covers all clients that the key can access."`
		Description *string            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for."`

		Authorization *string `json:"authorization,omitzero" since:"2.5" validate:"omitnil,max=1000,header" doc:"Value of the Authorization header in deliveries, such as Bearer and a token, for receivers that cannot verify signatures. Responses never contain this value."`
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
		URL         domain.Optional[string]             `json:"url,omitzero" validate:"omitnil,filled,max=2000,endpoint" doc:"The new HTTPS URL to deliver events to. The same rules apply as for a new webhook."`
		Events      domain.Optional[[]domain.EventType] `json:"events,omitzero" validate:"omitnil,min=1,max=100,dive,enum" doc:"The new list of event types, which replaces the old one. A repeated type counts once."`
		ClientIDs   domain.Optional[[]domain.ClientID]  `json:"client_ids,omitzero" validate:"omitnil,max=500" doc:"The new list of clients, which replaces the old one; a repeated ID counts once. An empty list means all clients that the webhook's API key can access."`
		Description domain.Optional[*string]            `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the webhook is for. Null clears it."`
		Status      domain.Optional[WebhookSwitch]      `json:"status,omitzero" validate:"omitnil,enum" doc:"The new status. paused drops waiting deliveries; events that occur before the webhook is active again are never delivered. active also reactivates a disabled webhook."`

		Authorization domain.Optional[*string] `json:"authorization,omitzero" since:"2.5" validate:"omitnil,max=1000,header" doc:"New value of the Authorization header in deliveries. The header is removed if you change the scheme, host or port of url and omit this field. Null clears it."`
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
	Delivered  bool `json:"delivered" doc:"Whether the endpoint returned a 2xx status in time."`
	StatusCode int  `json:"status_code" doc:"Status code of the response; 0 if there was no response."`
	DurationMS int  `json:"duration_ms" doc:"Response time of the endpoint, in milliseconds."`
}

// PingType is the type of a ping. It is none of domain.EventTypes.
const PingType = "ping"

// PingEvent is the body of a ping.
type PingEvent struct {
	ID        domain.EventID `json:"id" doc:"Opaque ID of the ping."`
	Type      string         `json:"type" doc:"Type of the event: ping."`
	CreatedAt domain.Time    `json:"created_at" doc:"When the ping was sent."`
	ClientID  *noClient      `json:"client_id" doc:"Always null."`
	Data      PingData       `json:"data" doc:"The webhook being tested."`
}

// noClient is the type of a ping's client, which is always nil: a ping is about no client.
type noClient string

// JSONSchema describes a string, as client_id is one in all other events. The example is null, as it is in pings.
func (noClient) JSONSchema() string { return `{"type":"string","examples":[null]}` }

// PingData is the data of a ping.
type PingData struct {
	WebhookID domain.WebhookID `json:"webhook_id" doc:"Opaque ID of the webhook."`
}
