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

// DeliveryTurns is the position from which the next claim of a process continues: after the last subscription that it
// read. The zero value begins with the first subscription. It is not safe for concurrent use.
type DeliveryTurns struct{ at domain.WebhookID }

// NewDeliveryTurns returns a position at a random id, so that processes begin with different subscriptions.
func NewDeliveryTurns() *DeliveryTurns { return &DeliveryTurns{domain.WebhookID(uuid.New())} }

// deliverySteps is the number of subscriptions that a transaction of a claim may read in addition to n.
const deliverySteps = 500

// round is one pass over all subscriptions with waiting deliveries, in the order of their ids.
type round struct {
	// began is the id after which the pass began, and at the id of the last subscription read.
	began, at domain.WebhookID
	// wrapped is true once the pass has continued from the first subscription.
	wrapped bool
	// exhausted is true once no subscription is left.
	exhausted bool
}

// waitingWebhook is a subscription with waiting deliveries.
type waitingWebhook struct {
	ID       domain.WebhookID
	Failing  bool
	DueAt    time.Time
	UnderWay int
	// Reason is why its deliveries are dropped; nil if they are not.
	Reason *string
	// Held reports whether its deliveries wait: its partner is suspended (db.SuspendedPartners), or its key has expired and
	// FollowKeys has not disabled it yet.
	Held    bool
	Wrapped bool
	// Step is the number of subscriptions read up to this one, and Found how many of them have due deliveries.
	Step, Found int
}

// next reads the next subscriptions of the round, each with one search of the index of waiting deliveries, until n have
// due deliveries, n+deliverySteps were read, or the round is over, and moves the round on. It returns those that
// are not held. Their Reason, if set, is why their waiting deliveries are to be dropped. UnderWay counts
// the tries in progress of those with due deliveries.
func (r *round) next(ctx context.Context, d *db.DB, n int, now time.Time) ([]waitingWebhook, error) {
	steps := n + deliverySteps
	visited, err := pg.All[waitingWebhook](ctx, d, "look for deliveries", pg.SQL(`
		WITH RECURSIVE walk (webhook_id, due_at, step, found, wrapped) AS (
			SELECT ?at::uuid, NULL::timestamptz, 0, 0, ?wrapped::boolean
			UNION ALL
			SELECT f.webhook_id, f.due_at, w.step + 1, w.found + (f.due_at <= ?now::timestamptz)::integer, f.wrapped
			FROM walk AS w CROSS JOIN LATERAL `+nextInTurn("webhook_deliveries", "webhook_id", "o.status = 'waiting'", "?began::uuid")+`
			WHERE w.step < ?steps::integer AND w.found < ?n::integer
		)
		SELECT w.id, w.failing_since IS NOT NULL AS failing, walk.due_at, leased.under_way, walk.wrapped, walk.step, walk.found,
			(w.partner_id IN (`+db.SuspendedPartners+`) OR w.status = 'active' AND k.revoked_at IS NULL AND k.expires_at <= ?now) IS TRUE AS held,
			CASE WHEN w.status = 'paused' THEN 'the subscription was paused'
				WHEN k.revoked_at IS NOT NULL THEN 'the API key of the subscription was revoked'
				WHEN w.status = 'disabled' AND w.disabled_reason = 'key_expired' THEN 'the API key of the subscription has expired'
				WHEN w.status = 'disabled' THEN 'the subscription was disabled'
			END AS reason
		FROM walk JOIN webhooks AS w ON w.id = walk.webhook_id JOIN api_keys AS k ON k.id = w.key_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS under_way FROM (
				SELECT 1 FROM webhook_deliveries AS d WHERE walk.due_at <= ?now
					AND d.webhook_id = w.id AND d.status = 'waiting' AND d.lease IS NOT NULL AND d.due_at > ?now LIMIT ?maxConcurrentTries
			) AS l
		) AS leased
		WHERE walk.step > 0 ORDER BY walk.step`, pg.Named{
		"at": r.at, "wrapped": r.wrapped, "began": r.began, "now": now, "steps": steps, "n": n,
		"maxConcurrentTries": domain.MaxConcurrentTries,
	}))
	if err != nil || len(visited) == 0 {
		r.exhausted = err == nil // nothing is left
		return nil, err
	}
	last := visited[len(visited)-1]
	r.at, r.wrapped, r.exhausted = last.ID, last.Wrapped, last.Step < steps && last.Found < n // within both limits
	return slices.DeleteFunc(visited, func(w waitingWebhook) bool { return w.Held }), nil
}
