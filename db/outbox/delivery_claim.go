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

// Deliveries of events to subscriptions are processed like emails of the outbox: a worker claims a lease on the row,
// sends the request without a transaction, and marks the row if it still holds the lease. The next claim takes over an
// expired lease.
//
// A delivery that a caller makes again gets a new number and queued_at, first_try_at NULL, and is due at once.

// DueWebhook is a subscription with deliveries that are due.
type DueWebhook struct {
	ID domain.WebhookID
	// Failing is true if a delivery has failed since the last success.
	Failing bool
	// UnderWay is the number of tries in progress (leased) in all processes, counted up to domain.MaxConcurrentTries.
	UnderWay int
}

// Places is a request to claim up to N due deliveries of a subscription.
type Places struct {
	Webhook domain.WebhookID
	N       int
}

// DeliveryLease is the right to make a try of a delivery.
type DeliveryLease struct {
	Webhook domain.WebhookID `bun:"webhook_id"`
	ID      domain.DeliveryID
	Partner domain.PartnerID `bun:"partner_id"`
	// Position is the position of the event, and Event its id.
	Position int64
	Event    domain.EventID `bun:"event_id"`
	// FirstTry is the time of the first attempt; zero if there was none.
	FirstTry time.Time `bun:"first_try_at,nullzero"`
	// Tries is the number of tries since FirstTry, including it.
	Tries int
	// Token identifies the claim.
	Token uuid.UUID `bun:"lease,nullzero"`
}

// LeasedRow implements db.Leased.
func (l DeliveryLease) LeasedRow() db.LeasedRow {
	return db.LeasedRow{Table: "webhook_deliveries", OwnerColumn: "webhook_id", Owner: l.Webhook, ID: l.ID, Token: l.Token}
}

// Claim is the result of ClaimDeliveries.
type Claim struct {
	Leases []DeliveryLease
	// Left is true if deliveries that were not claimed may be due.
	Left bool
	// Next is the earliest time, of the subscriptions read, at which a delivery is due or a lease ends; zero if none.
	Next time.Time
	// Dropped is the number of deliveries given up because of their subscription, its key, or their client.
	Dropped int
}

const (
	// dropDeliveries is the maximum number of deliveries given up in one transaction.
	dropDeliveries = 10_000
	// maxParts bounds the transactions of a claim. Each reads the next subscriptions.
	maxParts = 8
	// claimsLock is the name of the advisory lock of claims.
	claimsLock = "webhook deliveries"
)

// ClaimDeliveries leases due deliveries for the duration life: of each subscription as many as choose returns. choose
// gets the active subscriptions with due deliveries whose key is neither revoked nor expired. It must not use the
// database. If the key has expired, the deliveries wait until FollowKeys has disabled the subscription. Waiting
// deliveries of other subscriptions are dropped, with a reason.
//
// Subscriptions take turns, starting at the position of turns. Each transaction passes choose up to n subscriptions.
// The claim ends when deliveries were leased or dropped, after all subscriptions, or after maxParts transactions. So
// the cost depends on n, not on the number of subscriptions or of waiting deliveries. Only one process at a time runs
// such a transaction, so that DueWebhook.UnderWay counts the tries of all processes.
func ClaimDeliveries(
	ctx context.Context, d *db.DB, turns *DeliveryTurns, n int, life time.Duration, choose func([]DueWebhook) []Places,
) (claim Claim, err error) {
	r := round{began: turns.at, at: turns.at}
	for parts := 0; !r.exhausted && parts < maxParts && len(claim.Leases) == 0 && claim.Dropped == 0; parts++ {
		var part Claim
		var advanced round
		err := d.Claim(ctx, func(ctx context.Context) (err error) {
			advanced = r // each retry of the transaction starts from r
			part, err = advanced.claim(ctx, d, n, life, choose)
			return err
		})
		if err != nil {
			return Claim{}, err
		}
		r, turns.at = advanced, advanced.at
		claim.Leases, claim.Dropped, claim.Left = part.Leases, part.Dropped, claim.Left || part.Left
		if !part.Next.IsZero() {
			claim.Next = earlier(claim.Next, part.Next)
		}
	}
	claim.Left = claim.Left || !r.exhausted
	return claim, nil
}

// claim leases or drops deliveries of the next subscriptions of the round, up to n due ones, and advances the round.
// Left of the result reports only whether these subscriptions have more.
func (r *round) claim(
	ctx context.Context, d *db.DB, n int, life time.Duration, choose func([]DueWebhook) []Places,
) (claim Claim, err error) {
	if err := pg.Run(ctx, d, "wait to claim deliveries", pg.SQL(`
		SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`, claimsLock)); err != nil {
		return claim, err
	}
	now, ok := d.ClaimTime(life)
	if !ok {
		return claim, nil
	}
	waiting, err := r.next(ctx, d, n, now)
	if err != nil {
		return claim, err
	}

	var due []DueWebhook
	var refused []domain.WebhookID
	var reasons []string
	for _, w := range waiting {
		switch {
		case w.Reason != nil:
			refused, reasons = append(refused, w.ID), append(reasons, *w.Reason)
		case w.DueAt.After(now):
			claim.Next = earlier(claim.Next, w.DueAt)
		default:
			due = append(due, DueWebhook{ID: w.ID, Failing: w.Failing, UnderWay: w.UnderWay})
		}
	}
	if len(refused) > 0 {
		if claim.Dropped, err = drop(ctx, d, refused, reasons); err != nil {
			return claim, err
		}
		claim.Left = claim.Dropped == dropDeliveries // drop reached its limit
	}
	if len(due) == 0 {
		return claim, nil
	}
	err = lease(ctx, d, now, life, choose(due), &claim)
	return claim, err
}

