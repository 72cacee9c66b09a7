package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// selectDelivery selects domain.Deliveries from webhook_deliveries, alias d.
const selectDelivery = `d.webhook_id AS webhook, d.id, d.event_id AS event, d.type, d.status, d.reason, d.created_at, d.tries`

// deliveryReach returns the condition that the client of a delivery, alias d, is within the caller's reach. The
// subscription may have had a wider access when the delivery was created, and the client may have been archived since.
func deliveryReach(ctx context.Context) pg.Query {
	return pg.SQL("EXISTS (SELECT 1 FROM clients AS c WHERE c.id = d.client_id AND ?)", db.WithinReach(ctx))
}

// Deliveries reads a page of the subscription's deliveries for clients within the caller's reach, the newest first.
func (h *Webhook) Deliveries(ctx context.Context, w domain.Window) (domain.Slice[domain.Delivery], error) {
	k := pg.ByTime("d.created_at", "d.id", func(d *domain.Delivery) (time.Time, domain.DeliveryID) { return d.CreatedAt, d.ID })
	k.Table, k.Select = "webhook_deliveries AS d", func(q *bun.SelectQuery) { q.ColumnExpr(selectDelivery) }
	k.Desc, k.OneIndex = true, true // the plan of the page is kept
	k.Where.Add("d.webhook_id = ?", h.ID)
	k.Where.Add("?", deliveryReach(ctx))
	return pg.CountedPage(ctx, h.db, k, w)
}

// Redeliver makes a finished delivery wait again, due now, with a new retry schedule. A waiting delivery becomes due
// now, unless a try is in progress. Redeliver returns NotFound if the delivery is not one of the subscription or not
// within the caller's reach, and Conflict if the subscription is not active, its key is no longer valid, the event was
// deleted, or its client is no longer within the access of the subscription.
//
// It does not lock the subscription: if that is paused at the same moment, the next claim drops the delivery.
func (h *Webhook) Redeliver(ctx context.Context, c *db.Change, id domain.DeliveryID) (domain.Delivery, error) {
	s, err := pg.Find[struct {
		Kept, Wanted bool
		End          domain.DisabledReason
	}](ctx, c, id.Noun(), pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM published_events AS p WHERE p.partner_id = d.partner_id AND p.position = d.position) AS kept,
			`+withinAccess("d.client_id")+` AS wanted,
			coalesce(`+keyEnd+`, '') AS "end"
		FROM webhook_deliveries AS d JOIN webhooks AS w ON w.id = d.webhook_id JOIN api_keys AS k ON k.id = w.key_id
		WHERE d.webhook_id = ?webhook AND d.id = ?id AND ?reach`,
		pg.Named{"now": c.At, "webhook": h.ID, "id": id, "reach": deliveryReach(ctx)}))
	switch {
	case err != nil:
		return domain.Delivery{}, err
	case s.End != "":
		return domain.Delivery{}, ErrKeyEnded(h.ID, s.End)
	case h.Status != domain.WebhookActive:
		return domain.Delivery{}, domain.ErrConflict(h.ID.Noun(),
			"the webhook is "+string(h.Status)+"; set its status to active before you redeliver an event")
	case !s.Kept:
		return domain.Delivery{}, domain.ErrConflict(id.Noun(), "the event is no longer available; events are kept for 30 days")
	case !s.Wanted:
		return domain.Delivery{}, domain.ErrConflict(id.Noun(), "the webhook no longer has access to the client of the event")
	}
	return h.requeue(ctx, c, id)
}

// requeue makes a delivery wait, due now. If it had ended, its retry schedule begins anew. If a try is in progress,
// which a lease shows, nothing changes.
func (h *Webhook) requeue(ctx context.Context, c *db.Change, id domain.DeliveryID) (domain.Delivery, error) {
	const ended = "d.status <> 'waiting'"
	d, err := pg.One[domain.Delivery](ctx, c, "make a delivery wait again", pg.SQL(`
		UPDATE webhook_deliveries AS d SET status = 'waiting', reason = NULL,
			due_at = CASE WHEN `+ended+` THEN ?now WHEN d.lease IS NULL THEN least(d.due_at, ?now) ELSE d.due_at END,
			lease = CASE WHEN `+ended+` THEN NULL ELSE d.lease END,
			first_try_at = CASE WHEN `+ended+` THEN NULL ELSE d.first_try_at END,
			queued_at = CASE WHEN `+ended+` THEN clock_timestamp() ELSE d.queued_at END,
			number = CASE WHEN `+ended+` THEN nextval('event_numbers') ELSE d.number END
		WHERE d.webhook_id = ?webhook AND d.id = ?id RETURNING `+selectDelivery,
		pg.Named{"webhook": h.ID, "id": id, "now": c.Now()}))
	if errors.Is(err, pg.ErrNoRow) { // its retention ended after Redeliver read it
		err = domain.ErrNotFound(id.Noun())
	}
	return d, err
}
