package outbox

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// SentMail is a mail that a mail server took.
type SentMail struct {
	Lease
	// User is the client's user with the address; of an invite there may be none.
	User          *domain.UserID
	From, Subject string
}

// markedRow is a mail that was marked as sent.
type markedRow struct {
	ClientID domain.ClientID
	UserID   *domain.UserID
	ID       domain.MessageID
	Kind     db.OutboxKind
	// BreachName is of the notice of an exposure.
	BreachName *string
}

// MarkSent marks mails as sent, records them as those of their users, with the
// ids that they had, and moves what depends on that. It returns those that it
// marked: the leases of the others were lost. It takes the same number of
// statements for any number of mails, of which there is at least one.
func MarkSent(ctx context.Context, d *db.DB, mails []SentMail) (map[domain.MessageID]bool, error) {
	done := make(map[domain.MessageID]bool, len(mails))
	err := d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		marked, err := markSent(ctx, c, mails)
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
				c.CountMails(m.ClientID, domain.DateOf(c.At), domain.PhishingCounts{Sent: 1})
				c.Rescore(user)
			}
		}
		return noteNotified(ctx, c, notices)
	})
	return done, err
}

// noteNotified notes that users were told of exposures.
func noteNotified(ctx context.Context, c *db.Change, notices []markedRow) error {
	if len(notices) == 0 {
		return nil
	}
	if err := c.LockRescored(ctx); err != nil { // whose rows come first in the lock order
		return err
	}

	var clients, users [][16]byte
	var breaches []string
	for _, n := range notices {
		clients, users, breaches = append(clients, n.ClientID), append(users, *n.UserID), append(breaches, *n.BreachName)
	}
	c.Lock(db.ExposureLocks)
	_, err := pg.Exec(ctx, c, "note who was told of exposures", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT e.client_id, e.user_id, e.breach_name FROM exposures AS e
			JOIN unnest(?0::uuid[], ?1::uuid[], ?2::text[]) AS n (client_id, user_id, breach_name)
				USING (client_id, user_id, breach_name)
			WHERE e.notified_at IS NULL ORDER BY e.client_id, e.user_id, e.breach_name FOR NO KEY UPDATE OF e
		)
		UPDATE exposures AS e SET notified_at = ?3, updated_at = greatest(e.updated_at, ?3)
		FROM chosen AS n
		WHERE e.client_id = n.client_id AND e.user_id = n.user_id AND e.breach_name = n.breach_name`,
		clients, users, breaches, c.At))
	return err
}

func markSent(ctx context.Context, c *db.Change, mails []SentMail) ([]markedRow, error) {
	var clients, ids, tokens [][16]byte
	var users []*domain.UserID
	var from, subjects []string
	for i := range mails {
		m := &mails[i]
		clients, ids, tokens = append(clients, m.Client), append(ids, m.ID), append(tokens, m.Token)
		users, from, subjects = append(users, m.User), append(from, m.From), append(subjects, m.Subject)
	}
	c.Lock(db.OutboxLocks)
	c.Lock(db.ResultLocks)
	return pg.All[markedRow](ctx, c, "mark mails as sent", pg.SQL(`
		WITH settled AS (
			DELETE FROM outbox AS o USING unnest(@clients::uuid[], @ids::uuid[], @tokens::uuid[], @users::uuid[], @from::text[], @subjects::text[])
				AS t (client_id, id, lease, user_id, from_email, subject)
			WHERE o.client_id = t.client_id AND o.id = t.id AND o.lease = t.lease
			RETURNING o.client_id, o.id, o.kind, o.scanned, t.user_id, t.from_email, t.subject
		), requests AS (
			UPDATE mail_requests AS r SET sent_at = @now FROM settled AS s
			WHERE r.client_id = s.client_id AND r.id = s.id AND s.kind = @requestedMail
			RETURNING r.client_id, s.user_id, r.id, s.kind, s.from_email, s.subject, r.type, r.breach_name
		), simulations AS (
			UPDATE phishing_results AS r SET status = @resultSent, sent_at = @now, updated_at = greatest(r.updated_at, @now),
				automated = s.scanned IS NOT NULL, automated_reason = s.scanned
			FROM settled AS s WHERE r.client_id = s.client_id AND r.id = s.id AND s.kind = @simulatedMail
			RETURNING r.client_id, r.user_id, r.id, s.kind, s.from_email, s.subject, @phishingMail::text AS type, NULL
		), partners AS (
			UPDATE partner_mails AS r SET sent_at = @now FROM settled AS s
			WHERE r.partner_id = s.client_id AND r.id = s.id AND s.kind = @partnerMail
			RETURNING r.partner_id, s.user_id, r.id, s.kind, s.from_email, s.subject, r.kind, NULL
		), marked AS (
			SELECT * FROM requests UNION ALL SELECT * FROM simulations UNION ALL SELECT * FROM partners
		), recorded AS (
			INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
			SELECT client_id, user_id, id, @now, from_email, subject, @bySMTP, type FROM marked WHERE user_id IS NOT NULL
		)
		SELECT client_id, user_id, id, kind, breach_name FROM marked`,
		pg.Named{
			"clients": clients, "ids": ids, "tokens": tokens, "users": users, "from": from,
			"subjects": subjects, "now": c.At, "requestedMail": db.RequestedMail,
			"simulatedMail": db.SimulatedMail, "partnerMail": db.PartnerMail, "resultSent": domain.ResultSent,
			"phishingMail": domain.PhishingMail, "bySMTP": domain.BySMTP,
		}))
}

// MarkFailed records that a mail will never be sent, and why. ErrLeaseLost where
// the mail is another's.
func MarkFailed(ctx context.Context, d *db.DB, l Lease, failure string) error {
	if l.Kind == db.SimulatedMail {
		return markUnsent(ctx, d, l, db.ResultLocks, `
			UPDATE phishing_results SET status = ?4, failed_at = ?2, failure = ?3, updated_at = greatest(updated_at, ?2)
			WHERE client_id = ?0 AND id = ?1`, failure, domain.ResultFailed)
	}
	return markUnsent(ctx, d, l, db.OutboxLocks, updateRequest(l.Kind, "failed_at = ?2, failure = ?3"), failure)
}

// updateRequest is the statement that updates the request of a mail of client ?0 and id ?1.
func updateRequest(kind db.OutboxKind, set string) string {
	if kind == db.PartnerMail {
		return "UPDATE partner_mails SET " + set + " WHERE partner_id = ?0 AND id = ?1"
	}
	return "UPDATE mail_requests SET " + set + " WHERE client_id = ?0 AND id = ?1"
}

// MarkSuppressed records that a mail was due while its client or partner had mail of its
// type switched off: it will never be sent, and is no failure. ErrLeaseLost where the
// mail is another's.
func MarkSuppressed(ctx context.Context, d *db.DB, l Lease) error {
	return markUnsent(ctx, d, l, db.OutboxLocks, updateRequest(l.Kind, "suppressed_at = ?2"))
}

// markUnsent takes a leased mail out of the outbox, and runs a statement that locks rows
// of a kind: of the mail's client ?0 and id ?1, at ?2.
func markUnsent(ctx context.Context, d *db.DB, l Lease, locks db.LockRank, text string, args ...any) error {
	return d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.Lock(db.OutboxLocks)
		n, err := pg.Exec(ctx, c, "take a mail out of the outbox", pg.SQL(
			"DELETE FROM outbox WHERE client_id = ? AND id = ? AND lease = ?", l.Client, l.ID, l.Token))
		if err := db.CheckLease(n, err); err != nil {
			return err
		}
		c.Lock(locks)
		_, err = pg.Exec(ctx, c, "mark a mail as unsent", pg.SQL(text, append([]any{l.Client, l.ID, c.At}, args...)...))
		return err
	})
}
