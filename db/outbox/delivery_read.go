package outbox

import (
	"context"
	"time"

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

// maxCounted bounds the counting of deliveries.
const maxCounted = 100_000

// DeliveryBacklog counts waiting deliveries, and subscriptions by status.
type DeliveryBacklog struct {
	// Waiting is the number of deliveries that wait for a try, up to 100,000.
	Waiting int
	// Due is the earliest past due time of a waiting delivery that no process is trying; zero if none is due.
	Due time.Time `bun:",nullzero"`
	// Active, Paused and Disabled count subscriptions.
	Active, Paused, Disabled int
	// Failing are the active subscriptions that have failed longest, up to 20.
	Failing []FailingWebhook `bun:"-"`
}

// FailingWebhook is a subscription whose deliveries have failed since FailingSince without a success.
type FailingWebhook struct {
	ID           domain.WebhookID
	FailingSince time.Time
}

// DeliveryBacklogs counts waiting deliveries, up to maxCounted, and subscriptions by status, and lists the 20 that have
// failed longest. Its cost depends only on the number of subscriptions.
func DeliveryBacklogs(ctx context.Context, d *db.DB) (DeliveryBacklog, error) {
	backlog, err := pg.One[DeliveryBacklog](ctx, d, "count deliveries", pg.SQL(`
		SELECT (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE status = 'waiting' LIMIT ?0) AS w) AS waiting,
			min(first.due_at) FILTER (WHERE first.due_at <= ?1) AS due,
			count(*) FILTER (WHERE w.status = 'active') AS active,
			count(*) FILTER (WHERE w.status = 'paused') AS paused,
			count(*) FILTER (WHERE w.status = 'disabled') AS disabled
		FROM webhooks AS w LEFT JOIN LATERAL (
			SELECT d.due_at FROM webhook_deliveries AS d
			WHERE d.webhook_id = w.id AND d.status = 'waiting' ORDER BY d.due_at LIMIT 1
		) AS first ON true`, maxCounted, d.Now()))
	if err != nil {
		return backlog, err
	}
	backlog.Failing, err = pg.All[FailingWebhook](ctx, d, "find webhooks that fail", pg.SQL(`
		SELECT id, failing_since FROM webhooks WHERE status = 'active' AND failing_since IS NOT NULL
		ORDER BY failing_since, id LIMIT 20`))
	return backlog, err
}
