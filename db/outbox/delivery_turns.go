package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// DeliveryTurns is the position from which the next claim of a process continues: after the
// last subscription that it looked at. The zero value begins with the first subscription. It
// is not for concurrent use.
type DeliveryTurns struct{ at domain.WebhookID }

// NewDeliveryTurns begins at a random subscription, so that several processes serve different
// ones.
func NewDeliveryTurns() *DeliveryTurns { return &DeliveryTurns{domain.WebhookID(uuid.New())} }

// deliverySteps is how many subscriptions a transaction of a claim looks at, beyond the
// number of deliveries that it wants.
const deliverySteps = 500

// round is one way round all subscriptions with waiting deliveries.
type round struct {
	began, at domain.WebhookID
	// wrapped says that it has continued from the first subscription.
	wrapped bool
	// over says that there are no more.
	over bool
}

// waitingWebhook is a subscription with waiting deliveries.
type waitingWebhook struct {
	ID       domain.WebhookID
	Failing  bool
	DueAt    time.Time
	UnderWay int
	// Reason says why its deliveries are given up; NULL where they are not.
	Reason *string
	// Suspended says that its partner is suspended.
	Suspended bool
	Wrapped   bool
	// Step counts the subscriptions that were looked at, and Found those with deliveries
	// due.
	Step, Found int
}

// next walks on, each subscription by one step on the index of waiting deliveries, until
// n have deliveries due, n+deliverySteps were looked at, or the round is over. It returns
// those whose partners are not suspended.
func (r *round) next(ctx context.Context, d *db.DB, n int, now time.Time) ([]waitingWebhook, error) {
	steps := n + deliverySteps
	walked, err := pg.All[waitingWebhook](ctx, d, "look for deliveries", pg.SQL(`
		WITH RECURSIVE walk (webhook_id, due_at, step, found, wrapped) AS (
			SELECT @at::uuid, NULL::timestamptz, 0, 0, @wrapped::boolean
			UNION ALL
			SELECT f.webhook_id, f.due_at, w.step + 1, w.found + (f.due_at <= @now::timestamptz)::integer, f.wrapped
			FROM walk AS w CROSS JOIN LATERAL `+nextInTurn("webhook_deliveries", "webhook_id", "o.status = 'waiting'", "@began::uuid")+`
			WHERE w.step < @steps::integer AND w.found < @n::integer
		)
		SELECT w.id, w.failing_since IS NOT NULL AS failing, walk.due_at, leased.under_way, walk.wrapped, walk.step, walk.found,
			w.partner_id IN (`+db.SuspendedPartners+`) AS suspended,
			CASE WHEN w.status = 'paused' THEN 'the subscription was paused'
				WHEN w.status = 'disabled' THEN 'the subscription was disabled'
				WHEN k.revoked_at IS NOT NULL THEN 'the API key of the subscription was revoked'
				WHEN k.expires_at <= @now THEN 'the API key of the subscription has expired'
			END AS reason
		FROM walk JOIN webhooks AS w ON w.id = walk.webhook_id JOIN api_keys AS k ON k.id = w.key_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS under_way FROM (
				SELECT 1 FROM webhook_deliveries AS d WHERE walk.due_at <= @now
					AND d.webhook_id = w.id AND d.status = 'waiting' AND d.lease IS NOT NULL AND d.due_at > @now LIMIT @maxTriesUnderWay
			) AS l
		) AS leased
		WHERE walk.step > 0 ORDER BY walk.step`, pg.Named{
		"at": r.at, "wrapped": r.wrapped, "began": r.began, "now": now, "steps": steps, "n": n,
		"maxTriesUnderWay": domain.MaxTriesUnderWay,
	}))
	if err != nil || len(walked) == 0 {
		r.over = err == nil
		return nil, err
	}
	last := walked[len(walked)-1]
	r.at, r.wrapped, r.over = last.ID, last.Wrapped, last.Step < steps && last.Found < n
	return slices.DeleteFunc(walked, func(w waitingWebhook) bool { return w.Suspended }), nil
}
