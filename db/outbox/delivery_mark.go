package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// keptTries bounds the number of tries stored with a delivery; the oldest are removed first. It is more than the retry
// schedule has, because a delivery may be made again.
const keptTries = 50

// DeliveryMark is the outcome of a leased delivery.
type DeliveryMark struct {
	DeliveryLease
	// Try is the attempt. Nil puts the delivery back without an attempt.
	Try *domain.DeliveryTry
	// Status is DeliveryWaiting if the delivery is to be tried again at Due.
	Status domain.DeliveryStatus
	Due    time.Time
	// Reason is the reason why the delivery was dropped; empty for another status.
	Reason string
	// Gone is true if the endpoint must get no more deliveries. It disables the subscription.
	Gone bool
}

// Marked is the result of MarkDeliveries.
type Marked struct {
	// Held are the deliveries that were marked. The leases of the others were lost to other processes.
	Held map[domain.DeliveryID]bool
	// Disabled are the subscriptions that were disabled.
	Disabled []domain.WebhookID
}

// outcome merges the tries of a subscription in a batch of marks.
type outcome struct {
	// succeeded is the time of the last success, and failed the time of the first failure after it; nil without one.
	succeeded, failed *time.Time
	gone              bool // as DeliveryMark.Gone, of any try
}

// MarkDeliveries writes the outcomes of tries whose leases are still held, and sets last_delivery_at and failing_since
// of their subscriptions. It disables a subscription whose endpoint is gone, or whose deliveries have failed for
// domain.WebhookRetryFor without a success (decisions 8.4), and requests the emails about failures: by the time that
// has passed only if the clock is trusted (db.DB.ClockTrusted). It takes the same number of statements for any number
// of marks. The next claim drops the waiting deliveries of a disabled subscription.
func MarkDeliveries(ctx context.Context, d *db.DB, marks []DeliveryMark) (done Marked, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		if err := lockWebhooks(ctx, d, marks); err != nil {
			return err
		}
		held, err := markTries(ctx, d, marks)
		if err != nil {
			return err
		}
		done = Marked{Held: pg.Index(held, func(id *domain.DeliveryID) (domain.DeliveryID, bool) { return *id, true })}
		outcomes := outcomesOf(marks, done.Held)
		if len(outcomes) == 0 {
			return nil
		}
		done.Disabled, err = noteOutcomes(ctx, c, outcomes)
		return err
	})
	return done, err
}

