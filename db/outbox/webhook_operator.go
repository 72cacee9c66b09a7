package outbox

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ListedWebhook is a subscription in a list for an operator.
type ListedWebhook struct {
	domain.Webhook
	PartnerName string
	// KeyPrefix is the prefix of the key whose access the subscription has.
	KeyPrefix string
	// KeyExpiresAt and KeyRevokedAt are when that key expires, and when it was revoked.
	KeyExpiresAt, KeyRevokedAt *time.Time
	// AllClients is true if the subscription covers all clients of the partner. Otherwise Covered is how many it covers.
	AllClients bool
	Covered    int
}

// AllWebhooks lists for an operator the subscriptions of a partner or, for the zero id, of all partners. They are
// ordered by the name of the partner and the time of creation.
func AllWebhooks(ctx context.Context, d *db.DB, partner domain.PartnerID) ([]ListedWebhook, error) {
	q := pg.From("webhooks AS w").ColumnExpr(selectWebhook).
		ColumnExpr("p.name AS partner_name, k.prefix AS key_prefix, k.expires_at AS key_expires_at, k.revoked_at AS key_revoked_at").
		ColumnExpr("k.all_clients AND w.client_ids = '{}' AS all_clients").
		ColumnExpr(`CASE WHEN k.all_clients THEN cardinality(w.client_ids) ELSE (SELECT count(*)::int FROM api_key_clients AS l
			WHERE l.key_id = k.id AND (w.client_ids = '{}' OR l.client_id = ANY(w.client_ids))) END AS covered`).
		Join("JOIN partners AS p ON p.id = w.partner_id").Join("JOIN api_keys AS k ON k.id = w.key_id").
		OrderExpr("p.name_key, w.created_at, w.id")
	if !partner.IsZero() {
		q.Apply(pg.Where("w.partner_id = ?", partner))
	}
	return pg.All[ListedWebhook](ctx, d, "list webhooks", q)
}

// SetWebhookStatus sets the status of a subscription of any partner, by UpdateWebhook, and returns the subscription before.
// If the status does not change it does nothing. It returns NotFound if there is no such subscription, and Conflict if
// its key has ended.
func SetWebhookStatus(
	ctx context.Context, d *db.DB, id domain.WebhookID, status domain.WebhookStatus,
) (before domain.Webhook, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.WebhookLocks)
		h, err := readWebhook(ctx, c.DB, id, pg.From("webhooks AS w").ColumnExpr(selectWebhook).
			Apply(pg.Where("w.id = ?", id)).For("NO KEY UPDATE OF w"))
		if err != nil {
			return err
		}
		before = h.Webhook
		end, err := h.KeyEnd(ctx)
		switch {
		case err != nil:
			return err
		case end != "":
			return ErrKeyEnded(h.ID, end)
		case before.Status == status:
			return nil
		}
		after := h.Webhook
		after.Status = status
		return UpdateWebhook(ctx, c, h.Webhook, &after, nil)
	})
	return before, err
}

// DueDelivery is a delivery in a list for an operator.
type DueDelivery struct {
	domain.Delivery
	// DueAt is the time of the next attempt; nil if the delivery does not wait for one.
	DueAt *time.Time
}

// DeliveriesTo lists up to n deliveries of a subscription of any partner, the newest first. They have the status or, if
// it is empty, any status. It returns NotFound if there is no such subscription.
func DeliveriesTo(
	ctx context.Context, d *db.DB, id domain.WebhookID, status domain.DeliveryStatus, n int,
) ([]DueDelivery, error) {
	if _, err := pg.Find[domain.WebhookID](ctx, d, id.Noun(), pg.SQL("SELECT id FROM webhooks WHERE id = ?", id)); err != nil {
		return nil, err
	}
	q := pg.From("webhook_deliveries AS d").ColumnExpr(selectDelivery).
		ColumnExpr("CASE WHEN d.status = 'waiting' THEN d.due_at END AS due_at").
		Apply(pg.Where("d.webhook_id = ?", id)).OrderExpr("d.created_at DESC, d.id DESC")
	if status != "" {
		q.Apply(pg.Where("d.status = ?", status))
	}
	return pg.All[DueDelivery](ctx, d, "list deliveries", pg.Limit(q, n))
}
