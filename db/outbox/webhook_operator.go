package outbox

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ListedWebhook is a subscription as an operator sees it.
type ListedWebhook struct {
	domain.Webhook
	PartnerName string
	// KeyPrefix is that of the key whose access the subscription has.
	KeyPrefix string
}

type listedWebhookRow struct {
	webhookRow
	PartnerName string
	KeyPrefix   string
}

// AllWebhooks lists the subscriptions of a partner, or of all partners for the zero
// one, by the partners' names and their creation: for an operator.
func AllWebhooks(ctx context.Context, d *db.DB, of domain.PartnerID) ([]ListedWebhook, error) {
	q := pg.From("webhooks AS w").Columns(pg.Columns[webhookRow]()).
		Columns("p.name AS partner_name, k.prefix AS key_prefix").
		Join("JOIN partners AS p ON p.id = w.partner_id").Join("JOIN api_keys AS k ON k.id = w.key_id").
		OrderBy("p.name_key, w.created_at, w.id")
	if !of.IsZero() {
		q.Where("w.partner_id = ?", of)
	}
	rows, err := pg.All[listedWebhookRow](ctx, d, "list webhooks", q)
	return pg.MapRows(rows, func(r *listedWebhookRow) ListedWebhook {
		return ListedWebhook{r.webhook(), r.PartnerName, r.KeyPrefix}
	}), err
}

// SetWebhookStatus pauses a subscription of any partner or makes it active, as
// UpdateWebhook does, and returns the status before. NotFound where there is none.
func SetWebhookStatus(
	ctx context.Context, d *db.DB, id domain.WebhookID, status domain.WebhookStatus,
) (before domain.WebhookStatus, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.Lock(db.WebhookLocks)
		h, err := webhook(ctx, c.DB, id, pg.From("webhooks AS w").Columns(pg.Columns[webhookRow]()).
			Where("w.id = ?", id).For("NO KEY UPDATE OF w"))
		if err != nil {
			return err
		}
		before = h.Status
		if before == status {
			return nil
		}
		after := h.Webhook
		after.Status = status
		return UpdateWebhook(ctx, c, h.Webhook, &after)
	})
	return before, err
}

// DueDelivery is a delivery as an operator sees it.
type DueDelivery struct {
	domain.Delivery
	// DueAt is when the next try is due; nil where none is.
	DueAt *time.Time
}

type dueDeliveryRow struct {
	deliveryRow
	DueAt *time.Time
}

// DeliveriesTo lists up to n deliveries to a subscription of any partner, the newest
// first, of one status or, for an empty one, of all. NotFound where there is no such
// subscription.
func DeliveriesTo(
	ctx context.Context, d *db.DB, id domain.WebhookID, status domain.DeliveryStatus, n int,
) ([]DueDelivery, error) {
	if _, err := pg.Find[domain.WebhookID](ctx, d, id.Noun(), pg.SQL("SELECT id FROM webhooks WHERE id = ?", id)); err != nil {
		return nil, err
	}
	q := pg.From("webhook_deliveries AS d").Columns(pg.Columns[deliveryRow]()).
		Columns("CASE WHEN d.status = 'waiting' THEN d.due_at END AS due_at").
		Where("d.webhook_id = ?", id).OrderBy("d.created_at DESC, d.id DESC").Limit(n)
	if status != "" {
		q.Where("d.status = ?", status)
	}
	rows, err := pg.All[dueDeliveryRow](ctx, d, "list deliveries", q)
	return pg.MapRows(rows, func(r *dueDeliveryRow) DueDelivery { return DueDelivery{r.delivery(), r.DueAt} }), err
}
