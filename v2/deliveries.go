package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func deliveryOf(d domain.Delivery) api.WebhookDelivery {
	out := api.WebhookDelivery{
		ID: d.ID, EventID: d.Event, Type: d.Type, Status: d.Status, Reason: d.Reason, CreatedAt: domain.At(d.CreatedAt),
		Tries: make([]api.WebhookTry, len(d.Tries)),
	}
	for i, t := range d.Tries {
		out.Tries[i] = api.WebhookTry{At: domain.At(t.At), StatusCode: t.StatusCode, DurationMS: int(t.DurationMS), Response: t.Response}
	}
	return out
}

func (a *API) listDeliveries(
	ctx context.Context, in *api.ListDeliveriesInput, w domain.Window,
) (domain.Slice[domain.Delivery], error) {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return domain.Slice[domain.Delivery]{}, err
	}
	return h.Deliveries(ctx, w)
}

func (a *API) redeliver(ctx context.Context, in *api.RedeliverInput) (out *api.WebhookDelivery, err error) {
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
