package outbox

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// FailedMail is an email that was given up, for an operator.
type FailedMail struct {
	// Client is nil for an email to a partner.
	Client *domain.ClientID `bun:"client_id"`
	// ID is the UUID of the email's request, of the email to a partner, or of a simulation's result.
	ID string
	// Type is domain.PhishingMail for a simulation.
	Type     domain.MessageType
	To       string `bun:"recipient"`
	FailedAt time.Time
	Failure  string
}

// failedMails selects the emails that were given up since ?since and, unless ?ids is NULL, have one of these ids. It
// leaves out cancelled emails.
const failedMails = `
	SELECT r.client_id, r.id::text AS id, r.type, coalesce(i.email, a.email, u.email, '') AS recipient, r.failed_at, r.failure
	FROM mail_requests AS r
	LEFT JOIN admin_invites AS i ON i.client_id = r.client_id AND i.id = r.invite_id
	LEFT JOIN admins AS a ON a.client_id = r.client_id AND a.id = r.admin_id
	LEFT JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
	WHERE r.failed_at >= ?since AND (?ids::uuid[] IS NULL OR r.id = ANY(?ids::uuid[]))
	UNION ALL
	SELECT r.client_id, r.id::text, 'phishing', u.email, r.failed_at, r.failure
	FROM phishing_results AS r
	JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
	WHERE r.failed_at >= ?since AND r.failure <> '` + domain.FailureCancelled + `' AND (?ids::uuid[] IS NULL OR r.id = ANY(?ids::uuid[]))
	UNION ALL
	SELECT NULL, id::text, kind, recipient, failed_at, failure
	FROM partner_mails
	WHERE failed_at >= ?since AND (?ids::uuid[] IS NULL OR id = ANY(?ids::uuid[]))`

// FailedMails lists at most limit emails that were given up since a time, the oldest failure first.
func FailedMails(ctx context.Context, d *db.DB, since time.Time, limit int) ([]FailedMail, error) {
	return pg.All[FailedMail](ctx, d, "list failed emails", pg.SQL(
		"SELECT * FROM ("+failedMails+") AS m ORDER BY failed_at, id LIMIT ?limit",
		pg.Named{"since": since, "ids": []string(nil) /* any */, "limit": limit}))
}

// RetryMails puts emails that were given up since a time into the outbox again: the emails with the ids (UUIDs) or, if
// ids is nil, all emails. It takes at most limit, the oldest failure first. Their last attempt may have been delivered,
// so they cannot be cancelled. It returns the emails that it changed.
func RetryMails(ctx context.Context, d *db.DB, since time.Time, ids []string, limit int) (mails []FailedMail, err error) {
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		c.WillLock(db.ResultLocks)
		mails, err = pg.All[FailedMail](ctx, c, "retry failed emails", pg.SQL(`
			WITH chosen AS MATERIALIZED (SELECT * FROM (`+failedMails+`) AS m ORDER BY failed_at, id LIMIT ?limit),
			requests AS (
				UPDATE mail_requests AS r SET failed_at = NULL, failure = NULL FROM chosen AS c
				WHERE c.type <> 'phishing' AND r.client_id = c.client_id AND r.id = c.id::uuid AND r.failed_at IS NOT NULL
				RETURNING r.client_id, r.id, 'mail' AS kind, `+db.MailUrgency+` AS urgency
			), results AS (
				UPDATE phishing_results AS r SET failed_at = NULL, failure = NULL, status = 'scheduled',
					updated_at = greatest(r.updated_at, ?now)
				FROM chosen AS c
				WHERE c.type = 'phishing' AND r.client_id = c.client_id AND r.id = c.id::uuid AND r.failed_at IS NOT NULL
				RETURNING r.client_id, r.id, 'simulation', 2
			), partners AS (
				UPDATE partner_mails AS r SET failed_at = NULL, failure = NULL FROM chosen AS c
				WHERE c.client_id IS NULL AND r.id = c.id::uuid AND r.failed_at IS NOT NULL
				RETURNING r.partner_id, r.id, 'partner', 2
			), queued AS (
				INSERT INTO outbox (client_id, id, kind, urgency, due_at, maybe_sent)
				SELECT *, ?now::timestamptz, true FROM (
					SELECT * FROM requests UNION ALL SELECT * FROM results UNION ALL SELECT * FROM partners) AS r
				RETURNING id
			), notified AS (
				SELECT pg_notify(?outboxChannel, '') FROM queued LIMIT 1
			)
			SELECT c.* FROM chosen AS c LEFT JOIN notified ON true -- it runs only if it is read
			WHERE c.id::uuid IN (SELECT id FROM queued)
			ORDER BY c.failed_at, c.id`, pg.Named{
			"since": since, "ids": ids, "limit": limit, "now": c.At, "outboxChannel": db.OutboxChannel,
			"urgent": domain.UrgentMails,
		}))
		return err
	})
	return mails, err
}
