// Package outbox processes the outgoing work that changes have queued: emails, and events with their deliveries to
// webhooks. Rows are claimed under a lease and marked when they are done. The package also reads and writes the webhook
// subscriptions of callers, and reads events for them.
package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The table outbox holds the emails that wait to be sent. The transaction that requests an email inserts the row, and
// the transaction that marks the email as sent or failed deletes it. No row is locked between the two: a sender claims
// a lease on the row, passes the email to the mail server without a transaction, and marks it if it still holds the
// lease. The next claim takes over an expired lease. An email that may have been sent before it was put back or taken
// over is marked maybe_sent: it is sent again, and cannot be cancelled.

// Lease is the right to send an email of the outbox.
type Lease struct {
	Client domain.ClientID `bun:"client_id"`
	// ID is the id of the email request, the email to a partner or the simulated email.
	ID   domain.MessageID
	Kind db.OutboxKind
	// Attempts is the number of failed attempts.
	Attempts int
	// Token identifies the claim.
	Token uuid.UUID `bun:"lease"`
}

// ResultID returns ID as the id of a simulated email. It is meaningful only if Kind is db.SimulatedMail.
func (l *Lease) ResultID() domain.ResultID { return domain.ResultID(l.ID) }

// LeasedRow implements db.Leased.
func (l Lease) LeasedRow() db.LeasedRow {
	return db.LeasedRow{Table: "outbox", OwnerColumn: "client_id", Owner: l.Client, ID: l.ID, Token: l.Token}
}

// ClaimMails leases up to n due emails for the duration life. It returns fewer if fewer are due, or if another process
// claims at the same time.
//
// Of the clients that a claim reads, urgent emails come first. Within each urgency clients take turns, starting at the
// position of turns: each client's first email comes before any client's second email. So a client with many due emails
// delays others little. The cost depends on n, not on the number of clients or emails.
//
// While the clock is not trusted (db.DB.ClockTrusted), simulations that were scheduled for a later time wait.
func ClaimMails(ctx context.Context, d *db.DB, turns *MailTurns, n int, life time.Duration) ([]Lease, error) {
	var visited []mailTurn
	var claimed []claimedMail
	err := d.Claim(ctx, func(ctx context.Context) (err error) {
		now, ok := d.ClaimTime(life)
		if !ok {
			return nil
		}
		trusted, err := d.ClockTrusted(ctx, now)
		if err != nil {
			return err
		}
		if visited, err = nextTurns(ctx, d, turns, n, now); err != nil {
			return err
		}
		claimed, err = leaseMails(ctx, d, visited, n, now, trusted, life)
		return err
	})
	if err != nil {
		return nil, err
	}
	turns.advance(visited, claimed, n)
	return pg.MapRows(claimed, func(c *claimedMail) Lease { return c.Lease }), nil
}

// claimedMail is an email that was leased.
type claimedMail struct {
	Lease
	Urgency int
}

