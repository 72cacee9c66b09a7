package outbox

import (
	"context"
	"encoding/json"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// keptTries is how many tries of a delivery are kept, the newest: more than a
// schedule has, as a delivery may be made again.
const keptTries = 50

// DeliveryMark says what became of a leased delivery.
type DeliveryMark struct {
	DeliveryLease
	// Try is the try that was made; nil puts the delivery back without one.
	Try *domain.DeliveryTry
	// Status is DeliveryWaiting where it is to be tried again, at Due.
	Status domain.DeliveryStatus
	Due    time.Time
	// Reason says why it was dropped.
	Reason string
	// Gone says that the endpoint is to get nothing any more: the subscription is
	// disabled.
	Gone bool
}

// Marked is what marks led to.
type Marked struct {
	// Held are the deliveries whose leases were still held: the others are another's.
	Held map[domain.DeliveryID]bool
	// Disabled are the subscriptions that were disabled.
	Disabled []domain.WebhookID
}

// outcome is what happened to a subscription in a batch of marks.
type outcome struct {
	succeeded, failed *time.Time // the last that did, the first that did
	gone              bool
}

// MarkDeliveries writes what became of tries, where the leases are still held, and
// what follows for the subscriptions: the last delivery, since when they fail, and
// whether they are disabled, for no delivery has succeeded for
// domain.WebhookRetryFor in which some failed, or the endpoint is gone (decisions
// 8.4). It takes the same number of statements for any number of marks. What waits
// for a subscription that was disabled is given up by the next claim.
func MarkDeliveries(ctx context.Context, d *db.DB, marks []DeliveryMark) (done Marked, err error) {
	err = d.Tx(ctx, func(ctx context.Context) error {
		done = Marked{Held: make(map[domain.DeliveryID]bool, len(marks))}
		if err := lockWebhooks(ctx, d, marks); err != nil {
			return err
		}
		held, err := markTries(ctx, d, marks)
		if err != nil {
			return err
		}
		for _, id := range held {
			done.Held[id] = true
		}
		outcomes := outcomesOf(marks, done.Held)
		if len(outcomes) == 0 {
			return nil
		}
		done.Disabled, err = noteOutcomes(ctx, d, outcomes)
		return err
	})
	return done, err
}

// lockWebhooks locks the subscriptions of marks, in the order of their ids: whoever
// changes one locks it before its deliveries.
func lockWebhooks(ctx context.Context, d *db.DB, marks []DeliveryMark) error {
	ids := make([]domain.WebhookID, 0, len(marks))
	for i := range marks {
		ids = append(ids, marks[i].Webhook)
	}
	_, err := pg.Exec(ctx, d, "lock subscriptions", pg.SQL(
		"SELECT 1 FROM webhooks WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
	return err
}

// markTries marks the deliveries whose leases are held, and returns them.
func markTries(ctx context.Context, d *db.DB, marks []DeliveryMark) ([]domain.DeliveryID, error) {
	var webhooks, ids, tokens [][16]byte
	var statuses, tries []string
	var reasons []*string
	var dues []time.Time
	var ats []*time.Time
	for i := range marks {
		m := &marks[i]
		var at *time.Time
		list := []domain.DeliveryTry{}
		if m.Try != nil {
			at, list = &m.Try.At, append(list, *m.Try)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		var reason *string
		if m.Reason != "" {
			reason = &m.Reason
		}
		webhooks, ids, tokens = append(webhooks, m.Webhook), append(ids, m.ID), append(tokens, m.Token)
		statuses, tries, reasons = append(statuses, string(m.Status)), append(tries, string(text)), append(reasons, reason)
		dues, ats = append(dues, m.Due), append(ats, at)
	}
	return pg.All[domain.DeliveryID](ctx, d, "mark deliveries", pg.SQL(`
		UPDATE webhook_deliveries AS d SET status = m.status, reason = m.reason, due_at = m.due_at, lease = NULL,
			first_try_at = coalesce(d.first_try_at, m.at),
			tries = CASE WHEN jsonb_array_length(d.tries) < @keptTries THEN d.tries ELSE d.tries - 0 END || m.try::jsonb
		FROM unnest(@webhooks::uuid[], @ids::uuid[], @tokens::uuid[], @statuses::text[], @reasons::text[], @tries::text[], @dues::timestamptz[], @ats::timestamptz[])
			AS m (webhook_id, id, lease, status, reason, try, due_at, at)
		WHERE d.webhook_id = m.webhook_id AND d.id = m.id AND d.lease = m.lease AND d.status = 'waiting'
		RETURNING d.id`, pg.Named{
		"webhooks": webhooks, "ids": ids, "tokens": tokens, "statuses": statuses, "reasons": reasons,
		"tries": tries, "dues": dues, "ats": ats, "keptTries": keptTries,
	}))
}

// outcomesOf puts the tries together by subscription.
func outcomesOf(marks []DeliveryMark, held map[domain.DeliveryID]bool) map[domain.WebhookID]*outcome {
	all := map[domain.WebhookID]*outcome{}
	for i := range marks {
		m := &marks[i]
		if m.Try == nil || !held[m.ID] {
			continue
		}
		o := all[m.Webhook]
		if o == nil {
			o = &outcome{}
			all[m.Webhook] = o
		}
		at := &m.Try.At
		switch {
		case m.Status == domain.DeliverySucceeded:
			if o.succeeded == nil || at.After(*o.succeeded) {
				o.succeeded = at
			}
		default:
			if o.failed == nil || at.Before(*o.failed) {
				o.failed = at
			}
		}
		o.gone = o.gone || m.Gone
	}
	return all
}

// noteOutcomes writes what the tries mean for their subscriptions, and returns those
// that it disabled.
func noteOutcomes(ctx context.Context, d *db.DB, outcomes map[domain.WebhookID]*outcome) ([]domain.WebhookID, error) {
	var ids [][16]byte
	var succeeded, failed []*time.Time
	var gone []bool
	for id, o := range outcomes {
		ids, gone = append(ids, id), append(gone, o.gone)
		succeeded, failed = append(succeeded, o.succeeded), append(failed, o.failed)
	}
	now := d.Now()
	return pg.All[domain.WebhookID](ctx, d, "note what became of deliveries", pg.SQL(`
		WITH seen AS (
			SELECT o.id, o.succeeded_at, o.gone,
				CASE WHEN o.succeeded_at IS NULL THEN coalesce(w.failing_since, o.failed_at) END AS failing_since, w.status
			FROM unnest(@ids::uuid[], @succeeded::timestamptz[], @failed::timestamptz[], @gone::boolean[])
				AS o (id, succeeded_at, failed_at, gone) JOIN webhooks AS w ON w.id = o.id
		), judged AS (
			SELECT *, status = 'active' AND (gone OR failing_since <= @webhookRetryFor) IS TRUE AS disabled FROM seen
		), noted AS (
			UPDATE webhooks AS w SET last_delivery_at = greatest(w.last_delivery_at, j.succeeded_at),
				failing_since = j.failing_since,
				status = CASE WHEN j.disabled THEN 'disabled' ELSE w.status END,
				updated_at = CASE WHEN j.disabled THEN greatest(w.updated_at, @now) ELSE w.updated_at END
			FROM judged AS j WHERE w.id = j.id
		)
		SELECT id FROM judged WHERE disabled`, pg.Named{
		"ids": ids, "succeeded": succeeded, "failed": failed, "gone": gone, "now": now,
		"webhookRetryFor": now.Add(-domain.WebhookRetryFor),
	}))
}