// lockWebhooks locks the subscriptions of marks, by id. In the lock order a subscription comes before its deliveries.
func lockWebhooks(ctx context.Context, d *db.DB, marks []DeliveryMark) error {
	ids := pg.MapRows(marks, func(m *DeliveryMark) domain.WebhookID { return m.Webhook })
	return pg.Run(ctx, d, "lock subscriptions", pg.SQL(
		"SELECT 1 FROM webhooks WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
}

// markTries updates the deliveries whose leases are still held, with their last keptTries tries, and returns their ids.
func markTries(ctx context.Context, d *db.DB, marks []DeliveryMark) ([]domain.DeliveryID, error) {
	var webhooks, ids, tokens [][16]byte
	var statuses, tries []string
	var reasons []*string
	var dues []time.Time
	var ats []*time.Time // nil without a try
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
		webhooks, ids, tokens = append(webhooks, m.Webhook), append(ids, m.ID), append(tokens, m.Token)
		statuses, tries, reasons = append(statuses, string(m.Status)), append(tries, string(text)), append(reasons, domain.OrNil(m.Reason))
		dues, ats = append(dues, m.Due), append(ats, at)
	}
	return pg.All[domain.DeliveryID](ctx, d, "mark deliveries", pg.SQL(`
		UPDATE webhook_deliveries AS d SET status = m.status, reason = m.reason, due_at = m.due_at, lease = NULL,
			first_try_at = coalesce(d.first_try_at, m.at),
			tries = CASE WHEN jsonb_array_length(d.tries) < ?keptTries THEN d.tries ELSE d.tries - 0 END || m.try::jsonb
		FROM unnest(?webhooks::uuid[], ?ids::uuid[], ?tokens::uuid[], ?statuses::text[], ?reasons::text[], ?tries::text[], ?dues::timestamptz[], ?ats::timestamptz[])
			AS m (webhook_id, id, lease, status, reason, try, due_at, at)
		WHERE d.webhook_id = m.webhook_id AND d.id = m.id AND d.lease = m.lease AND d.status = 'waiting'
		RETURNING d.id`, pg.Named{
		"webhooks": webhooks, "ids": ids, "tokens": tokens, "statuses": statuses, "reasons": reasons,
		"tries": tries, "dues": dues, "ats": ats, "keptTries": keptTries,
	}))
}

// outcomesOf merges the tries of held deliveries by subscription, in the order of their times. A success forgets the
// failures before it. Marks without a try do not count.
func outcomesOf(marks []DeliveryMark, held map[domain.DeliveryID]bool) map[domain.WebhookID]*outcome {
	tried := slices.DeleteFunc(slices.Clone(marks), func(m DeliveryMark) bool { return m.Try == nil || !held[m.ID] })
	slices.SortStableFunc(tried, func(a, b DeliveryMark) int { return a.Try.At.Compare(b.Try.At) })
	all := map[domain.WebhookID]*outcome{}
	for i := range tried {
		m := &tried[i]
		o := all[m.Webhook]
		if o == nil {
			o = &outcome{}
			all[m.Webhook] = o
		}
		switch at := &m.Try.At; {
		case m.Status == domain.DeliverySucceeded:
			o.succeeded, o.failed = at, nil
		case o.failed == nil:
			o.failed = at
		}
		o.gone = o.gone || m.Gone
	}
	return all
}

// failingWebhook is a subscription that was disabled, or that has failed for domain.WebhookMailAfter.
type failingWebhook struct {
	domain.WebhookFailure
	Partner domain.PartnerID
	// Cause identifies a series of failures of the subscription without a success between them.
	Cause string
}

// noteOutcomes sets last_delivery_at and failing_since of the subscriptions. It disables and returns those whose
// endpoint is gone, or that have failed for domain.WebhookRetryFor. It requests an email about each of these, and one
// about each series of failures that has lasted for domain.WebhookMailAfter.
func noteOutcomes(
	ctx context.Context, c *db.Change, outcomes map[domain.WebhookID]*outcome,
) (disabled []domain.WebhookID, err error) {
	var ids [][16]byte
	var succeeded, failed []*time.Time
	var gone []bool
	for id, o := range outcomes {
		ids, gone = append(ids, id), append(gone, o.gone)
		succeeded, failed = append(succeeded, o.succeeded), append(failed, o.failed)
	}
	toDisable, toMail := c.At.Add(-domain.WebhookRetryFor), c.At.Add(-domain.WebhookMailAfter)
	switch trusted, err := c.ClockTrusted(ctx, c.At); {
	case err != nil:
		return nil, err
	case !trusted: // only the clock may have made them so late
		toDisable, toMail = time.Time{}, time.Time{}
	}
	failing, err := pg.All[failingWebhook](ctx, c, "note outcomes of deliveries", pg.SQL(`
		WITH seen AS (
			SELECT o.id, w.partner_id, w.url, w.status, o.succeeded_at, o.gone,
				-- A time ahead of the clock, which was set back, was before this success.
				coalesce(CASE WHEN (w.failing_since <= o.succeeded_at OR w.failing_since > ?now AND o.succeeded_at IS NOT NULL) IS NOT TRUE
						THEN w.failing_since END, -- no success ended it
					-- a failure before the last success does not count
					CASE WHEN (o.failed_at <= w.last_delivery_at AND w.last_delivery_at <= ?now) IS NOT TRUE THEN o.failed_at END) AS failing_since
			FROM unnest(?ids::uuid[], ?succeeded::timestamptz[], ?failed::timestamptz[], ?gone::boolean[])
				AS o (id, succeeded_at, failed_at, gone) JOIN webhooks AS w ON w.id = o.id
		), judged AS (
			SELECT *, id || ' ' || extract(epoch FROM coalesce(failing_since, ?now)) AS cause,
				status = 'active' AND (gone OR failing_since <= ?latestToDisable) IS TRUE AS disabled FROM seen
		), noted AS (
			UPDATE webhooks AS w SET last_delivery_at = greatest(w.last_delivery_at, j.succeeded_at),
				failing_since = j.failing_since,
				status = CASE WHEN j.disabled THEN 'disabled' ELSE w.status END,
				disabled_reason = CASE WHEN NOT j.disabled THEN w.disabled_reason WHEN j.gone THEN ?goneReason ELSE ?failuresReason END,
				updated_at = CASE WHEN j.disabled THEN greatest(w.updated_at, ?now) ELSE w.updated_at END
			FROM judged AS j WHERE w.id = j.id
		)
		SELECT id, partner_id AS partner, url, coalesce(failing_since, ?now) AS since, disabled, gone, cause FROM judged AS j
		WHERE disabled OR status = 'active' AND failing_since <= ?latestToMail AND NOT EXISTS (
			SELECT FROM partner_mails AS m WHERE m.partner_id = j.partner_id AND m.kind = ?failingMail AND m.cause = j.cause)`,
		pg.Named{
			"ids": ids, "succeeded": succeeded, "failed": failed, "gone": gone, "now": c.At,
			"latestToDisable": toDisable, "latestToMail": toMail,
			"failingMail": domain.WebhookFailingMail, "goneReason": domain.DisabledGone, "failuresReason": domain.DisabledFailures,
		}))
	var mails []domain.PartnerMail
	for _, w := range failing {
		kind, notice := w.Mail()
		mails = append(mails, domain.PartnerMail{Partner: w.Partner, Kind: kind, Cause: w.Cause, Notice: notice})
		if w.Disabled {
			disabled = append(disabled, w.ID)
		}
	}
	if err == nil {
		_, err = MailPartners(ctx, c, mails)
	}
	return disabled, err
}