// leaseMails leases up to n due emails of the clients in visited: those of urgency 1 first and, within an urgency, the
// first email of each client before any second one. n is shared by the clients of an urgency. Of each client it locks
// up to two equal shares of n, and at least one email. If the clock is not trusted, scheduled simulations are not due.
func leaseMails(
	ctx context.Context, d *db.DB, visited []mailTurn, n int, now time.Time, trusted bool, life time.Duration,
) ([]claimedMail, error) {
	var clients [][16]byte
	var urgencies []int
	clientCount, seen := map[int]int{}, map[mailTurn]bool{} // clientCount is by urgency
	for _, w := range visited {
		if w.Due && !seen[w.key()] {
			seen[w.key()] = true
			clients, urgencies = append(clients, w.Client), append(urgencies, w.Urgency)
			clientCount[w.Urgency]++
		}
	}
	if len(clients) == 0 {
		return nil, nil
	}
	share := map[int]int{}
	for urgency, count := range clientCount {
		share[urgency] = min(n, max(1, 2*n/count))
	}
	return pg.All[claimedMail](ctx, d, "claim emails", pg.SQL(`
		WITH due AS (
			SELECT t.client_id, t.urgency, t.place, o.id,
				row_number() OVER (PARTITION BY t.client_id, t.urgency ORDER BY o.due_at, o.id) AS turn
			FROM unnest(?clients::uuid[], ?urgencies::integer[]) WITH ORDINALITY AS t (client_id, urgency, place) CROSS JOIN LATERAL (
				SELECT id, due_at FROM outbox AS m
				WHERE client_id = t.client_id AND urgency = t.urgency AND due_at <= ?now::timestamptz
					AND (?trusted::boolean OR m.kind <> 'simulation' OR NOT EXISTS (SELECT FROM phishing_results AS r
						WHERE r.client_id = m.client_id AND r.id = m.id AND r.send_at > r.created_at))
				ORDER BY due_at LIMIT CASE t.urgency WHEN 1 THEN ?urgentShare::integer ELSE ?otherShare::integer END FOR UPDATE SKIP LOCKED
			) AS o
			WHERE t.client_id NOT IN (`+db.SuspendedSenders+`)
		), chosen AS MATERIALIZED (
			SELECT client_id, id FROM due ORDER BY urgency, turn, place LIMIT ?n::integer
		)
		UPDATE outbox AS o SET lease = ?lease::uuid, due_at = ?until::timestamptz,
			maybe_sent = o.maybe_sent OR o.lease IS NOT NULL -- the former holder of an expired lease may have sent it
		FROM chosen
		WHERE o.client_id = chosen.client_id AND o.id = chosen.id
		RETURNING o.client_id, o.id, o.kind, o.attempts, o.lease, o.urgency`,
		pg.Named{
			"clients": clients, "urgencies": urgencies, "now": now, "urgentShare": share[1], "otherShare": share[2],
			"n": n, "lease": uuid.New(), "until": now.Add(life), "trusted": trusted,
		}))
}

// MailDue returns the earliest time at which an email of the outbox is due or a lease ends, except for suspended
// senders. It returns false if there is none.
func MailDue(ctx context.Context, d *db.DB) (time.Time, bool, error) {
	due, err := pg.One[*time.Time](ctx, d, "look for the next mail", pg.SQL(
		"SELECT min(due_at) FROM outbox WHERE client_id NOT IN ("+db.SuspendedSenders+")"))
	return domain.OrZero(due), due != nil, err
}

// Requeue describes how an email is put back into the outbox.
type Requeue struct {
	// At is when the email is due again.
	At time.Time
	// Failed reports whether a try failed.
	Failed bool
	// MaybeSent reports whether the email may have been sent nevertheless.
	MaybeSent bool
}

// RequeueMail gives a lease back, stores q, and forgets a scan. It returns db.ErrLeaseLost if the lease is lost.
func RequeueMail(ctx context.Context, d *db.DB, l Lease, q Requeue) error {
	return pg.RunOr(ctx, d, db.ErrLeaseLost, "put an email back", pg.SQL(`
		UPDATE outbox SET lease = NULL, scanned = NULL, due_at = ?at, attempts = attempts + ?failed::integer,
			maybe_sent = maybe_sent OR ?maybeSent
		WHERE client_id = ?client AND id = ?id AND lease = ?token`, pg.Named{
		"client": l.Client, "id": l.ID, "token": l.Token, "at": q.At, "failed": pg.Number(q.Failed), "maybeSent": q.MaybeSent,
	}))
}

// NoteScan records an action on a simulated email that is being sent, so that MarkSent marks its result as automated:
// only a mail scanner can act before the email arrives. The first reason is kept. It returns false if the email is not
// being sent.
func NoteScan(ctx context.Context, d *db.DB, result domain.ResultID, reason domain.AutomatedReason) (bool, error) {
	n, err := pg.Exec(ctx, d, "note a scan", pg.SQL(`
		UPDATE outbox SET scanned = coalesce(scanned, ?reason)
		WHERE client_id = (SELECT client_id FROM phishing_results WHERE id = ?result) AND id = ?result
			AND lease IS NOT NULL AND due_at > ?now`, pg.Named{"result": result, "now": d.Now(), "reason": reason}))
	return n > 0, err
}
