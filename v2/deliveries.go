package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// WebhookDelivery is the delivery of an event to a subscription as v2 shows it.
type WebhookDelivery struct {
	ID        domain.DeliveryID     `json:"id"`
	EventID   domain.EventID        `json:"event_id"`
	Type      domain.EventType      `json:"type" doc:"The kind of the event."`
	Status    domain.DeliveryStatus `json:"status" doc:"A failed delivery was tried for 24 hours; a dropped one was given up because of the webhook or its API key."`
	Reason    *string               `json:"reason" doc:"Why it was dropped."`
	CreatedAt domain.Time           `json:"created_at" doc:"When the event was queued for the webhook."`
	Tries     []WebhookTry          `json:"tries" doc:"The oldest first."`
}

// WebhookTry is one request to an endpoint as v2 shows it.
type WebhookTry struct {
	At         domain.Time `json:"at" doc:"When the request was made."`
	StatusCode int         `json:"status_code" doc:"That of the answer; 0 where there was none."`
	DurationMS int         `json:"duration_ms" doc:"How long the endpoint took, in milliseconds."`
	Response   string      `json:"response" doc:"The first KiB of the answer, or why there was none."`
}

func deliveryOf(d domain.Delivery) WebhookDelivery {
	out := WebhookDelivery{
		ID: d.ID, EventID: d.Event, Type: d.Type, Status: d.Status, Reason: d.Reason, CreatedAt: domain.At(d.CreatedAt),
		Tries: make([]WebhookTry, len(d.Tries)),
	}
	for i, t := range d.Tries {
		out.Tries[i] = WebhookTry{At: domain.At(t.At), StatusCode: t.StatusCode, DurationMS: int(t.DurationMS), Response: t.Response}
	}
	return out
}

func (a *API) declareDeliveries() {
	a.ListDeliveries = op.AddList(&a.Set, op.Meta{
		ID: "webhooks.deliveries.list", Starred: true, Method: "GET", Path: "/webhooks/:webhook_id/deliveries", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary: "List the deliveries to a webhook, the newest first",
		Description: "Returns the deliveries to the webhook, newest first, each with its tries and the first KiB of " +
			"the answers. They are kept for 30 days.",
		Columns: []string{"id", "event_id", "type", "status", "reason", "created_at"},
	}, a.listDeliveries, deliveryOf)
	a.Redeliver = op.Add(&a.Set, op.Meta{
		ID: "webhooks.deliveries.redeliver", Starred: true, Method: "POST", Path: "/webhooks/:webhook_id/deliveries/:delivery_id/redeliver", Scope: domain.Write, Since: op.V2_3, Status: 200, ReachesOut: true,
		Summary: "Deliver an event to a webhook again",
		Description: "Queues the event of the delivery once more, with the same id and body, signed anew. Returns the " +
			"delivery.", Fails: []domain.Code{domain.Conflict},
	}, a.redeliver)
}

// ListDeliveries asks for a page of a subscription's deliveries.
type ListDeliveries struct {
	Path  webhookPath
	Query struct {
		op.Paging
	}
}

func (a *API) listDeliveries(
	ctx context.Context, in *ListDeliveries, w domain.Window,
) (domain.Slice[domain.Delivery], error) {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return domain.Slice[domain.Delivery]{}, err
	}
	return h.Deliveries(ctx, w)
}

// Redeliver asks for an event to be delivered again.
type Redeliver struct {
	Path struct {
		webhookPath
		DeliveryID domain.DeliveryID `path:"delivery_id"`
	}
}

func (a *API) redeliver(ctx context.Context, in *Redeliver) (out *WebhookDelivery, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
		if err != nil {
			return err
		}
		d, err := h.Redeliver(ctx, c, in.Path.DeliveryID)
		if err != nil {
			return err
		}
		out = new(deliveryOf(d))
		return nil
	})
	return out, err
}