// earlier returns the earlier of two times. A zero a means no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// drop gives up at most dropDeliveries waiting deliveries of subscriptions, and returns their number. reasons[i] is the
// reason for ids[i]. It skips rows that another transaction has locked, and tries in progress, which their worker
// marks.
func drop(ctx context.Context, d *db.DB, ids []domain.WebhookID, reasons []string) (int, error) {
	return pg.Exec(ctx, d, "give deliveries up", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT d.webhook_id, d.id, w.reason
			FROM unnest(?ids::uuid[], ?reasons::text[]) AS w (id, reason) CROSS JOIN LATERAL (
				SELECT d.webhook_id, d.id FROM webhook_deliveries AS d
				WHERE d.webhook_id = w.id AND d.status = 'waiting' AND (d.lease IS NULL OR d.due_at <= ?now)
				LIMIT ?dropDeliveries FOR UPDATE SKIP LOCKED
			) AS d LIMIT ?dropDeliveries
		)
		UPDATE webhook_deliveries AS d SET status = 'dropped', reason = c.reason, lease = NULL FROM chosen AS c
		WHERE d.webhook_id = c.webhook_id AND d.id = c.id`,
		pg.Named{"ids": pg.IDs(ids), "reasons": reasons, "dropDeliveries": dropDeliveries, "now": d.Now()}))
}

// leasedDelivery is a delivery that lease has leased or, if Kept is false, dropped.
type leasedDelivery struct {
	DeliveryLease
	Kept bool
}

// withinAccess returns the SQL condition that a subscription, alias w, and its key, alias k, may read a client. The
// client is an SQL expression such as d.client_id.
func withinAccess(client string) string {
	return `((w.client_ids = '{}' OR ` + client + ` = ANY(w.client_ids)) AND (k.all_clients OR EXISTS (
	SELECT 1 FROM api_key_clients AS r WHERE r.key_id = w.key_id AND r.client_id = ` + client + `)))`
}

// lease leases the due deliveries of places, adds them to claim, and sets Left: the next claim finds out. It drops
// deliveries that waited while their subscription was not active, and those of clients that are archived or no longer
// within its access: a retry must not show data that the key cannot read. The planner must know the LIMITs, so they are
// parameters; ?total is one only for it, and leaves nothing out.
func lease(ctx context.Context, d *db.DB, now time.Time, life time.Duration, places []Places, claim *Claim) error {
	var ids []domain.WebhookID
	var counts []int
	total := 0
	for _, p := range places {
		if p.N > 0 {
			ids, counts = append(ids, p.Webhook), append(counts, p.N)
			total += p.N
		}
	}
	claim.Left = true
	if len(ids) == 0 { // no delivery is wanted now
		return nil
	}
	rows, err := pg.All[leasedDelivery](ctx, d, "claim deliveries", pg.SQL(`
		WITH due AS MATERIALIZED (
			SELECT d.webhook_id, d.id, p.n, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.due_at) AS turn,
				CASE WHEN CASE WHEN d.number IS NULL THEN d.queued_at < w.active_since ELSE d.number < w.active_from END
						THEN 'the subscription was not active meanwhile'
					WHEN NOT `+withinAccess("d.client_id")+` THEN 'the client is no longer within the access of the subscription'
					WHEN NOT EXISTS (SELECT 1 FROM clients AS c WHERE c.id = d.client_id AND c.archived_at IS NULL)
						THEN 'the client was archived'
				END AS reason
			FROM unnest(?ids::uuid[], ?counts::integer[]) AS p (id, n) JOIN webhooks AS w ON w.id = p.id
			JOIN api_keys AS k ON k.id = w.key_id CROSS JOIN LATERAL (
				SELECT d.webhook_id, d.id, d.client_id, d.number, d.queued_at, d.due_at FROM webhook_deliveries AS d
				WHERE d.webhook_id = p.id AND d.status = 'waiting' AND d.due_at <= ?now
				ORDER BY d.due_at LIMIT ?most FOR UPDATE SKIP LOCKED
			) AS d
		), chosen AS MATERIALIZED (
			SELECT webhook_id, id, reason FROM due WHERE turn <= n LIMIT ?total
		)
		UPDATE webhook_deliveries AS d SET
			status = CASE WHEN c.reason IS NULL THEN 'waiting' ELSE 'dropped' END, reason = c.reason,
			lease = CASE WHEN c.reason IS NULL THEN ?lease::uuid END, due_at = ?until
		FROM chosen AS c WHERE d.webhook_id = c.webhook_id AND d.id = c.id
		RETURNING d.webhook_id, d.id, d.partner_id, d.position, d.event_id, d.first_try_at, d.lease, c.reason IS NULL AS kept, (
			SELECT count(*) FROM jsonb_array_elements(d.tries) AS t WHERE (t ->> 'at')::timestamptz >= d.first_try_at
		) AS tries`, pg.Named{
		"ids": pg.IDs(ids), "counts": counts, "now": now, "lease": uuid.New(), "until": now.Add(life),
		"most": slices.Max(counts), "total": total,
	}))
	for _, r := range rows {
		if r.Kept {
			claim.Leases = append(claim.Leases, r.DeliveryLease)
		} else {
			claim.Dropped++
		}
	}
	return err
}
