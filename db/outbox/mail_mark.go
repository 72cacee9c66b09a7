package outbox

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// SentMail is an email that a mail server accepted.
type SentMail struct {
	Lease
	// User is the client's user with the address; nil if there is none, as for some invites.
	User          *domain.UserID
	From, Subject string
}

// markedRow is an email that was marked as sent.
type markedRow struct {
	ClientID domain.ClientID
	UserID   *domain.UserID
	ID       domain.MessageID
	Kind     db.OutboxKind
	// LabelKey is the key of the label of a simulated email; nil for none, and for other emails.
	LabelKey *string
	// BreachName is the breach of a domain.ExposureNotice; nil for other emails.
	BreachName *string
}

// MarkSent marks emails as sent and records them in sent_emails for their users, under the same ids. For simulated
// emails it counts the email and recomputes the user's risk, and for exposure notices it sets notified_at. It returns
// the emails that it marked: the leases of the others were lost. There must be at least one email. It takes the same
// number of statements for any number.
func MarkSent(ctx context.Context, d *db.DB, mails []SentMail) (map[domain.MessageID]bool, error) {
	done := make(map[domain.MessageID]bool, len(mails))
	err := d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		sentAt := c.Now()
		marked, err := markSent(ctx, c, mails, sentAt)
		if err != nil {
			return err
		}
		var notices []markedRow
		for _, m := range marked {
			done[m.ID] = true
			switch {
			case m.BreachName != nil:
				notices = append(notices, m)
			case m.Kind == db.SimulatedMail:
				user := domain.UserKey{Client: m.ClientID, User: *m.UserID}
				c.CountMails(m.ClientID, domain.OrZero(m.LabelKey), domain.DateOf(sentAt), domain.PhishingCounts{Sent: 1})
				c.Rescore(user)
			}
		}
		return noteNotified(ctx, c, notices)
	})
	return done, err
}

