package outbox

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// DeliveryTarget is the endpoint of a subscription, with the secrets that sign its deliveries.
type DeliveryTarget struct {
	ID  domain.WebhookID
	URL string
	// Secret and Replaced are sealed. Replaced is the secret before Secret; it is nil once it no longer signs.
	Secret, Replaced []byte
}

// EventPlace identifies a published event by its partner and position.
type EventPlace struct {
	Partner  domain.PartnerID
	Position int64
}

// EventPlace returns the place of the delivery's event.
func (l *DeliveryLease) EventPlace() EventPlace { return EventPlace{l.Partner, l.Position} }

// DeliveryTargets reads the targets of leased deliveries, by subscription. A deleted subscription has no target.
func DeliveryTargets(ctx context.Context, d *db.DB, leases []DeliveryLease) (map[domain.WebhookID]DeliveryTarget, error) {
	ids := pg.MapRows(leases, func(l *DeliveryLease) domain.WebhookID { return l.Webhook })
	rows, err := pg.All[DeliveryTarget](ctx, d, "read where deliveries go", pg.SQL(`
		SELECT id, url, secret, CASE WHEN replaced_until > ?1 THEN replaced_secret END AS replaced
		FROM webhooks WHERE id = ANY(?0::uuid[])`, pg.IDs(ids), d.Now()))
	return pg.Index(rows, func(t *DeliveryTarget) (domain.WebhookID, DeliveryTarget) { return t.ID, *t }), err
}

// eventBody is the body of a published event.
type eventBody struct {
	PartnerID domain.PartnerID
	Position  int64
	Body      string
}

// EventBodies reads the bodies of the events of leased deliveries, each event once. An event that was deleted has none.
func EventBodies(ctx context.Context, d *db.DB, leases []DeliveryLease) (map[EventPlace]string, error) {
	rows, err := pg.All[eventBody](ctx, d, "read events", pg.SQL(`
		SELECT e.partner_id, e.position, e.body
		FROM (SELECT DISTINCT * FROM unnest(?0::uuid[], ?1::bigint[]) AS p (partner_id, position)) AS p
		JOIN published_events AS e USING (partner_id, position)`,
		pg.MapRows(leases, func(l *DeliveryLease) [16]byte { return l.Partner }),
		pg.MapRows(leases, func(l *DeliveryLease) int64 { return l.Position })))
	return pg.Index(rows, func(r *eventBody) (EventPlace, string) {
		return EventPlace{r.PartnerID, r.Position}, r.Body
	}), err
}
