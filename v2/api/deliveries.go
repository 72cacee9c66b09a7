package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// WebhookDelivery is the delivery of an event to a subscription as v2 shows it.
type WebhookDelivery struct {
	ID        domain.DeliveryID     `json:"id"`
	EventID   domain.EventID        `json:"event_id"`
	Type      domain.EventType      `json:"type" doc:"The type of the event."`
	Status    domain.DeliveryStatus `json:"status" doc:"Status of the delivery. failed: all attempts failed for 24 hours, or the endpoint returned 410; dropped: the service ended the delivery because of the webhook, its API key or the client (see reason)."`
	Reason    *string               `json:"reason" doc:"Why the delivery was dropped. Null if it was not dropped."`
	CreatedAt domain.Time           `json:"created_at" doc:"When the event was queued for the webhook."`
	Tries     []WebhookTry          `json:"tries" doc:"The delivery attempts, oldest first."`
}

// WebhookTry is one request to an endpoint as v2 shows it.
type WebhookTry struct {
	At         domain.Time `json:"at" doc:"When the request was sent."`
	StatusCode int         `json:"status_code" doc:"Status code of the response; 0 if there was no response."`
	DurationMS int         `json:"duration_ms" doc:"Response time of the endpoint, in milliseconds."`
	Response   string      `json:"response" doc:"The first KiB of the response or, if there was none, the reason."`
}

// The operations on the deliveries to a webhook.
var (
	ListDeliveries = op.DeclareList[ListDeliveriesInput, WebhookDelivery](op.Meta{
		ID: "webhooks.deliveries.list", Starred: true, Method: "GET", Path: "/webhooks/:webhook_id/deliveries", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary: "List webhook deliveries",
		Description: "Returns the deliveries to the webhook, newest first, each with its attempts and the first KiB of each response. " +
			"Deliveries are kept for 30 days.",
		Columns: []string{"id", "event_id", "type", "status", "reason", "created_at"},
	})
	Redeliver = op.Declare[RedeliverInput, WebhookDelivery](op.Meta{
		ID: "webhooks.deliveries.redeliver", Starred: true, Method: "POST", Path: "/webhooks/:webhook_id/deliveries/:delivery_id/redeliver", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary:     "Redeliver an event",
		Description: "Queues the event for delivery again, with the same ID and body but a new signature. Returns the delivery.", Fails: []domain.Code{domain.Conflict},
	})
)

// ListDeliveriesInput asks for a page of a subscription's deliveries.
type ListDeliveriesInput struct {
	Path  WebhookPath
	Query struct{ op.Paging }
}

// RedeliverInput asks for an event to be delivered again.
type RedeliverInput struct {
	Path struct {
		WebhookPath
		DeliveryID domain.DeliveryID `path:"delivery_id"`
	}
}