// noteNotified sets notified_at of the exposures that sent notices are about.
func noteNotified(ctx context.Context, c *db.Change, notices []markedRow) error {
	if len(notices) == 0 {
		return nil
	}
	if err := c.LockRescored(ctx); err != nil { // these rows come before exposures in the lock order
		return err
	}

	var clients, users [][16]byte
	var breaches []string
	for _, n := range notices {
		clients, users, breaches = append(clients, n.ClientID), append(users, *n.UserID), append(breaches, *n.BreachName)
	}
	c.WillLock(db.ExposureLocks)
	return pg.Run(ctx, c, "record who was notified of exposures", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT e.client_id, e.user_id, e.breach_name FROM exposures AS e
			JOIN unnest(?clients::uuid[], ?users::uuid[], ?breaches::text[]) AS n (client_id, user_id, breach_name)
				USING (client_id, user_id, breach_name)
			WHERE e.notified_at IS NULL ORDER BY e.client_id, e.user_id, e.breach_name FOR NO KEY UPDATE OF e
		)
		UPDATE exposures AS e SET notified_at = ?now, updated_at = greatest(e.updated_at, ?now)
		FROM chosen AS n
		WHERE e.client_id = n.client_id AND e.user_id = n.user_id AND e.breach_name = n.breach_name`,
		pg.Named{"clients": clients, "users": users, "breaches": breaches, "now": c.At}))
}

// markSent deletes the emails whose leases are still held from the outbox, marks them as sent in the tables of their
// kinds, inserts those to users into sent_emails, and returns them all. sentAt is the time by the clock, with which the
// time of a click is compared; the stamp of the change may be later (see pg.DB.Stamp).
func markSent(ctx context.Context, c *db.Change, mails []SentMail, sentAt time.Time) ([]markedRow, error) {
	var clients, ids, tokens [][16]byte
	var users []*domain.UserID
	var from, subjects []string
	for i := range mails {
		m := &mails[i]
		clients, ids, tokens = append(clients, m.Client), append(ids, m.ID), append(tokens, m.Token)
		users, from, subjects = append(users, m.User), append(from, m.From), append(subjects, m.Subject)
	}
	c.WillLock(db.OutboxLocks)
	c.WillLock(db.ResultLocks)
	return pg.All[markedRow](ctx, c, "mark emails as sent", pg.SQL(`
		WITH settled AS (
			DELETE FROM outbox AS o USING unnest(?clients::uuid[], ?ids::uuid[], ?tokens::uuid[], ?users::uuid[], ?from::text[], ?subjects::text[])
				AS t (client_id, id, lease, user_id, from_email, subject)
			WHERE o.client_id = t.client_id AND o.id = t.id AND o.lease = t.lease
			RETURNING o.client_id, o.id, o.kind, o.scanned, t.user_id, t.from_email, t.subject
		), requests AS (
			UPDATE mail_requests AS r SET sent_at = ?sent FROM settled AS s
			WHERE r.client_id = s.client_id AND r.id = s.id AND s.kind = ?requestedMail
			RETURNING r.client_id, s.user_id, r.id, s.kind, s.from_email, s.subject, r.type, NULL AS label_key, r.breach_name
		), simulations AS (
			UPDATE phishing_results AS r SET status = ?resultSent, sent_at = ?sent, updated_at = greatest(r.updated_at, ?now),
				automated = s.scanned IS NOT NULL, automated_reason = s.scanned
			FROM settled AS s WHERE r.client_id = s.client_id AND r.id = s.id AND s.kind = ?simulatedMail
			RETURNING r.client_id, r.user_id, r.id, s.kind, s.from_email, s.subject, ?phishingMail::text AS type, r.label_key, NULL
		), partners AS (
			UPDATE partner_mails AS r SET sent_at = ?sent FROM settled AS s
			WHERE r.partner_id = s.client_id AND r.id = s.id AND s.kind = ?partnerMail
			RETURNING r.partner_id, s.user_id, r.id, s.kind, s.from_email, s.subject, r.kind, NULL, NULL
		), marked AS (
			SELECT * FROM requests UNION ALL SELECT * FROM simulations UNION ALL SELECT * FROM partners
		), recorded AS (
			INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
			SELECT client_id, user_id, id, ?sent, from_email, subject, ?bySMTP, type FROM marked WHERE user_id IS NOT NULL
		)
		SELECT client_id, user_id, id, kind, label_key, breach_name FROM marked`,
		pg.Named{
			"clients": clients, "ids": ids, "tokens": tokens, "users": users, "from": from,
			"subjects": subjects, "now": c.At, "sent": sentAt, "requestedMail": db.RequestedMail,
			"simulatedMail": db.SimulatedMail, "partnerMail": db.PartnerMail, "resultSent": domain.ResultSent,
			"phishingMail": domain.PhishingMail, "bySMTP": domain.BySMTP,
		}))
}

// MarkFailed marks an email as failed for good, with the reason. It returns db.ErrLeaseLost if the lease is lost.
func MarkFailed(ctx context.Context, d *db.DB, l Lease, failure string) error {
	set := "failed_at = ?now, failure = ?failure"
	if l.Kind == db.SimulatedMail {
		set += ", status = 'failed', updated_at = greatest(updated_at, ?now)"
	}
	return markUnsent(ctx, d, l, set, pg.Named{"failure": failure})
}

// MarkSuppressed records that an email was due while its client or partner had its type switched off: it will not be
// sent, and does not count as failed. It returns db.ErrLeaseLost if the lease is no longer held.
func MarkSuppressed(ctx context.Context, d *db.DB, l Lease) error {
	return markUnsent(ctx, d, l, "suppressed_at = ?now", pg.Named{})
}

// kindTables are the tables of the emails of each kind, and their columns that hold Lease.Client.
var kindTables = map[db.OutboxKind]struct{ name, client string }{
	db.RequestedMail: {"mail_requests", "client_id"},
	db.SimulatedMail: {"phishing_results", "client_id"},
	db.PartnerMail:   {"partner_mails", "partner_id"},
}

// markUnsent deletes a leased email from the outbox and updates its row in the table of its kind with set, an SQL SET
// clause that uses ?now and values, to which markUnsent adds. It returns db.ErrLeaseLost if the lease is lost.
func markUnsent(ctx context.Context, d *db.DB, l Lease, set string, values pg.Named) error {
	return d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.OutboxLocks)
		err := pg.RunOr(ctx, c, db.ErrLeaseLost, "delete an email from the outbox", pg.SQL(
			"DELETE FROM outbox WHERE client_id = ?client AND id = ?id AND lease = ?lease",
			pg.Named{"client": l.Client, "id": l.ID, "lease": l.Token}))
		if err != nil {
			return err
		}
		if l.Kind == db.SimulatedMail {
			c.WillLock(db.ResultLocks)
		}
		table := kindTables[l.Kind]
		values["client"], values["id"], values["now"] = l.Client, l.ID, c.At
		return pg.Run(ctx, c, "mark an email as unsent", pg.SQL(
			"UPDATE "+table.name+" SET "+set+" WHERE "+table.client+" = ?client AND id = ?id", values))
	})
}
