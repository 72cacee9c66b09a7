package outbox

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// DeliveryTarget is the endpoint of a subscription, with the secrets of its deliveries. One statement reads it, so that
// no secret is sent to the endpoint of another time.
type DeliveryTarget struct {
	ID  domain.WebhookID
	URL string
	// Secret and Replaced are sealed. Replaced is the secret before Secret; it is nil once it no longer signs.
	Secret, Replaced []byte
	// Authorization is the value of the Authorization header, sealed; nil for none.
	Authorization []byte
}

// selectTarget selects DeliveryTargets from webhooks at a time.
const selectTarget = `SELECT id, url, secret, CASE WHEN replaced_until > ?now THEN replaced_secret END AS replaced,
	CASE WHEN authorization_url = url THEN sealed_authorization END AS authorization FROM webhooks`

// Target returns the subscription's target. It returns NotFound if the subscription was deleted.
func (h *Webhook) Target(ctx context.Context) (DeliveryTarget, error) {
	return pg.Find[DeliveryTarget](ctx, h.db, h.ID.Noun(), pg.SQL(
		selectTarget+" WHERE id = ?id", pg.Named{"id": h.ID, "now": h.db.Now()}))
}

// Message returns a message to the target, without an event. open decrypts a secret that was sealed for a context.
func (t *DeliveryTarget) Message(open func(sealed, context []byte) ([]byte, error)) (domain.DeliveryMessage, error) {
	m := domain.DeliveryMessage{URL: t.URL}
	for _, sealed := range [][]byte{t.Secret, t.Replaced} {
		if sealed == nil {
			continue
		}
		plain, err := open(sealed, domain.WebhookSecretContext(t.ID))
		if err != nil {
			return m, err
		}
		m.Secrets = append(m.Secrets, string(plain))
	}
	if t.Authorization == nil {
		return m, nil
	}
	plain, err := open(t.Authorization, domain.WebhookAuthorizationContext(t.ID))
	m.Authorization = string(plain)
	return m, err
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
	rows, err := pg.All[DeliveryTarget](ctx, d, "read where deliveries go", pg.SQL(
		selectTarget+" WHERE id = ANY(?ids::uuid[])", pg.Named{"ids": pg.IDs(ids), "now": d.Now()}))
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
